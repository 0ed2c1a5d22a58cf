// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. One writer and some readers, each a connection. Each has a thread, which runs the jobs that wait. Callers run
// reads of a file themselves as far as that is quicker.
//
//  Q1  A job belongs to its caller until it is queued, then to the queue and its thread, until Finish(). Then it may
//      be gone: the caller saw the signal, or the response pool has it.
//  Q2  The writer takes what waits as one batch and one transaction. Each write has a savepoint, so that one that fails
//      undoes only itself. All are told when the commit has ended, as none is durable before.
//  Q3  Some errors end a transaction by themselves (a full disk, a damaged file). They undo the writes of the batch
//      before them, which fail alike. Those behind them begin anew. A work that had failed before fails alike, too: its
//      own error may come from what another one of the batch wrote, which has not happened.
//  Q4  A thread that resumes a caller touches the caller's loop, or executor, for a moment more. So the threads are joined
//      before those go: Stop().
//  Q5  A write is never interrupted once it runs, since SQLite would end the whole batch. A read is, at its deadline.
//  Q6  A connection belongs to its lane while it is idle, and to whichever thread took it meanwhile.
//  Q7  A caller runs a read itself if a connection is idle and no read waits. Another thread would cost it two wake-ups. A
//      thread that would sleep meanwhile may always do so. One that serves other requests, of a fiber or an asynchronous
//      model, does so while reads are quick, as those are that find their pages in memory. A read, on whichever thread,
//      that takes longer than kQuickNs owes the difference, and a quicker one pays back. While much is owed, reads are
//      the reader's. So whatever the mix of reads, they hold up callers' threads for kQuickNs on average. The time in
//      which a read waits for a CPU does not count, as its thread would wait without it, too.
//  Q8  The connections of a lane are idle when Stop() returns, so that no caller uses one any more.
#include "curtail/store/sql/sql.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <system_error>
#include <thread>

#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/wait.h"
#include "curtail/store/sql/postgresql.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail {

using internal::SqlJob;

void internal::SqlJob::Wait() {
  if ((done_.Ticket() & kDone) == 0) FlushBeforeWait();
  for (uint32_t ticket = done_.Ticket(); (ticket & kDone) == 0; ticket = done_.Ticket()) {
    done_.Wait(ticket, Deadline::Infinite());  // sure to end: a thread of the database has the job
  }
}

void internal::SqlJob::Finish() {
  if (coroutine == nullptr) {
    done_.Notify(kDone);
    return;
  }
  if (executor == nullptr) {
    const WaitHint hint{.waiting = Waiting::kAsync};
    const ScopedWait wait(hint);
    return coroutine.resume();  // Q1
  }
  TaskList alone;
  Executor* const pool = executor;  // Q1
  alone.Push(this);
  pool->SubmitResponse(alone);
}

void internal::SqlJob::Run(const WaitHint&) {
  Executor* const pool = executor;  // Q1
  coroutine.resume();
  pool->AsyncEnded();
}

namespace {

// A read that takes no longer on average is run by its caller: some times what two wake-ups cost.
constexpr int64_t kQuickNs = 200'000;
// Reads may owe this much.
constexpr int64_t kToleratedNs = 2'000'000;
// They owe no more, so that some thousand quick reads pay it back.
constexpr int64_t kMostNs = 1'000'000'000;

// How long the present thread is held up: Q7.
class HeldUp {
 public:
  HeldUp() : begun_(Now()) { getrusage(RUSAGE_THREAD, &before_); }
  Nanos SoFar() const {
    const Nanos all = Now() - begun_;
    if (all.count() <= kQuickNs) return all;
    rusage now = {};
    getrusage(RUSAGE_THREAD, &now);
    const bool slept = now.ru_nvcsw != before_.ru_nvcsw;
    return slept ? all : std::min(all, Cpu(now) - Cpu(before_));
  }

 private:
  static Nanos Of(const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  }
  static Nanos Cpu(const rusage& usage) { return Of(usage.ru_utime) + Of(usage.ru_stime); }

