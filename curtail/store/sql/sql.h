// SPDX-License-Identifier: Apache-2.0
//
// sql.h - a client of one SQLite file, or of one schema of a PostgreSQL server, for handlers, which
// wait as the threading model waits.
//
//   absl::Status status = db.Read(ctx.deadline(), [&](SqlSession& s) {
//     return s.Query("SELECT name FROM users WHERE id = ?1", {id}, [&](const SqlRow& row) { ... });
//   });
//
// SQLite blocks its thread, and work asks one thing after the other. So a few threads of the
// client's own run the work, and the caller waits: a fiber as a fiber, a thread asleep. While reads
// of a file are quick, a caller runs them itself, on its own stack: that costs it no wake-up. A
// coroutine writes `co_await db.Reading(...)`. Under asynchronous models it leaves its thread, and
// the response pool resumes it; in a program without that pool the client's thread.
//
// One thread writes. It takes all writes that wait, up to a limit, and commits them together, so
// that they share one fsync. A write that fails undoes nothing of the others.
//
// Statements are written for SQLite. PostgreSQL gets them as dialect.h says, which also has the
// rules for a statement that both take.
//
// When not to use it: work that computes for long delays all writes behind it. Data that several
// machines share needs PostgreSQL.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/task.h"
#include "curtail/store/sql/session.h"

namespace curtail {

class Executor;

struct SqlOptions {
  // The file; with `postgresql`, the name of the schema: lower-case letters, digits and _.
  std::string path;
  // The server, "unix:PATH" or "HOST:PORT", or several with commas between them: a primary, which
  // answers all calls, and its standbys, in any order. PATH is a socket as servers make it,
  // DIR/.s.PGSQL.NUMBER, or a link to one. libpq takes the rest from its environment: PGUSER,
  // PGPASSWORD, PGDATABASE (postgres), PGSSLMODE (verify-full), PGSSLROOTCERT. PGPASSWORD_FILE
  // names a file that has the password alone. Empty: SQLite.
  std::string postgresql = {};
  // The schema: migrations[i] is a script that leads from version i to i + 1.
  std::vector<std::string> migrations;
  // Threads that read. Raise it when reads wait for each other.
  int readers = 1;
  // Reads, and writes, that may wait at once; more are refused.
  size_t queue = 1024;
  // Writes that one commit takes.
  size_t batch = 64;
  // How long another process may hold the lock of the file, or of the schema. A server that has not
  // answered in twice the time is given up.
  Nanos busy_timeout = std::chrono::seconds(5);
  // A file grows to this at most; 0: to what the disk holds.
  uint64_t max_bytes = 0;
  // A write that was acknowledged survives a loss of power. Without it, only the process's end; of
  // a primary with a standby also the end of the primary.
  bool sync = true;
};

// When a write of a file survives a loss of power: once it is acknowledged, or once a later one
// that is kNow is. Others see it, and it survives the process's end, at once. A server takes all as
// kNow.
enum class Durable : uint8_t { kNow, kSoon };

// Since the start, but for waiting.
struct SqlStats {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t commits = 0;  // each of one or more writes
  uint64_t refused = 0;  // the queue was full
  uint64_t late = 0;     // the deadline had passed before they began
  uint64_t failed = 0;   // of calls that began
  size_t waiting = 0;
};

namespace internal {

// One piece of work, which lies where its caller waits.
class SqlJob final : public Task {
 public:
  using Work = absl::FunctionRef<absl::Status(SqlSession& session)>;
  SqlJob(Work work, Deadline deadline, bool write, Durable durable = Durable::kNow)
      : work(work), deadline(deadline), write(write), durable(durable) {}

  // For the caller: returns when Finish() was called.
  void Wait();
  // Once, by a thread of the database. The job may be gone afterwards.
  void Finish();
  void Run(const WaitHint& hint) override;
  std::string_view name() const override { return "a work of curtail::SqlDatabase"; }

