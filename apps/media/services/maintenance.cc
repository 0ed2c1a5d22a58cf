// SPDX-License-Identifier: Apache-2.0
//
// Maintenance: jobs that an operator starts (`media maintain`). Each may be interrupted and repeated.
#include <algorithm>

#include "apps/media/common/index_jobs.h"
#include "apps/media/data.h"
#include "maintenance.curtail.h"
#include "rentals.curtail.h"

namespace curtail::media {

constexpr uint32_t kMoviesAtOnce = 100;

struct MaintenanceService final : Maintenance::CoroutineService {
  explicit MaintenanceService(Env& e) : env(e) {}

  Coroutine Run(Context& ctx, const MaintenanceJob& request, MaintenanceReport* reply) override {
    switch (request.kind()) {
      case MaintenanceJob::SUMS:
        return Fold(ctx, reply);
      case MaintenanceJob::INDEX:
        return Reindex(ctx, reply);
      case MaintenanceJob::BOOKS:
        return Audit(ctx);
      default:
        return Unknown();
    }
  }
  static Coroutine Unknown() { co_return absl::InvalidArgumentError("a job is SUMS, INDEX or BOOKS"); }

  Coroutine Fold(Context& ctx, MaintenanceReport* reply) {
    auto [folded] = co_await WhenAll(ctx, Ask(rating, Rating::kFold, apps::Nothing()));
    if (folded.ok()) reply->set_changed(folded->count());
    co_return folded.status();
  }

  Coroutine Audit(Context& ctx) {
    auto [audited] = co_await WhenAll(ctx, Ask(payments, PaymentAuth::kAudit, apps::Nothing()));
    co_return audited.status();
  }

  // Enters all movies into the index again.
  Coroutine Reindex(Context& ctx, MaintenanceReport* reply) {
    apps::IdPage page;
    page.set_limit(kMoviesAtOnce);
    do {
      auto [movies] = co_await WhenAll(ctx, Ask(info, MovieInfo::kList, page));
      if (!movies.ok()) co_return movies.status();
      if (movies->movies().empty()) break;
      apps::Ids ids;
      for (const Movie& movie : movies->movies()) ids.add_ids(movie.id());
      auto parts = co_await WhenAllOk(ctx, Ask(cast, CastInfo::kRead, ids), Ask(plot, Plot::kRead, ids));
      if (!parts.ok()) co_return parts.status();
      const auto& [casts, plots] = *parts;
      for (const Movie& movie : movies->movies()) {
        apps::IndexJob job = JobOf(movie, casts, plots);
        auto [queued] = co_await WhenAll(ctx, Ask(search, Search::kEnqueue, std::move(job)));
        if (!queued.ok()) co_return queued.status();
        reply->set_changed(reply->changed() + 1);
      }
      page.set_after(movies->movies().rbegin()->id());
    } while (true);
    co_return absl::OkStatus();
  }

  static apps::IndexJob JobOf(const Movie& movie, const Casts& casts, const PlotTexts& plots) {
    const auto of = [&](const auto& one) { return one.movie() == movie.id(); };
    const auto cast = std::ranges::find_if(casts.casts(), of);
    const auto plot = std::ranges::find_if(plots.plots(), of);
    return IndexJobOf(movie.id(), movie.title(), movie.year(), movie.genres(),
                      cast == casts.casts().end() ? Cast().names() : cast->names(),
                      plot == plots.plots().end() ? std::string() : plot->text());
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Run", {rating, info, cast, plot, search, payments}}};
  }

  Env& env;
  const Rating::Stub rating = env.Stub<Rating>("rating");
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  const CastInfo::Stub cast = env.Stub<CastInfo>("cast-info");
  const Plot::Stub plot = env.Stub<Plot>("plot");
  const Search::Stub search = env.Stub<Search>("search");
  const PaymentAuth::Stub payments = env.Stub<PaymentAuth>("payment-auth");
};

HostedService HostedMaintenance() {
  return {.name = "maintenance", .make = [](Env& env) { return std::make_unique<MaintenanceService>(env); }};
}

}  // namespace curtail::media