  const TimePoint begun_;
  rusage before_ = {};
};

// The present thread is a database's. It may run on in a coroutine of no pool (SqlJob::Finish()), whose reads would hold
// up what waits for that thread.
thread_local bool of_a_database = false;

}  // namespace

struct SqlDatabase::Impl {
  struct Taken {
    std::vector<SqlJob*> jobs;
    SqlSession* session = nullptr;
  };

  // Jobs of one kind, the connections for them, and the threads that sleep for lack of either.
  struct Lane {
    // Takes up to `most` jobs and a connection, and sleeps until there are both. No job: the thread ends.
    Taken Take(size_t most);
    // A connection, if one is idle and no job waits for it. Null: there is none.
    SqlSession* TakeIdle();
    void GiveBack(SqlSession* session);
    // False: the queue is full, or has ended.
    bool Put(SqlJob& job, size_t limit);
    void Stop();
    // Waits until `count` connections are idle: Q8. After Stop(), when the lane's threads have ended.
    void AwaitIdle(size_t count);
    size_t Count();
    // Wakes a thread for a job and a connection.
    void WakeOne() CURTAIL_REQUIRES(mu);

    Mutex mu;
    std::deque<SqlJob*> jobs CURTAIL_GUARDED_BY(mu);
    std::vector<SqlSession*> idle CURTAIL_GUARDED_BY(mu);
    std::vector<Parker*> asleep CURTAIL_GUARDED_BY(mu);
    bool stopping CURTAIL_GUARDED_BY(mu) = false;
  };

  Lane& LaneOf(const SqlJob& job) { return lanes[job.write ? 1 : 0]; }
  void ReadJobs();
  void WriteJobs();
  void RunRead(SqlSession& session, SqlJob& job);
  void EndRead(SqlSession* session);
  // True if the present thread has run the job: Q7.
  bool RunHere(SqlJob& job);
  void RunBatch(SqlSession& session, const std::vector<SqlJob*>& batch);
  // Runs jobs from `next` on, in one transaction. Returns where another one has to begin.
  size_t RunTransaction(SqlSession& session, const std::vector<SqlJob*>& batch, size_t next);
  // True if the job is to be run; else it has its status.
  bool BeginJob(SqlJob& job);
  void RunWork(SqlSession& session, SqlJob& job);
  void Stop();

  SqlOptions options;
  std::string name;                                   // of the file or the schema, for errors
  std::vector<std::unique_ptr<SqlSession>> sessions;  // the writer's first
  std::array<Lane, 2> lanes;                          // reads, writes
  std::vector<std::thread> threads;
  // Atomic; relaxed, as it only chooses the error of a call that no lane takes.
  std::atomic<bool> stopped{false};
  // Atomic; relaxed, a hint: Q7. A read may be lost in it.
  std::atomic<int64_t> owed_ns{0};
  // Atomic; relaxed, statistics.
  std::atomic<uint64_t> reads{0}, writes{0}, commits{0}, refused{0}, late{0}, failed{0};
};

SqlDatabase::Impl::Taken SqlDatabase::Impl::Lane::Take(size_t most) {
  Parker parker;
  MutexLock lock(mu);
  while (jobs.empty() ? !stopping : idle.empty()) {
    const uint32_t ticket = parker.Ticket();
    asleep.push_back(&parker);
    lock.Unlock();
    parker.Wait(ticket, Deadline::Infinite());
    lock.Lock();
    std::erase(asleep, &parker);
  }
  const size_t count = std::min(most, jobs.size());
  const auto end = jobs.begin() + static_cast<std::ptrdiff_t>(count);
  Taken taken{.jobs = {jobs.begin(), end}};
  jobs.erase(jobs.begin(), end);
  if (count > 0) {
    taken.session = idle.back();
    idle.pop_back();
  }
  return taken;
}

