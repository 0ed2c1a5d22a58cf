// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Under "auto" one thread receives and runs all requests on fibers, the quickest way for handlers that wait
// as curtail waits. A handler that sleeps outside of those waits (a database driver, a lock, a file) would hold up
// every other request. The guard, a thread of its own, notices and gives the role of the thread to a sleeping thread
// of the pool, a stand-in. In addition to the rules of executor.cc and executor_fiber.cc:
//
//  G1  The guard looks at the fiber loops, as often as GuardPace says. A thread whose loop is in the same run
//      (FiberLoop::run) at two looks in a row is held up if it sleeps, or if it used more than half of a CPU between
//      them: one that waits for a CPU would have to share that with its stand-in. After kLongRun it is held up in any
//      case, so that on a busy machine, too, no run holds up the others for good. One that computes is looked at again,
//      as it may sleep later in the same run; one that slept counts as asleep until the run ends.
//  G2  As long as a thread is held up, the role has room for one more: for each thread that sleeps, and for threads
//      that compute as far as there are CPUs. A sleeping thread of the pool takes it, leads, and begins the requests
//      that wait. Requests that the held-up thread has begun stay with it.
//  G3  A thread that comes back from the run that held it up gives the hold back. It settles anew, finds more holders
//      than the role allows, and goes to sleep. Its live fibers keep it, by S5, until they have ended.
//  G4  A kind of task that slept is run on a thread of its own from then on: the fiber thread hands it to the tasks
//      for threads without a role. There it waits as synchronous models wait, and holds no other task up. As many run at once
//      as there are threads without a role; the others wait for one, in their order. Runs that do not sleep, one after
//      the other, bring the kind back to the fibers (TaskKind).
//  G5  Some time after the last run the guard sleeps until a thread that is about to run something wakes it. Both
//      sides decide under the mutex: a run either comes before the guard's last look, which finds it in runs_, though
//      its loop may not tell yet, or finds guard_sleeps_ set. So an idle server makes no look. A switch to a config
//      with stand-ins wakes the guard, as runs may have begun that did not wake it.
//
// Races considered:
//  - The run ends between the guard's look and the mutex: the guard compares the number of the run again under the
//    mutex. A thread ends a run before it takes the mutex, and gives its hold back under it.
//  - A switch to a config without stand-ins while threads are held up: they keep their holds, which count for
//    nothing, and give them back as they return.
//  - Stop() while a task waits for a thread of its own: no thread ends before these tasks have run (HasDuties).
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "curtail/exec/executor.h"
#include "curtail/exec/internal/executor_thread.h"
#include "curtail/exec/internal/thread_activity.h"

