// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/jobs/saga.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "apps/kit/parallel.h"
#include "apps/kit/run_here.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

constexpr Nanos kStepTime = std::chrono::seconds(5);
constexpr uint64_t kRowsAtOnce = 64;
// The rows that the thread and its helpers finish at a time: one whose service is silent delays few others.
constexpr size_t kStepsAtOnce = 8;
constexpr char kColumns[] = "SELECT id, owner, round, state, open, due_ms, bytes, content FROM ";

SagaRow RowOf(const SqlRow& row) {
  return {.id = row.Unsigned(0),
          .owner = row.Unsigned(1),
          .round = static_cast<uint32_t>(row.Unsigned(2)),
          .state = static_cast<int>(row.Integer(3)),
          .open = row.Integer(4) != 0,
          .due_ms = row.Integer(5),
          .bytes = std::string(row.Text(6))};
}

bool BeginsAgain(const SagaRow& row, int again) { return !row.open && row.state == again; }

std::string KeyName(const Once& once) { return Join("key ", once.name()); }

}  // namespace

std::string SagaRow::RequestName(std::string_view what) const { return Join(what, " ", id, ".", round); }

std::string SagaSchema(std::string_view table) {
  return Join(
      "CREATE TABLE ", table,
      "(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL,"
      " round INTEGER NOT NULL, state INTEGER NOT NULL, open INTEGER NOT NULL, due_ms INTEGER NOT NULL,"
      " bytes BLOB NOT NULL) STRICT;"
      "CREATE UNIQUE INDEX ",
      table, "_by_name ON ", table, "(owner, name);CREATE INDEX ", table, "_open ON ", table,
      "(due_ms, id) WHERE open = 1");
}

Saga::Saga(SqlDatabase& db, std::string_view table, Step step, Nanos callers_time, int waits, Moved moved)
    : db_(db),
      table_(table),
      step_(std::move(step)),
      callers_time_(callers_time),
      waits_(waits),
      moved_(std::move(moved)),
      finisher_([this](auto stopping) { return FinishAll(stopping); }) {}

Coroutine Saga::Begin(Context& ctx, const Once& once, int again, SagaRow* row, Admit admit) {
  co_return co_await db_.Writing(ctx.deadline(),
                                 [&](SqlSession& s) { return Keep(s, once, again, admit, row); });
}

int64_t Saga::CallersDue() const {
  return Now() + std::chrono::duration_cast<std::chrono::milliseconds>(callers_time_).count();
}

int64_t Saga::Now() const {
  const int64_t now = NowMs();
  int64_t latest = latest_ms_.load(std::memory_order_relaxed);
  while (latest < now && !latest_ms_.compare_exchange_weak(latest, now, std::memory_order_relaxed)) {
  }
  return now;
}

absl::Status Saga::FindNamed(SqlSession& s, uint64_t owner, std::string_view name, const Once& once,
                             bool* known, SagaRow* row) const {
  bool same = true;
  absl::Status status = s.Query(Join(kColumns, table_, " WHERE owner = ?1 AND name = ?2"), {owner, name},
                                [&](const SqlRow& found) {
                                  same = found.Text(7) == once.content();
                                  *known = same;
                                  if (same) *row = RowOf(found);
                                });
  if (!status.ok() || same) return status;
  return absl::AlreadyExistsError(
      "the idempotency key was given to another request of this caller; take a new one for each request");
}

absl::Status Saga::WouldBegin(SqlSession& s, uint64_t owner, const Once& once, int again, bool* would) const {
  *would = true;
  if (!once.named()) return absl::OkStatus();
  bool known = false;
  SagaRow row;
  absl::Status status = FindNamed(s, owner, KeyName(once), once, &known, &row);
  *would = !known || BeginsAgain(row, again);
  return status;
}

absl::Status Saga::Keep(SqlSession& s, const Once& once, int again, const Admit& admit, SagaRow* row) const {
  const std::string name = once.named() ? KeyName(once) : Join("id ", row->id);
  bool known = false;
  SagaRow fresh = *row;
  absl::Status status = FindNamed(s, row->owner, name, once, &known, row);
  if (!status.ok() || (known && !BeginsAgain(*row, again))) return status;
  if (admit != nullptr) status = admit(s);
  if (!status.ok()) return status;
  if (known) {
    row->state = 0;
    row->open = true;
    row->due_ms = CallersDue();
    ++row->round;
    status =
        s.Execute(Join("UPDATE ", table_, " SET state = 0, open = 1, round = ?2, due_ms = ?3 WHERE id = ?1"),
                  {row->id, uint64_t{row->round}, row->due_ms});
    if (!status.ok() || s.changes() == 1) return status;
    *row = std::move(fresh);  // S5
  }
  if (row->due_ms == 0) row->due_ms = CallersDue();
  return s.Execute(
      Join("INSERT INTO ", table_,
           "(id, owner, name, content, round, state, open, due_ms, bytes)"
           " VALUES (?1, ?2, ?3, ?4, 0, ?5, 1, ?6, ?7)"),
      {row->id, row->owner, name, once.content(), row->state, row->due_ms, SqlValue::Bytes(row->bytes)});
}

Coroutine Saga::Finish(Context& ctx, SagaRow* row) {
  while (row->open) {
    SagaRow next = *row;
    absl::Status stepped = co_await step_(ctx, next);
    const bool outcome = next.state != row->state || !next.open || next.bytes != row->bytes;
    if (!outcome && stepped.ok()) stepped = absl::InternalError(Join(table_, ": a step has no outcome"));
    if (!outcome) co_return stepped;
    const int before = row->state, made = next.state;
    absl::Status written = co_await Replace(ctx, *row, &next);
    if (!written.ok()) co_return written;
    *row = std::move(next);
    const bool others = row->state != made && row->state != before;  // S3: this attempt goes on from theirs
    if (!stepped.ok() && !others) co_return stepped;
  }
  co_return absl::OkStatus();
}