  const Work work;
  const Deadline deadline;
  const bool write;
  const Durable durable;
  absl::Status status;
  // A coroutine that has left its thread, and what resumes it: null for the thread of the database.
  std::coroutine_handle<> coroutine;
  Executor* executor = nullptr;

 private:
  static constexpr uint32_t kDone = Parker::Signal(0);
  Parker done_;
};

}  // namespace internal

template <class F>
class SqlAwaiter;

// A SqlDatabase is thread-safe. Its calls wait as the threading model in force waits. The work of a
// call runs once, on the caller's thread or on another one while the caller waits. Errors of all
// calls: the work's, SqlSession's, RESOURCE_EXHAUSTED if too much waits, DEADLINE_EXCEEDED. A
// deadline ends a read, and a write that has not begun.
class SqlDatabase {
 public:
  using Work = internal::SqlJob::Work;

  // Errors: as SqlSession; FAILED_PRECONDITION for the schema of a newer program.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqlDatabase>> Open(SqlOptions options);
  // Looks once at data that may be in use, on this thread, whatever the version of the schema.
  [[nodiscard]] static absl::Status Look(const SqlOptions& options, Work work);
  // REQUIRES: no call is in progress.
  ~SqlDatabase();
  // Ends the threads when the calls in progress have ended; later ones end with UNAVAILABLE. Call
  // it, or the destructor, before the server goes whose handlers called: a thread that wakes a
  // fiber looks at the fiber's loop until after the fiber has gone on.
  void Stop();
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;

  // Runs `work` in a transaction that sees one state of the file and changes nothing.
  [[nodiscard]] absl::Status Read(Deadline deadline, Work work);
  // Runs `work` in a transaction, and commits it if `work` returns OK. After an error, be it of the
  // commit, nothing of it has happened; but after UNAVAILABLE from a server it may have.
  // kSoon does not wait for the disk, and is for what a repetition finds again.
  [[nodiscard]] absl::Status Write(Deadline deadline, Work work, Durable durable = Durable::kNow);
  // The same for coroutines: co_await db.Reading(deadline, f).
  template <class F>
  SqlAwaiter<F> Reading(Deadline deadline, F work) {
    return SqlAwaiter<F>(*this, deadline, std::move(work), /*write=*/false);
  }
  template <class F>
  SqlAwaiter<F> Writing(Deadline deadline, F work, Durable durable = Durable::kNow) {
    return SqlAwaiter<F>(*this, deadline, std::move(work), /*write=*/true, durable);
  }

  SqlStats Sample() const;

  // For SqlAwaiter. True: the present thread has run the job.
  bool RunHere(internal::SqlJob& job);
  // False: it is not queued, and has its status.
  bool Submit(internal::SqlJob& job);
  void RunToEnd(internal::SqlJob& job);
  // Has `coroutine` resumed when the job has ended. False: go on at once.
  bool Suspend(internal::SqlJob& job, std::coroutine_handle<> coroutine);

 private:
  struct Impl;
  explicit SqlDatabase(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// Ends with the status of the work.
template <class F>
class [[nodiscard]] SqlAwaiter {
 public:
  SqlAwaiter(SqlDatabase& db, Deadline deadline, F work, bool write, Durable durable = Durable::kNow)
      : db_(db), work_(std::move(work)), job_(work_, deadline, write, durable) {}
  SqlAwaiter(const SqlAwaiter&) = delete;
  SqlAwaiter& operator=(const SqlAwaiter&) = delete;

  bool await_ready() {
    if (CurrentWait().waiting == Waiting::kAsync) return db_.RunHere(job_);
    db_.RunToEnd(job_);
    return true;
  }
  bool await_suspend(std::coroutine_handle<> self) { return db_.Suspend(job_, self); }
  absl::Status await_resume() { return std::move(job_.status); }

 private:
  SqlDatabase& db_;
  F work_;
  internal::SqlJob job_;
};

}  // namespace curtail
