// SPDX-License-Identifier: Apache-2.0
//
// Movie info: the movies, each by its id, and by its title and year. All movies of a title are in one shard, which so has each title and year
// once. An id may be in any.
#include <algorithm>

#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/media/common/movie_db.h"
#include "curtail/base/strings.h"

namespace curtail::media {

constexpr int kMostYears = 100;  // of one title that an error lists

struct MovieInfoService final : MovieInfo::CoroutineService {
  MovieInfoService(MovieDb d, std::unique_ptr<apps::Cache> c) : db(std::move(d)), cache(std::move(c)) {}

  Coroutine Write(Context& ctx, const Movie& request, apps::Nothing*) override {
    absl::Status status = co_await db.Of(request.title()).Writing(ctx.deadline(), [&](SqlSession& s) {
      const std::string bytes = request.SerializeAsString();
      return s.Execute("INSERT INTO movies(id, title, year, movie) VALUES (?1, ?2, ?3, ?4)",
                       {request.id(), request.title(), uint64_t{request.year()}, SqlValue::Bytes(bytes)});
    });
    if (absl::IsAlreadyExists(status))
      status = absl::AlreadyExistsError("there is a movie of this title and year");
    co_return status;
  }

  Coroutine Read(Context& ctx, const apps::Ids& request, Movies* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await apps::ReadRows(
        ctx, cache.get(), db.shards(), [](uint64_t, size_t) { return true; }, "movie",
        {request.ids().begin(), request.ids().end()}, "SELECT movie FROM movies WHERE id = ?1",
        [reply](uint64_t, std::string_view bytes) {
          reply->add_movies()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
        });
  }

  Coroutine List(Context& ctx, const apps::IdPage& request, Movies* reply) override {
    const uint32_t limit = apps::EdgeLimitOf(request.limit());
    for (SqlDatabase* const shard : db.shards()) {
      absl::Status status = co_await shard->Reading(ctx.deadline(), [&](SqlSession& s) {
        return s.Query("SELECT movie FROM movies WHERE id > ?1 ORDER BY id LIMIT ?2",
                       {request.after(), uint64_t{limit}}, [&](const SqlRow& row) {
                         const std::string_view bytes = row.Text(0);
                         reply->add_movies()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
                       });
      });
      if (!status.ok()) co_return status;
    }
    auto& movies = *reply->mutable_movies();
    std::sort(movies.pointer_begin(), movies.pointer_end(),
              [](const Movie* a, const Movie* b) { return a->id() < b->id(); });
    if (const int most = static_cast<int>(limit); movies.size() > most)
      movies.DeleteSubrange(most, movies.size() - most);
    co_return absl::OkStatus();
  }

  Coroutine Find(Context& ctx, const MovieTitle& request, Movie* reply) override {
    std::string years;
    int found = 0;
    absl::Status status = co_await db.Of(request.title()).Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT movie, year FROM movies WHERE title = ?1 AND (?2 = 0 OR year = ?2) ORDER BY year LIMIT ?3",
          {request.title(), uint64_t{request.year()}, kMostYears}, [&](const SqlRow& row) {
            years += Join(found++ == 0 ? "" : ", ", row.Integer(1));
            const std::string_view bytes = row.Text(0);
            reply->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
          });
    });
    if (!status.ok() || found == 1) co_return status;
    reply->Clear();
    if (found == 0) co_return absl::NotFoundError("there is no movie of this title and year");
    co_return absl::FailedPreconditionError(Join("several movies have this title; give the year: ", years));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Write", {}}, {"Read", {}}, {"List", {}}, {"Find", {}}};
  }

  const MovieDb db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
};

HostedService HostedMovieInfo() {
  return HostedOnMovieDb("movie-info",
                         {"CREATE TABLE movies(id INTEGER PRIMARY KEY, title TEXT NOT NULL,"
                          " year INTEGER NOT NULL, movie BLOB NOT NULL) STRICT;"
                          "CREATE UNIQUE INDEX movies_by_title ON movies(title, year)"},
                         [](Env& env, MovieDb db) -> MadeService {
                           auto cache = apps::Cache::Of(env, "movie-cache");
                           if (!cache.ok()) return cache.status();
                           return std::make_unique<MovieInfoService>(std::move(db), *std::move(cache));
                         });
}

}  // namespace curtail::media
