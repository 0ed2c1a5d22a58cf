// SPDX-License-Identifier: Apache-2.0
//
// Rating: the stars of a review, and the sums of a movie. A review counts once, by its id; a row of one that was removed stays, so
// that it never counts again.
#include "apps/kit/page.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"

namespace curtail::media {

constexpr uint32_t kMostStars = 10;

struct RatingService final : Rating::CoroutineService {
  RatingService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Upload(Context& ctx, const UploadRequest& request, Composed* reply) override {
    if (request.opinion().stars() > kMostStars)
      co_return absl::InvalidArgumentError(Join("a review has 0 to ", kMostStars, " stars"));
    if (request.opinion().viewing() >> 63 != 0)
      co_return absl::InvalidArgumentError("a viewing is a number below 2^63");
    Part part;
    *part.mutable_opinion() = request.opinion();
    co_return co_await PutPart(ctx, compose, request.request(), std::move(part), reply);
  }

  Coroutine Add(Context& ctx, const ReviewRef& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = Insert(s, request, /*removed=*/0);
      return status.ok() && s.changes() > 0 ? Count(s, request, 1) : status;
    });
  }

  Coroutine Remove(Context& ctx, const ReviewRef& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status =
          s.Execute("UPDATE ratings SET removed = 1 WHERE review = ?1 AND removed = 0", {request.review()});
      if (!status.ok()) return status;
      return s.changes() > 0 ? Count(s, request, -1) : Insert(s, request, /*removed=*/1);
    });
  }

  static absl::Status Insert(SqlSession& s, const ReviewRef& ref, int removed) {
    return s.Execute(
        "INSERT INTO ratings(review, movie, author, stars, removed) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT(review) DO NOTHING",
        {ref.review(), ref.movie(), ref.author(), uint64_t{ref.stars()}, removed});
  }

  static absl::Status Count(SqlSession& s, const ReviewRef& ref, int64_t by) {
    return s.Execute(
        "INSERT INTO sums(movie, reviews, stars) VALUES (?1, ?2, ?3) ON CONFLICT(movie) DO UPDATE"
        " SET reviews = sums.reviews + ?2, stars = sums.stars + ?3",
        {ref.movie(), by, by * static_cast<int64_t>(ref.stars())});
  }

  Coroutine Sum(Context& ctx, const RatingQuery& request, RatingSum* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT reviews, stars FROM sums WHERE movie = ?1", {request.movie()},
                     [&](const SqlRow& row) { Put(row, reply); });
    });
  }

  Coroutine Mine(Context& ctx, const RatingQuery& request, RatingSum* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT count(*), CAST(coalesce(sum(stars), 0) AS INTEGER) FROM ratings"
          " WHERE author = ?1 AND movie = ?2 AND removed = 0",
          {request.author(), request.movie()}, [&](const SqlRow& row) { Put(row, reply); });
    });
  }

  Coroutine Fold(Context& ctx, const apps::Nothing&, apps::IdCount* reply) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      constexpr std::string_view kFolded =
          "(SELECT movie, count(*) AS reviews, CAST(sum(stars) AS INTEGER) AS stars FROM ratings"
          " WHERE removed = 0 GROUP BY movie) AS folded";
      absl::Status status = s.Execute(
          "UPDATE sums SET reviews = 0, stars = 0 WHERE reviews <> 0 AND NOT EXISTS"
          " (SELECT 1 FROM ratings WHERE ratings.movie = sums.movie AND removed = 0)",
          {});
      if (!status.ok()) return status;
      uint64_t changed = s.changes();
      status = s.Execute(Join("INSERT INTO sums(movie, reviews, stars) SELECT folded.movie, folded.reviews, "
                              "folded.stars FROM ",
                              kFolded,
                              " WHERE true ON CONFLICT(movie) DO UPDATE SET reviews = excluded.reviews, "
                              "stars = excluded.stars"
                              " WHERE sums.reviews <> excluded.reviews OR sums.stars <> excluded.stars"),
                         {});
      changed += status.ok() ? s.changes() : 0;
      reply->set_count(static_cast<uint32_t>(changed));
      return status;
    });
  }

  Coroutine RatedBy(Context& ctx, const apps::UserId& request, apps::Ids* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT movie FROM ratings WHERE author = ?1 AND removed = 0 GROUP BY movie "
          "ORDER BY max(review) DESC LIMIT ?2",
          {request.user(), uint64_t{apps::kMostIds}},
          [&](const SqlRow& row) { reply->add_ids(row.Unsigned(0)); });
    });
  }

  static void Put(const SqlRow& row, RatingSum* sum) {
    sum->set_reviews(row.Unsigned(0));
    sum->set_stars(row.Unsigned(1));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Upload", {compose}}, {"Add", {}},     {"Remove", {}}, {"Sum", {}},
            {"Mine", {}},          {"RatedBy", {}}, {"Fold", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const ComposeReview::Stub compose = env.Stub<ComposeReview>("compose-review");
};

HostedService HostedRating() {
  return apps::HostedWithData<RatingService>(
      kApplication, "rating",
      {"CREATE TABLE ratings(review INTEGER PRIMARY KEY, movie INTEGER NOT NULL, author INTEGER NOT NULL,"
       " stars INTEGER NOT NULL, removed INTEGER NOT NULL) STRICT;"
       "CREATE INDEX ratings_of ON ratings(author, movie);"
       "CREATE TABLE sums(movie INTEGER PRIMARY KEY, reviews INTEGER NOT NULL, stars INTEGER NOT NULL) "
       "STRICT"});
}

}  // namespace curtail::media
