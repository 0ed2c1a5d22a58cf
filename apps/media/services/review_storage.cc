// SPDX-License-Identifier: Apache-2.0
//
// Review storage: the reviews, and which of them count. A row is never deleted: a review that was taken back stays so, whatever
// comes late.
#include <chrono>

#include "apps/kit/data/cache.h"
#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "apps/media/data.h"

namespace curtail::media {

// `state`: 0 pending, 1 acknowledged, 2 taken back, 3 taken back and in no list.
const char kReviewSchema[] =
    "CREATE TABLE reviews(id INTEGER PRIMARY KEY, author INTEGER NOT NULL, movie INTEGER NOT NULL,"
    " viewing INTEGER NOT NULL, state INTEGER NOT NULL, since_ms INTEGER NOT NULL, review BLOB NOT NULL) "
    "STRICT;"
    "CREATE UNIQUE INDEX reviews_of ON reviews(author, movie, viewing) WHERE state < 2;"
    "CREATE INDEX reviews_left ON reviews(id) WHERE state = 0 OR state = 2";
constexpr int64_t kPending = 0, kAcknowledged = 1, kTakenBack = 2, kNone = -1;
// A review that is pending for longer is taken back.
constexpr int64_t kTimeMs = 5000;
constexpr uint32_t kLeftAtOnce = 100;

struct ReviewStorageService final : ReviewStorage::CoroutineService {
  ReviewStorageService(SqlDatabase& d, std::unique_ptr<apps::Cache> c) : db(d), cache(std::move(c)) {}

  Coroutine Store(Context& ctx, const Review& request, Review* reply) override {
    apps::Once once(ctx, request.author().id());
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      Review first;
      absl::Status status = once.Look(s, &first);
      if (!status.ok()) return status;
      int64_t state = kNone;
      if (once.repeated()) status = StateOf(s, first.id(), &state);
      if (!status.ok()) return status;
      *reply = request;
      if (state == kPending || state == kAcknowledged) {
        reply->Swap(&first);
        return status;
      }
      status = Insert(s, request, reply);
      return status.ok() ? once.Keep(s, *reply, apps::Once::Seen::kDone) : status;
    });
  }

  static absl::Status StateOf(SqlSession& s, uint64_t id, int64_t* state) {
    return s.Query("SELECT state FROM reviews WHERE id = ?1", {id},
                   [&](const SqlRow& row) { *state = row.Integer(0); });
  }

  // Sets `*stored` to the review of this id that is there.
  static absl::Status Insert(SqlSession& s, const Review& review, Review* stored) {
    int64_t own = kNone, other = kNone;
    absl::Status status =
        s.Query("SELECT state, review FROM reviews WHERE id = ?1", {review.id()}, [&](const SqlRow& row) {
          own = row.Integer(0);
          const std::string_view bytes = row.Text(1);
          stored->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
        });
    status.Update(
        s.Query("SELECT state FROM reviews WHERE author = ?1 AND movie = ?2 AND viewing = ?3 AND state < 2",
                {review.author().id(), review.movie(), review.viewing()},
                [&](const SqlRow& row) { other = row.Integer(0); }));
    if (!status.ok() || own == kPending || own == kAcknowledged) return status;
    if (own != kNone) return absl::AbortedError("the review was taken back; try again");
    if (other == kAcknowledged) return absl::AlreadyExistsError("you have reviewed this movie");
    if (other == kPending)
      return absl::AbortedError("another review of this movie is being written; try again");
    return Put(s, review, kPending);
  }

  static absl::Status Put(SqlSession& s, const Review& review, int64_t state) {
    const std::string bytes = review.SerializeAsString();
    return s.Execute(
        "INSERT INTO reviews(id, author, movie, viewing, state, since_ms, review)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        " ON CONFLICT(id) DO UPDATE SET state = excluded.state WHERE reviews.state = 0",
        {review.id(), review.author().id(), review.movie(), review.viewing(), state, apps::NowMs(),
         SqlValue::Bytes(bytes)});
  }

  Coroutine Acknowledge(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status =
          s.Execute("UPDATE reviews SET state = 1 WHERE id = ?1 AND state < 2", {request.ids(0)});
      if (status.ok() && s.changes() == 0)
        status = absl::AbortedError("the review was taken back; try again");
      return status;
    });
  }

  Coroutine Delete(Context& ctx, const Review& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      int64_t state = kNone;
      absl::Status status = Put(s, request, kTakenBack);
      status.Update(StateOf(s, request.id(), &state));
      if (status.ok() && state == kAcknowledged)
        status = absl::FailedPreconditionError("the review is acknowledged");
      return status;
    });
  }

  Coroutine Settle(Context& ctx, const apps::Ids& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("UPDATE reviews SET state = 3 WHERE id = ?1 AND state = 2", {request.ids(0)});
    });
  }

  Coroutine Read(Context& ctx, const apps::Ids& request, ReviewList* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await apps::ReadRows(ctx, cache.get(), db, "review",
                                      {request.ids().begin(), request.ids().end()},
                                      "SELECT review FROM reviews WHERE id = ?1 AND state = 1",
                                      [reply](uint64_t, std::string_view bytes) { Add(bytes, reply); });
  }

  Coroutine ListLeft(Context& ctx, const apps::IdPage& request, ReviewList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT review FROM reviews WHERE (state = 0 OR state = 2) AND id > ?1 AND since_ms < ?2"
          " ORDER BY id LIMIT ?3",
          {request.after(), apps::NowMs() - kTimeMs, uint64_t{kLeftAtOnce}},
          [&](const SqlRow& row) { Add(row.Text(0), reply); });
    });
  }

  static void Add(std::string_view bytes, ReviewList* list) {
    list->add_reviews()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Store", {}},  {"Acknowledge", {}}, {"Delete", {}},
            {"Settle", {}}, {"Read", {}},        {"ListLeft", {}}};
  }

  SqlDatabase& db;
  const std::unique_ptr<apps::Cache> cache;  // may be null
};

HostedService HostedReviewStorage() {
  return apps::HostedOnData(
      kApplication, "review-storage", [](Env& env, const apps::DataOptions& data) -> MadeService {
        auto cache = apps::Cache::Of(env, "review-cache");
        if (!cache.ok()) return cache.status();
        auto db = apps::OpenData(env, data, "review-storage", {kReviewSchema, apps::kOnceSchema});
        if (!db.ok()) return db.status();
        return std::make_unique<ReviewStorageService>(**db, *std::move(cache));
      });
}

}  // namespace curtail::media