SqlSession* SqlDatabase::Impl::Lane::TakeIdle() {
  const MutexLock lock(mu);
  if (stopping || idle.empty() || !jobs.empty()) return nullptr;
  SqlSession* const session = idle.back();
  idle.pop_back();
  return session;
}

void SqlDatabase::Impl::Lane::GiveBack(SqlSession* session) {
  const MutexLock lock(mu);
  idle.push_back(session);
  if (!jobs.empty() || stopping) WakeOne();
}

bool SqlDatabase::Impl::Lane::Put(SqlJob& job, size_t limit) {
  const MutexLock lock(mu);
  if (stopping || jobs.size() >= limit) return false;
  jobs.push_back(&job);
  if (!idle.empty()) WakeOne();
  return true;
}

// Under the lock, as the sleeper's parker is on its stack.
void SqlDatabase::Impl::Lane::WakeOne() {
  if (asleep.empty()) return;
  asleep.back()->Notify();
  asleep.pop_back();
}

void SqlDatabase::Impl::Lane::Stop() {
  const MutexLock lock(mu);
  stopping = true;
  for (Parker* parker : asleep) parker->Notify();
}

void SqlDatabase::Impl::Lane::AwaitIdle(size_t count) {
  Parker parker;
  MutexLock lock(mu);
  while (idle.size() < count) {
    const uint32_t ticket = parker.Ticket();
    asleep.push_back(&parker);
    lock.Unlock();
    parker.Wait(ticket, Deadline::Infinite());  // sure to end: a read has a deadline
    lock.Lock();
    std::erase(asleep, &parker);
  }
}

size_t SqlDatabase::Impl::Lane::Count() {
  const MutexLock lock(mu);
  return jobs.size();
}

bool SqlDatabase::Impl::BeginJob(SqlJob& job) {
  if (!job.deadline.Expired()) return true;
  late.fetch_add(1, std::memory_order_relaxed);
  job.status = absl::DeadlineExceededError(Join(name, ": the deadline passed in the queue"));
  return false;
}

void SqlDatabase::Impl::RunWork(SqlSession& session, SqlJob& job) {
  (job.write ? writes : reads).fetch_add(1, std::memory_order_relaxed);
  try {
    job.status = job.work(session);
  } catch (const std::exception& thrown) {
    job.status = absl::InternalError(Join("a work on ", name, " threw: ", thrown.what()));
  } catch (...) {
    job.status = absl::InternalError(Join("a work on ", name, " threw"));
  }
  if (!job.status.ok()) failed.fetch_add(1, std::memory_order_relaxed);
}

void SqlDatabase::Impl::RunRead(SqlSession& session, SqlJob& job) {
  if (!BeginJob(job)) return;
  const HeldUp held_up;
  session.SetDeadline(job.deadline);
  job.status = session.Begin(/*write=*/false);
  if (job.status.ok()) RunWork(session, job);
  const int64_t owed = owed_ns.load(std::memory_order_relaxed) + held_up.SoFar().count() - kQuickNs;
  owed_ns.store(std::clamp<int64_t>(owed, 0, kMostNs), std::memory_order_relaxed);
}

void SqlDatabase::Impl::ReadJobs() {
  while (true) {
    const Taken taken = lanes[0].Take(1);
    if (taken.jobs.empty()) return;
    RunRead(*taken.session, *taken.jobs.front());
    taken.jobs.front()->Finish();  // it need not wait for the end of the transaction
    EndRead(taken.session);
  }
}

void SqlDatabase::Impl::EndRead(SqlSession* session) {
  session->SetDeadline(Deadline::Infinite());
  session->Rollback();
  lanes[0].GiveBack(session);
}

bool SqlDatabase::Impl::RunHere(SqlJob& job) {
  if (job.write || !options.postgresql.empty()) return false;
  const bool sleeps = CurrentWait().waiting == Waiting::kSync;
  const bool quick = owed_ns.load(std::memory_order_relaxed) <= kToleratedNs;
  if (of_a_database || (!sleeps && !quick)) return false;
  SqlSession* const session = lanes[0].TakeIdle();
  if (session == nullptr) return false;
  if (!quick) FlushBeforeWait();
  RunRead(*session, job);
  EndRead(session);
  Fiber::YieldIfLong();  // quick reads one after the other are a long run
  return true;
}

