// SPDX-License-Identifier: Apache-2.0
//
// Movie info: the movies, each by its id, and by its title and year.
#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"

namespace curtail::media {

constexpr int kMostYears = 100;  // of one title that an error lists

struct MovieInfoService final : MovieInfo::CoroutineService {
  MovieInfoService(SqlDatabase& d, std::unique_ptr<apps::Cache> c) : db(d), cache(std::move(c)) {}

  Coroutine Write(Context& ctx, const Movie& request, apps::Nothing*) override {
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
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
        ctx, cache.get(), db, "movie", {request.ids().begin(), request.ids().end()},
        "SELECT movie FROM movies WHERE id = ?1", [reply](uint64_t, std::string_view bytes) {
          reply->add_movies()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
        });
  }

  Coroutine List(Context& ctx, const apps::IdPage& request, Movies* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT movie FROM movies WHERE id > ?1 ORDER BY id LIMIT ?2",
                     {request.after(), uint64_t{apps::EdgeLimitOf(request.limit())}}, [&](const SqlRow& row) {
                       const std::string_view bytes = row.Text(0);
                       reply->add_movies()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
                     });
    });
  }

  Coroutine Find(Context& ctx, const MovieTitle& request, Movie* reply) override {
    std::string years;
    int found = 0;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
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

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
};

HostedService HostedMovieInfo() {
  return apps::HostedOnData(
      kApplication, "movie-info", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto cache = apps::Cache::Of(env, "movie-cache");
        if (!cache.ok()) return cache.status();
        auto db = apps::OpenData(env, data, "movie-info",
                                 {"CREATE TABLE movies(id INTEGER PRIMARY KEY, title TEXT NOT NULL,"
                                  " year INTEGER NOT NULL, movie BLOB NOT NULL) STRICT;"
                                  "CREATE UNIQUE INDEX movies_by_title ON movies(title, year)"});
        if (!db.ok()) return db.status();
        return std::make_unique<MovieInfoService>(**db, *std::move(cache));
      });
}

}  // namespace curtail::media