absl::Status Saga::Move(SqlSession& s, const SagaRow& row, SagaRow* next) const {
  absl::Status status = s.Execute(
      Join("UPDATE ", table_,
           " SET state = ?4, open = ?5, bytes = ?6, due_ms = CASE WHEN ?5 = 0 THEN ?7 ELSE due_ms END"
           " WHERE id = ?1 AND round = ?2 AND state = ?3 AND open = 1"),
      {row.id, uint64_t{row.round}, row.state, next->state, next->open ? 1 : 0, SqlValue::Bytes(next->bytes),
       next->due_ms});
  if (!status.ok()) return status;
  if (s.changes() == 1) return moved_ == nullptr ? status : moved_(s, *next);
  bool known = false;
  status = s.Query(Join(kColumns, table_, " WHERE id = ?1"), {row.id}, [&](const SqlRow& found) {
    known = true;
    *next = RowOf(found);
  });
  return status.ok() && !known ? absl::NotFoundError(Join(table_, ": row ", row.id, " was forgotten"))
                               : status;
}

Coroutine Saga::Replace(Context& ctx, const SagaRow& row, SagaRow* next) {
  const Durable durable = next->decided_elsewhere ? Durable::kSoon : Durable::kNow;
  next->decided_elsewhere = false;
  co_return co_await db_.Writing(ctx.deadline(), [&](SqlSession& s) { return Move(s, row, next); }, durable);
}

Coroutine Saga::Find(Context& ctx, uint64_t owner, uint64_t id, SagaRow* row) {
  co_return co_await db_.Reading(ctx.deadline(), [&](SqlSession& s) {
    return s.Query(Join(kColumns, table_, " WHERE id = ?1 AND owner = ?2"), {id, owner},
                   [&](const SqlRow& found) { *row = RowOf(found); });
  });
}

absl::Status Saga::CatchUp() {
  constexpr int64_t kSetBackMs = 1000;
  const int64_t now = NowMs();
  if (now < latest_ms_.load(std::memory_order_relaxed) - kSetBackMs) {
    catch_up_ = 2;
    latest_ms_.store(now, std::memory_order_relaxed);
  }
  if (catch_up_ == 0) return absl::OkStatus();
  absl::Status status = db_.Write(Deadline::In(kStepTime), [&](SqlSession& s) {
    return s.Execute(
        Join("UPDATE ", table_, " SET due_ms = ?1 WHERE open = 1 AND due_ms > ?1 AND state <> ?2"),
        {CallersDue(), waits_});
  });
  catch_up_ -= status.ok() ? 1 : 0;
  return status;
}

absl::Status Saga::FinishAll(absl::FunctionRef<bool()> stopping) {
  absl::Status first = CatchUp();
  if (!first.ok()) return first;
  const int64_t now = Now();
  int64_t due = 0;
  uint64_t id = 0, seen = kRowsAtOnce;
  while (seen == kRowsAtOnce && !stopping()) {
    std::vector<SagaRow> rows;
    absl::Status read = db_.Read(Deadline::In(kStepTime), [&](SqlSession& s) {
      return s.Query(
          Join(kColumns, table_,
               " WHERE open = 1 AND due_ms <= ?1 AND (due_ms, id) > (?2, ?3) ORDER BY due_ms, id LIMIT ?4"),
          {now, due, id, kRowsAtOnce}, [&](const SqlRow& row) { rows.push_back(RowOf(row)); });
    });
    if (!read.ok()) return read;
    seen = rows.size();
    if (seen == 0) break;
    due = rows.back().due_ms;
    id = rows.back().id;
    first.Update(FinishThese(rows, stopping));
  }
  return first;
}

absl::Status Saga::FinishThese(std::vector<SagaRow>& rows, absl::FunctionRef<bool()> stopping) {
  std::atomic<size_t> next{0};
  const size_t threads = std::min(kStepsAtOnce, rows.size());
  return ForRanges(0, threads, static_cast<int>(threads), [&](size_t, size_t) {
    absl::Status first;
    for (size_t i = next++; i < rows.size() && !stopping(); i = next++) {
      Context ctx(kStepTime);
      absl::Status finished = absl::InternalError(Join(table_, ": exception in a step"));
      Contain(table_, [&] { finished = RunHere(Finish(ctx, &rows[i])); });
      if (rows[i].open) first.Update(finished);
    }
    return first;
  });
}

const char kRefusalsSchema[] =
    "CREATE TABLE refusals(id INTEGER, round INTEGER, why TEXT NOT NULL, PRIMARY KEY(id, round)) STRICT";

Coroutine DecideOnce(Context& ctx, SqlDatabase& db, uint64_t id, uint32_t round, Saga::Admit decide) {
  absl::Status refused;
  absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
    absl::Status done =
        s.Query("SELECT why FROM refusals WHERE id = ?1 AND round = ?2", {id, uint64_t{round}},
                [&](const SqlRow& row) { refused = absl::FailedPreconditionError(Join(row.Text(0))); });
    if (!done.ok() || !refused.ok()) return done;
    done = decide(s);
    if (!absl::IsFailedPrecondition(done)) return done;
    refused = done;
    return s.Execute("INSERT INTO refusals(id, round, why) VALUES (?1, ?2, ?3)",
                     {id, uint64_t{round}, Message(refused)});
  });
  if (status.ok()) status = refused;
  co_return status;
}

}  // namespace curtail::apps