void SqlDatabase::Impl::WriteJobs() {
  while (true) {
    const Taken taken = lanes[1].Take(options.batch);
    if (taken.jobs.empty()) return;
    RunBatch(*taken.session, taken.jobs);
    for (SqlJob* job : taken.jobs) job->Finish();  // Q2
    lanes[1].GiveBack(taken.session);
  }
}

void SqlDatabase::Impl::RunBatch(SqlSession& session, const std::vector<SqlJob*>& batch) {
  for (size_t next = 0; next < batch.size();) next = RunTransaction(session, batch, next);
}

size_t SqlDatabase::Impl::RunTransaction(SqlSession& session, const std::vector<SqlJob*>& batch,
                                         size_t first) {
  const auto fail = [&](size_t end, const absl::Status& status) {
    for (size_t i = first; i < end; ++i) batch[i]->status = status;
    return end;
  };
  const bool now = std::any_of(batch.begin() + static_cast<std::ptrdiff_t>(first), batch.end(),
                               [](const SqlJob* job) { return job->durable == Durable::kNow; });
  absl::Status begun = session.SetSync(now);
  if (begun.ok()) begun = session.Begin(/*write=*/true);
  if (!begun.ok()) return fail(batch.size(), begun);
  for (size_t i = first; i < batch.size(); ++i) {
    SqlJob& job = *batch[i];
    if (!BeginJob(job)) continue;
    job.status = session.Later("SAVEPOINT job");
    if (job.status.ok()) RunWork(session, job);
    // A server that is away is so for all.
    const size_t end = absl::IsUnavailable(job.status) ? batch.size() : i + 1;
    if (!session.InTransaction()) {  // Q3
      if (job.status.ok()) job.status = absl::InternalError("a work ended the transaction");
      return fail(end, absl::Status(job.status));
    }
    absl::Status kept = job.status.ok() ? absl::OkStatus() : session.Execute("ROLLBACK TO job");
    if (kept.ok()) kept = session.Later("RELEASE job");
    if (!kept.ok()) {
      session.Rollback();
      // If a server ends the transaction, the savepoint has gone, too: the reason is what the job was told.
      return fail(end, absl::IsUnavailable(job.status) ? absl::Status(job.status) : kept);
    }
  }
  commits.fetch_add(1, std::memory_order_relaxed);
  const absl::Status committed = session.Commit();
  return committed.ok() ? batch.size() : fail(batch.size(), committed);
}

void SqlDatabase::Impl::Stop() {
  stopped.store(true, std::memory_order_relaxed);
  for (Lane& lane : lanes) lane.Stop();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  if (!sessions.empty()) lanes[0].AwaitIdle(sessions.size() - 1);
}

