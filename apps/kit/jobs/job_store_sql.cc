// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. An acknowledged job is a row. The thread takes rows in their order, and deletes a row when its job is done.
// There is one consumer. A row stores when its job is due by the wall clock. No pause is longer than kLastPause, so a job that is due
// later failed while the clock was ahead, and is due now.
#include <algorithm>
#include <charconv>
#include <chrono>

#include "apps/kit/jobs/job_store.h"
#include "apps/kit/jobs/pauses.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

const char kJobSchema[] =
    "CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL, due_ms INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL) STRICT";

namespace {

constexpr int kJobsAtOnce = 64;
constexpr int64_t kLastPauseMs = kLastPause / std::chrono::milliseconds(1);
// Without jobs: a process that this one replaces may still put some.
constexpr Nanos kIdleLook = std::chrono::seconds(1);

int64_t RowOf(const Job& job) {
  int64_t row = 0;
  std::from_chars(job.id.data(), job.id.data() + job.id.size(), row);
  return row;
}

class SqlJobs final : public JobStore {
 public:
  SqlJobs(SqlDatabase* db, uint64_t most) : db_(*db), most_(most) {}

  Coroutine Put(Context& ctx, std::string bytes) override {
    co_return co_await db_.Writing(ctx.deadline(), [&](SqlSession& s) {
      // Rows are numbered in their order, so that the ends tell how many there may be at most.
      uint64_t span = 0;
      absl::Status counted = s.Query("SELECT coalesce(max(id) - min(id) + 1, 0) FROM jobs", {},
                                     [&](const SqlRow& row) { span = row.Unsigned(0); });
      // A job that fails again and again is far before the others.
      if (counted.ok() && span >= most_)
        counted =
            s.Query("SELECT count(*) FROM jobs", {}, [&](const SqlRow& row) { span = row.Unsigned(0); });
      if (!counted.ok()) return counted;
      if (span >= most_) return absl::ResourceExhaustedError("the queue is full");
      return s.Execute("INSERT INTO jobs(job, due_ms, attempts) VALUES (?1, 0, 0)", {SqlValue::Bytes(bytes)});
    });
  }

  Coroutine Count(Context& ctx, uint64_t* jobs) override {
    co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT count(*) FROM jobs", {}, [&](const SqlRow& row) { *jobs = row.Unsigned(0); });
    });
  }

  absl::Status Take(std::vector<Job>* jobs) override {
    return db_.Read(Deadline::In(kJobTime), [&](SqlSession& s) {
      return s.Query(
          "SELECT id, attempts, job FROM jobs WHERE NOT due_ms BETWEEN ?1 + 1 AND ?1 + ?2 ORDER BY id LIMIT "
          "?3",
          {NowMs(), kLastPauseMs, kJobsAtOnce}, [&](const SqlRow& row) {
            jobs->push_back(
                {.id = Join(row.Integer(0)), .attempts = row.Integer(1), .bytes = std::string(row.Text(2))});
          });
    });
  }

  absl::Status Settle(std::span<const Job> jobs) override {
    return db_.Write(Deadline::In(kJobTime), [&](SqlSession& s) {
      absl::Status each;
      for (const Job& job : jobs) {
        if (job.done) {
          each.Update(s.Execute("DELETE FROM jobs WHERE id = ?1", {RowOf(job)}));
        } else {
          const int64_t pause = PauseAfter(job.attempts) / std::chrono::milliseconds(1);
          each.Update(s.Execute("UPDATE jobs SET due_ms = ?2, attempts = ?3 WHERE id = ?1",
                                {RowOf(job), NowMs() + pause, job.attempts}));
        }
      }
      return each;
    });
  }

  Deadline NextLook() override {
    const int64_t now = NowMs();
    int64_t due_ms = -1;
    const absl::Status status = db_.Read(Deadline::In(kJobTime), [&](SqlSession& s) {
      return s.Query("SELECT coalesce(min(CASE WHEN due_ms > ?1 THEN 0 ELSE due_ms END), -1) FROM jobs",
                     {now + kLastPauseMs}, [&](const SqlRow& row) { due_ms = row.Integer(0); });
    });
    if (!status.ok()) return Deadline::In(kFirstPause);
    if (due_ms < 0) return Deadline::In(kIdleLook);
    return Deadline::In(std::chrono::milliseconds(std::clamp<int64_t>(due_ms - now, 0, kLastPauseMs)));
  }

 private:
  SqlDatabase& db_;
  const uint64_t most_;
};

}  // namespace

std::unique_ptr<JobStore> MakeSqlJobs(SqlDatabase* db, uint64_t most) {
  return std::make_unique<SqlJobs>(db, most);
}

}  // namespace curtail::apps