namespace curtail {
namespace {

// Until a run wakes the guard.
constexpr Nanos kAsleep = std::chrono::hours(1);

// A thread that waits for a CPU is let alone for so long: some turns of the kernel's scheduler.
constexpr Nanos kLongRun = std::chrono::milliseconds(100);

}  // namespace

bool TaskKind::HeldUp(bool asleep) {
  held_up_.fetch_add(1, std::memory_order_relaxed);
  if (!asleep || blocks_.exchange(true, std::memory_order_relaxed)) return false;
  contrary_.store(0, std::memory_order_relaxed);
  return BeginsToBlock();
}

bool TaskKind::BeginsToBlock() {
  return std::has_single_bit(began_.fetch_add(1, std::memory_order_relaxed) + 1);
}

bool TaskKind::Ran(bool asleep) {
  const bool before = blocks();
  if (asleep == before) {
    if (contrary_.load(std::memory_order_relaxed) != 0) contrary_.store(0, std::memory_order_relaxed);
    return false;
  }
  const uint32_t runs = contrary_.load(std::memory_order_relaxed) + 1;
  const bool change = runs >= (before ? kRunsToClear : kRunsToBlock);
  contrary_.store(change ? 0 : runs, std::memory_order_relaxed);
  if (change) blocks_.store(asleep, std::memory_order_relaxed);
  return change && asleep && BeginsToBlock();
}

int Executor::StandIns() const {  // G2
  if (!config_.stand_ins) return 0;
  const int room = static_cast<int>(threads_.size()) - config_.threads();
  return std::min(held_asleep_ + std::min(held_busy_, cpus_ - 1), room);
}

absl::Status Executor::StartGuard() {
  MutexLock lock(guard_mu_);
  if (guard_started_) return absl::OkStatus();
  absl::Status started = guard_.Start("guard", [this](TimePoint now) { return Guard(now); });
  guard_started_ = started.ok();
  return started;
}

Nanos Executor::Guard(TimePoint now) {
  suspects_.clear();
  const std::optional<Nanos> next = FindRunning();
  if (!next) FindHeldUp(now);
  looked_ = now;
  if (next) return *next;
  if (!suspects_.empty()) NoteHolds();
  for (const Suspect& suspect : suspects_) {
    TaskKind* const kind = suspect.run.kind;
    // A run counts once; one that computes at first says little of its kind when it sleeps for a moment.
    if (kind != nullptr && !suspect.known && kind->HeldUp(suspect.asleep)) OnBlocking(*kind);
  }
  return pace_.Next({.running = true, .ran = true, .held = !suspects_.empty()}).value_or(GuardPace::kShort);
}

std::optional<Nanos> Executor::FindRunning() {
  MutexLock lock(mu_);
  uint64_t runs = 0;
  for (const auto& thread : threads_) {
    const FiberLoop* const loop = thread->loop.load(std::memory_order_relaxed);
    if (loop == nullptr) continue;
    const FiberLoop::Run run = loop->run();
    runs += run.number;
    const bool lasts = run.number == thread->run_seen && thread->hold != Hold::kAsleep;
    thread->run_seen = run.number;
    if (run.running()) suspects_.push_back({thread.get(), run, lasts, thread->hold == Hold::kBusy});
  }
  const bool ran = std::exchange(runs_seen_, runs) != runs || runs_ > 0;
  if (config_.stand_ins && !suspects_.empty()) return std::nullopt;
  const std::optional<Nanos> next = config_.stand_ins ? pace_.Next({.ran = ran}) : std::nullopt;
  guard_sleeps_ = !next;  // G5
  return next.value_or(kAsleep);
}

void Executor::FindHeldUp(TimePoint now) {  // G1
  for (Suspect& suspect : suspects_) {
    Thread& thread = *suspect.thread;
    const int tid = thread.tid.load(std::memory_order_relaxed);
    const Nanos cpu = internal::CpuTimeOf(tid);
    const Nanos used = cpu - std::exchange(thread.cpu_seen, cpu);
    if (!suspect.lasts) thread.run_since = now;
    const bool computes = 2 * used >= now - looked_ || now - thread.run_since >= kLongRun;
    suspect.asleep = suspect.lasts && internal::Sleeps(tid);
    suspect.computes = suspect.lasts && !suspect.known && computes;
  }
  std::erase_if(suspects_, [](const Suspect& suspect) { return !suspect.asleep && !suspect.computes; });
}

void Executor::NoteHolds() {
  MutexLock lock(mu_);
  for (const Suspect& suspect : suspects_) {
    Thread& thread = *suspect.thread;
    if (thread.loop.load(std::memory_order_relaxed)->run().number != suspect.run.number) continue;
    if (thread.hold == Hold::kBusy) --held_busy_;
    thread.hold = suspect.asleep ? Hold::kAsleep : Hold::kBusy;
    ++(suspect.asleep ? held_asleep_ : held_busy_);
    ++role_changes_;
  }
  int vacant = Allowed(kFiberInline) - holders_[kFiberInline];
  for (size_t i = 0; i < suspects_.size(); ++i) {
    // A parked holder of the role is as good as a thread that has yet to take it.
    if (!seats_[kRunners].empty()) {
      UnparkLast(kRunners);
    } else if (vacant-- > 0) {
      UnparkLast(kSleepers);
    }
  }
}

void Executor::Release(Thread& self) {  // G3
  --(self.hold == Hold::kAsleep ? held_asleep_ : held_busy_);
  self.hold = Hold::kNone;
  ++role_changes_;
  // This thread gives up one role too many; parked ones do so when woken.
  if (holders_[kFiberInline] > Allowed(kFiberInline) + 1) UnparkLast(kRunners);
}

bool Executor::NeedsItsOwnThread(Task& task) const {  // G4
  if (!config_.stand_ins || threads_.size() == 1) return false;
  const TaskKind* const kind = task.kind();
  return kind != nullptr && kind->blocks();
}

bool Executor::GuardSleeps() { return config_.stand_ins && std::exchange(guard_sleeps_, false); }

void Executor::WakeGuard() {
  MutexLock lock(guard_mu_);
  guard_.Wake();
}

void Executor::OnBlocking(const TaskKind& kind) const {
  if (options_.on_blocking) options_.on_blocking(kind);
}

}  // namespace curtail
