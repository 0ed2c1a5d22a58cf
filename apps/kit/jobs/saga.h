// SPDX-License-Identifier: Apache-2.0
//
// saga.h - work of several steps at several services, which goes on to its end once it is kept, whatever dies.
//
//   Saga payments(db, "payments", [this](Context& ctx, SagaRow& row) { return Step(ctx, row); });
//   ...
//   status = co_await payments.Begin(ctx, once, kAgain, &row);
//   if (status.ok()) status = co_await payments.Finish(ctx, &row);
//
//  S1  A saga is kept as a row, with the name of its request and a digest of its content, before its first step. A repetition
//      finds this row.
//  S2  A step asks another service for what the state wants, by the id and the round of the row. That service decides, and
//      remembers its answer by this name, be it a refusal. So all attempts at a step have one outcome.
//  S3  The outcome is the next state. It is written if the row still has the state of before: of two attempts one writes, and
//      both go on from what is written. One that was decided elsewhere need not reach the disk before its caller is told.
//  S4  A row that is open is gone on with even if its caller is gone, by a thread, from the time at which it is due.
//      A clock that was ahead does not delay it: unless the row is in the state `waits`, its time is its caller's only.
//  S5  A row that has ended stays as it is. But a repetition of one that ended in the state `again` begins its next round; or, if the
//      application has deleted it, a new row.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/once.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

struct SagaRow {
  uint64_t id = 0;  // unique, and not 0
  uint64_t owner = 0;
  uint32_t round = 0;
  int state = 0;     // of the application; a repetition of S5 begins with 0
  bool open = true;  // false: it has ended
  // Since 1970; 0: its caller goes on with it, and the thread leaves it alone for a while. A step that ends the row may set it.
  int64_t due_ms = 0;
  std::string bytes;  // of the application: what the steps need, and what they have found
  // Of a step, beside its outcome: whoever decided has it, so that an attempt after a loss of power finds it again.
  bool decided_elsewhere = false;

  // The name by which a step asks: S2.
  std::string RequestName(std::string_view what) const;
};

// The table of a kind of saga, a step of the schema of its service. `table` is a name in SQL.
std::string SagaSchema(std::string_view table);

// A Saga is a kind of saga, and the thread that finishes them. Thread-safe. Several processes may use one database. All calls have
// the errors of SqlDatabase, too.
class Saga {
 public:
  static constexpr int kNeverAgain = -1, kNeverWaits = -1;
  // Attempts what `row.state` wants, and sets what has come of it: state, open, bytes. May run several times, also at once. An
  // error that leaves `row` alone is no outcome, and is tried again. With an outcome, it is what the caller is told.
  using Step = std::function<Coroutine(Context& ctx, SagaRow& row)>;
  // Runs in the transaction that keeps a new row, or begins one again. An error changes nothing. It may delete rows that have ended,
  // also the one that would begin again.
  using Admit = std::function<absl::Status(SqlSession& s)>;

  // Runs in the transaction that writes an outcome, which is `next`, so once for each. An error writes nothing.
  using Moved = std::function<absl::Status(SqlSession& s, const SagaRow& next)>;

  // `db` has SagaSchema(table), and outlives the object. The thread leaves a row to its caller for `callers_time`. A row in the state
  // `waits` waits for a time that the application gave. `moved` may be null.
  Saga(SqlDatabase& db, std::string_view table, Step step, Nanos callers_time = std::chrono::seconds(5),
       int waits = kNeverWaits, Moved moved = nullptr);
  // Has `env` start the thread once all services can be called, and stop it before any is gone.
  void WorkWhileServing(Env& env) { finisher_.WorkWhileServing(env); }

  // Keeps `*row`, which has an id, an owner, a state and bytes; or sets it to the one of the same request. Without a name the request is a
  // new one each time. ALREADY_EXISTS: the name was given to another content. Other errors: as `admit`, which may be null.
  Coroutine Begin(Context& ctx, const Once& once, int again, SagaRow* row, Admit admit = nullptr);
  // Looks whether Begin() would keep a new row, or begin one again. ALREADY_EXISTS, as Begin().
  absl::Status WouldBegin(SqlSession& s, uint64_t owner, const Once& once, int again, bool* would) const;
  // Takes the steps that are left. Errors: as the step; then the thread goes on, unless the saga has ended.
  Coroutine Finish(Context& ctx, SagaRow* row);
  // Writes `*next` in place of `row` if that still has its state, or sets `*next` to what somebody else has written. NOT_FOUND: the
  // application has deleted the row, which it may do once it has ended.
  Coroutine Replace(Context& ctx, const SagaRow& row, SagaRow* next);
  // Looks for a saga of `owner`; `row->id` stays 0 if there is none.
  Coroutine Find(Context& ctx, uint64_t owner, uint64_t id, SagaRow* row);
  // Goes on with those whose callers have left them, some at a time. Returns an error if one was met; a refusal is none. May block. For
  // one thread; asks `stopping` on others.
  absl::Status FinishAll(absl::FunctionRef<bool()> stopping);

 private:
  int64_t CallersDue() const;
  // Reads the clock, and notes that it has been there.
  int64_t Now() const;
  // Lets rows be due that were begun when the clock was ahead: after a start, and once it was set back.
  absl::Status CatchUp();
  // Takes all steps of `rows` that can be taken: S4.
  absl::Status FinishThese(std::vector<SagaRow>& rows, absl::FunctionRef<bool()> stopping);
  absl::Status Keep(SqlSession& s, const Once& once, int again, const Admit& admit, SagaRow* row) const;
  // Sets `*row` to the one of the request, if there is one. ALREADY_EXISTS, as Begin().
  absl::Status FindNamed(SqlSession& s, uint64_t owner, std::string_view name, const Once& once, bool* known,
                         SagaRow* row) const;
  // Writes `*next` in place of `row`, or sets it to what somebody else has written: S3.
  absl::Status Move(SqlSession& s, const SagaRow& row, SagaRow* next) const;

  SqlDatabase& db_;
  const std::string table_;
  const Step step_;
  const Nanos callers_time_;
  const int waits_;
  const Moved moved_;

  // Atomic, relaxed: only a hint that the clock was set back. The latest time that it had since CatchUp().
  mutable std::atomic<int64_t> latest_ms_{0};
  // Owned by the thread of FinishAll(). Rounds; the second is for a row whose time was read before the clock was set back.
  int catch_up_ = 2;

  Finisher finisher_;
};

// A step of the schema of a service that calls DecideOnce().
extern const char kRefusalsSchema[];

// For a step that its own service decides: runs `decide` in a transaction. FAILED_PRECONDITION, by a `decide` that has written nothing,
// stands for all attempts at this round of `id`: S2. Without that, an attempt that is refused could end the saga while
// another one, which came later and was not refused, moves money.
Coroutine DecideOnce(Context& ctx, SqlDatabase& db, uint64_t id, uint32_t round, Saga::Admit decide);

}  // namespace curtail::apps
