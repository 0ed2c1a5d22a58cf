// SPDX-License-Identifier: Apache-2.0
//
// Movie id: the movie of a title as a part of a review, and new movies.
//
// A movie is in movie-info last. If a step before fails, its cast and plot, and its words in the index, are there under
// an id that nobody finds.
#include <algorithm>

#include "apps/kit/data/cache.h"
#include "apps/kit/digest.h"
#include "apps/media/common/index_jobs.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"

namespace curtail::media {

struct MovieIdService final : MovieId::CoroutineService {
  MovieIdService(std::unique_ptr<apps::Cache> c, Env& e) : cache(std::move(c)), env(e) {}

  Coroutine Upload(Context& ctx, const UploadRequest& request, Composed* reply) override {
    Part part;
    absl::Status found = co_await Resolve(ctx, request.title(), part.mutable_movie());
    if (!found.ok()) co_return found;
    co_return co_await PutPart(ctx, compose, request.request(), std::move(part), reply);
  }

  // A title without a year may come to mean several movies, so only one with its year is cached.
  Coroutine Resolve(Context& ctx, const MovieTitle& title, Movie* movie) {
    const bool cached = cache != nullptr && title.year() != 0;
    const std::vector<std::string> keys(1, "title" + apps::Digest(Join(title.year(), " ", title.title())));
    std::vector<std::optional<std::string>> values;
    if (cached) {
      (co_await cache->Get(ctx, keys, &values)).IgnoreError();
      if (values[0] && movie->ParseFromString(*values[0])) co_return absl::OkStatus();
    }
    auto [found] = co_await WhenAll(ctx, Ask(info, MovieInfo::kFind, title));
    if (!found.ok()) co_return found.status();
    *movie = *std::move(found);
    const std::vector<std::string> bytes(1, movie->SerializeAsString());
    if (cached) (co_await cache->Add(ctx, keys, bytes)).IgnoreError();
    co_return absl::OkStatus();
  }

  Coroutine Register(Context& ctx, const MovieEntry& request, Movie* reply) override {
    if (absl::Status status = Check(request); !status.ok()) co_return status;
    MovieTitle title;
    title.set_title(request.title());
    title.set_year(request.year());
    auto [there] = co_await WhenAll(ctx, Ask(info, MovieInfo::kFind, title));
    if (there.ok()) co_return absl::AlreadyExistsError("there is a movie of this title and year");
    if (!absl::IsNotFound(there.status())) co_return there.status();
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, apps::OneId()));
    if (!ids.ok()) co_return ids.status();
    Cast members;
    members.set_movie(ids->ids(0));
    *members.mutable_names() = request.cast();
    PlotText text;
    text.set_movie(ids->ids(0));
    text.set_text(request.plot());
    auto written = co_await WhenAllOk(ctx, Ask(cast, CastInfo::kWrite, std::move(members)),
                                      Ask(plot, Plot::kWrite, std::move(text)),
                                      Ask(search, Search::kEnqueue,
                                          IndexJobOf(ids->ids(0), request.title(), request.year(),
                                                     request.genres(), request.cast(), request.plot())));
    if (!written.ok()) co_return written.status();
    reply->set_id(ids->ids(0));
    reply->set_title(request.title());
    reply->set_year(request.year());
    *reply->mutable_genres() = request.genres();
    reply->set_added_by(request.user());
    auto [entered] = co_await WhenAll(ctx, Ask(info, MovieInfo::kWrite, *reply));
    co_return entered.status();
  }

  static absl::Status Check(const MovieEntry& entry) {
    const auto longer = [](size_t most) {
      return [most](const std::string& text) { return text.size() > most; };
    };
    if (entry.title().empty() || entry.title().size() > 500)
      return absl::InvalidArgumentError("a title has 1 to 500 bytes");
    if (entry.year() < 1870 || entry.year() > 2100)
      return absl::InvalidArgumentError("the year of a movie is 1870 to 2100");
    if (entry.genres_size() > 20 || std::ranges::any_of(entry.genres(), longer(100)))
      return absl::InvalidArgumentError("a movie has at most 20 genres, of 100 bytes each");
    if (entry.cast_size() > 100 || std::ranges::any_of(entry.cast(), longer(200)))
      return absl::InvalidArgumentError("a movie has at most 100 names in its cast, of 200 bytes each");
    if (entry.plot().size() > 4096) return absl::InvalidArgumentError("a plot has at most 4096 bytes");
    return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Upload", {compose, info}}, {"Register", {info, unique_id, cast, plot, search}}};
  }

  const std::unique_ptr<apps::Cache> cache;  // may be null
  Env& env;
  const ComposeReview::Stub compose = env.Stub<ComposeReview>("compose-review");
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  const CastInfo::Stub cast = env.Stub<CastInfo>("cast-info");
  const Plot::Stub plot = env.Stub<Plot>("plot");
  const Search::Stub search = env.Stub<Search>("search");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
};

HostedService HostedMovieId() {
  return {.name = "movie-id", .make = [](Env& env) -> MadeService {
            auto cache = apps::Cache::Of(env, "movie-cache");
            if (!cache.ok()) return cache.status();
            return std::make_unique<MovieIdService>(*std::move(cache), env);
          }};
}

}  // namespace curtail::media
