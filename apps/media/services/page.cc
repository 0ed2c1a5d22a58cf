// SPDX-License-Identifier: Apache-2.0
//
// Page: a movie with all its parts, which are asked for at once. A part that fails is named, and not waited for.
#include "apps/kit/page.h"
#include "apps/media/data.h"

namespace curtail::media {

struct PageService final : Page::CoroutineService {
  explicit PageService(Env& e) : env(e) {}

  Coroutine Read(Context& ctx, const PageQuery& request, MoviePage* reply) override {
    const apps::Ids id = IdsOf(request.movie());
    auto [movies] = co_await WhenAll(ctx, Ask(info, MovieInfo::kRead, id));
    if (!movies.ok()) co_return movies.status();
    if (movies->movies().empty()) co_return absl::NotFoundError("there is no such movie");
    reply->mutable_movie()->Swap(movies->mutable_movies(0));
    RatingQuery of;
    of.set_movie(request.movie());
    ReviewPage newest;
    newest.set_of(request.movie());
    newest.set_limit(request.limit());
    const Nanos time = apps::OptionalTime(ctx.deadline());
    auto [casts, plots, sum, listed] = co_await WhenAll(
        ctx, Ask(cast, CastInfo::kRead, id).Within(time), Ask(plot, Plot::kRead, id).Within(time),
        Ask(rating, Rating::kSum, of).Within(time), Ask(reviews, MovieReview::kList, newest).Within(time));
    if (casts.ok() && !casts->casts().empty())
      reply->mutable_cast()->Swap(casts->mutable_casts(0)->mutable_names());
    if (plots.ok() && !plots->plots().empty()) reply->set_plot(plots->plots(0).text());
    if (sum.ok()) reply->mutable_rating()->Swap(&*sum);
    if (listed.ok()) {
      reply->mutable_reviews()->Swap(listed->mutable_reviews());
      reply->set_next(listed->next());
    }
    const auto name = [reply](bool ok, const char* part) {
      if (!ok) reply->add_missing(part);
    };
    name(casts.ok(), "cast"), name(plots.ok(), "plot"), name(sum.ok(), "rating"),
        name(listed.ok(), "reviews");
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Read", {info, cast, plot, rating, reviews}}}; }

  Env& env;
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  const CastInfo::Stub cast = env.Stub<CastInfo>("cast-info");
  const Plot::Stub plot = env.Stub<Plot>("plot");
  const Rating::Stub rating = env.Stub<Rating>("rating");
  const MovieReview::Stub reviews = env.Stub<MovieReview>("movie-review");
};

HostedService HostedPage() {
  return {.name = "page", .make = [](Env& env) { return std::make_unique<PageService>(env); }};
}

}  // namespace curtail::media