SqlDatabase::SqlDatabase(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqlDatabase::~SqlDatabase() { impl_->Stop(); }
void SqlDatabase::Stop() { impl_->Stop(); }

namespace {

absl::StatusOr<std::unique_ptr<SqlSession>> OpenSession(const SqlOptions& options, bool writes) {
  if (options.postgresql.empty()) {
    return internal::SqliteSession::Open({.path = options.path,
                                          .busy_timeout = options.busy_timeout,
                                          .max_bytes = options.max_bytes,
                                          .sync = options.sync,
                                          .writes = writes});
  }
  return internal::PostgresqlSession::Open({.address = options.postgresql,
                                            .schema = options.path,
                                            .patience = options.busy_timeout,
                                            .sync = options.sync});
}

// Errors name a file without its folder, as clients see them; who opens the database sees all of its path.
absl::Status WithFolder(const SqlOptions& options, const absl::Status& status) {
  if (status.ok() || !options.postgresql.empty()) return status;
  return absl::Status(status.code(),
                      Join(options.path.substr(0, options.path.rfind('/') + 1), Message(status)));
}

}  // namespace

absl::Status SqlDatabase::Look(const SqlOptions& options, Work work) {
  const absl::StatusOr<std::unique_ptr<SqlSession>> session = OpenSession(options, /*writes=*/false);
  if (!session.ok()) return WithFolder(options, session.status());
  absl::Status status = (*session)->Begin(/*write=*/false);
  if (status.ok()) status = work(**session);
  (*session)->Rollback();
  return status;
}

absl::StatusOr<std::unique_ptr<SqlDatabase>> SqlDatabase::Open(SqlOptions options) {
  auto impl = std::make_unique<Impl>();
  for (int i = 0; i <= std::max(1, options.readers); ++i) {
    absl::StatusOr<std::unique_ptr<SqlSession>> opened = OpenSession(options, /*writes=*/i == 0);
    if (!opened.ok()) return WithFolder(options, opened.status());
    if (i == 0) {
      absl::Status status = (*opened)->Migrate(options.migrations);
      if (!status.ok()) return WithFolder(options, status);
    }
    impl->sessions.push_back(*std::move(opened));
  }
  impl->name = options.path.substr(options.path.rfind('/') + 1);
  impl->options = std::move(options);
  std::unique_ptr<SqlDatabase> db(new SqlDatabase(std::move(impl)));
  Impl& it = *db->impl_;
  for (size_t i = 0; i < it.sessions.size(); ++i) it.lanes[i == 0 ? 1 : 0].GiveBack(it.sessions[i].get());
  try {
    for (size_t i = 0; i < it.sessions.size(); ++i) {
      it.threads.emplace_back([&it, writes = i == 0] {
        of_a_database = true;
        writes ? it.WriteJobs() : it.ReadJobs();
      });
    }
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(Join("no thread for ", it.name));
  }
  return db;
}

bool SqlDatabase::Submit(SqlJob& job) {
  if (impl_->LaneOf(job).Put(job, impl_->options.queue)) return true;
  if (impl_->stopped.load(std::memory_order_relaxed)) {
    job.status = absl::UnavailableError(Join(impl_->name, ": it was stopped"));
    return false;
  }
  impl_->refused.fetch_add(1, std::memory_order_relaxed);
  job.status = absl::ResourceExhaustedError(
      Join(impl_->name, ": ", impl_->options.queue, job.write ? " writes" : " reads", " wait already"));
  return false;
}

bool SqlDatabase::RunHere(SqlJob& job) { return impl_->RunHere(job); }

void SqlDatabase::RunToEnd(SqlJob& job) {
  if (!RunHere(job) && Submit(job)) job.Wait();
}

bool SqlDatabase::Suspend(SqlJob& job, std::coroutine_handle<> coroutine) {
  Executor* const executor = CurrentWait().executor;
  job.executor = executor;
  job.coroutine = coroutine;
  if (executor != nullptr) executor->AsyncBegun();
  if (Submit(job)) return true;  // Q1
  if (executor != nullptr) executor->AsyncEnded();
  return false;
}

absl::Status SqlDatabase::Read(Deadline deadline, Work work) {
  SqlJob job(work, deadline, /*write=*/false);
  RunToEnd(job);
  return std::move(job.status);
}

absl::Status SqlDatabase::Write(Deadline deadline, Work work, Durable durable) {
  SqlJob job(work, deadline, /*write=*/true, durable);
  RunToEnd(job);
  return std::move(job.status);
}

SqlStats SqlDatabase::Sample() const {
  const auto of = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  SqlStats stats{.reads = of(impl_->reads),
                 .writes = of(impl_->writes),
                 .commits = of(impl_->commits),
                 .refused = of(impl_->refused),
                 .late = of(impl_->late),
                 .failed = of(impl_->failed)};
  for (Impl::Lane& lane : impl_->lanes) stats.waiting += lane.Count();
  return stats;
}

}  // namespace curtail
