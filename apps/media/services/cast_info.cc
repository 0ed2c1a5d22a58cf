// SPDX-License-Identifier: Apache-2.0
//
// Cast info: who plays in a movie.
#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/media/common/movie_db.h"

namespace curtail::media {

struct CastInfoService final : CastInfo::CoroutineService {
  explicit CastInfoService(MovieDb d) : db(std::move(d)) {}

  Coroutine Write(Context& ctx, const Cast& request, apps::Nothing*) override {
    const std::string bytes = request.SerializeAsString();
    co_return co_await db.Of(request.movie()).Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("INSERT INTO casts(movie, kept) VALUES (?1, ?2)",
                       {request.movie(), SqlValue::Bytes(bytes)});
    });
  }

  Coroutine Read(Context& ctx, const apps::Ids& request, Casts* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await apps::ReadRows(
        ctx, /*cache=*/nullptr, db.shards(),
        [this](uint64_t movie, size_t i) { return db.IndexOf(movie) == i; }, "",
        {request.ids().begin(), request.ids().end()}, "SELECT kept FROM casts WHERE movie = ?1",
        [reply](uint64_t, std::string_view bytes) {
          reply->add_casts()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
        });
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Write", {}}, {"Read", {}}}; }

  const MovieDb db;
};

HostedService HostedCastInfo() {
  return HostedOnMovieDb(
      "cast-info", {"CREATE TABLE casts(movie INTEGER PRIMARY KEY, kept BLOB NOT NULL) STRICT"},
      [](Env&, MovieDb db) -> MadeService { return std::make_unique<CastInfoService>(std::move(db)); });
}

}  // namespace curtail::media
