// SPDX-License-Identifier: Apache-2.0
//
// Movie recommender: movies that a user may like, and movies like another one, by the model that `media train` has written.
#include <unordered_map>
#include <unordered_set>

#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/kit/page.h"
#include "apps/media/common/train.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"
#include "movie_models.curtail.h"

namespace curtail::media {

struct MovieRecommenderService final : MovieRecommender::CoroutineService {
  MovieRecommenderService(std::string path, Env& e) : file(std::move(path)), env(e) {}

  // Movies that the user has reviewed are left out.
  Coroutine For(Context& ctx, const RecommendQuery& request, MovieList* reply) override {
    const auto model = Model(reply);
    if (!model.ok() || *model == nullptr) co_return model.status();
    apps::UserId user;
    user.set_user(request.user());
    auto [rated] = co_await WhenAll(ctx, Ask(rating, Rating::kRatedBy, user));
    if (!rated.ok()) co_return rated.status();
    const std::unordered_set<uint64_t> not_these(rated->ids().begin(), rated->ids().end());
    const uint32_t limit = apps::LimitOf(request.limit());
    std::vector<uint64_t> best = BestFor(**model, request.user(), not_these.size() + limit);
    std::erase_if(best, [&](uint64_t movie) { return not_these.contains(movie); });
    co_return co_await Read(ctx, best, limit, reply);
  }

  Coroutine Similar(Context& ctx, const SimilarQuery& request, MovieList* reply) override {
    const auto model = Model(reply);
    if (!model.ok() || *model == nullptr) co_return model.status();
    const uint32_t limit = apps::LimitOf(request.limit());
    const uint64_t movie = request.movie();
    const std::vector<uint64_t> similar = SimilarTo(**model, {&movie, 1}, limit);
    co_return co_await Read(ctx, similar, limit, reply);
  }

  // Returns null before the first `media train`, and sets that in `*reply`.
  absl::StatusOr<std::shared_ptr<const apps::TasteModel>> Model(MovieList* reply) {
    auto model = file.Get();
    reply->set_untrained(absl::IsFailedPrecondition(model.status()));
    if (reply->untrained()) model = nullptr;
    return model;
  }

  // In the order of the ids.
  Coroutine Read(Context& ctx, const std::vector<uint64_t>& movies, size_t limit, MovieList* reply) {
    apps::Ids ids;
    for (size_t i = 0; i < std::min(limit, movies.size()); ++i) ids.add_ids(movies[i]);
    auto [found] = co_await WhenAll(ctx, Ask(info, MovieInfo::kRead, std::move(ids)));
    if (found.ok()) reply->mutable_movies()->Swap(found->mutable_movies());
    co_return found.status();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"For", {rating, info}}, {"Similar", {info}}}; }

  apps::ModelFile<apps::TasteModel> file;
  Env& env;
  const Rating::Stub rating = env.Stub<Rating>("rating");
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
};

HostedService HostedMovieRecommender() {
  return apps::HostedOnData(
      kApplication, "movie-recommender", [](Env& env, const apps::DataOptions& data) -> MadeService {
        const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
        if (!folder.ok()) return folder.status();
        return std::make_unique<MovieRecommenderService>(Join(*folder, "/", kMovieModelFile), env);
      });
}

}  // namespace curtail::media
