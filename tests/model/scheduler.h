// SPDX-License-Identifier: Apache-2.0
//
// scheduler.h - runs a concurrent program under every schedule up to a bound, and under random ones beyond.
//
// The program's threads are coroutines on one system thread. They give way only at scheduling points, which
// the replaced primitives (shim.h) announce; at each point the scheduler picks the thread that goes on. A program that
// is otherwise deterministic is therefore a function of these decisions, and can be run again and again under
// others:
//  - exhaustively, depth first, with at most 0, 1, 2, ... preemptions (iterative context bounding: Musuvathi
//    and Qadeer, PLDI 2007). A switch away from a thread that could go on is a preemption; other switches
//    are free;
//  - at random beyond the bound, by priorities that change at a few random steps (PCT: Burckhardt et al.,
//    ASPLOS 2010).
// The passage of time is one more thread: it may move the clock to the next deadline at any point.
//
// It finds deadlock, which is what a lost wake-up ends in, livelock, failed Check()s, and use of a
// primitive after its end. Operations are sequentially consistent, but for loads that miss the last write
// (Options::stale_reads): so it finds protocols that need stronger memory orders than they ask for. It does
// not see data races on plain variables, which do not give way. ThreadSanitizer looks at those.
//
// Each thread has its own thread_local variables, as far as they are the executable's. An exception must not
// be in flight at a scheduling point.
//
// Threads of a schedule that failed are abandoned where they stand: unwinding them would run code that no
// schedule ever runs. What they own leaks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace curtail::model {

struct Options {
  int preemptions = 2;               // the bound of the exhaustive search; raise for short programs
  uint64_t random_schedules = 0;     // explored after it
  uint64_t max_schedules = 1 << 22;  // a search that needs more has failed, so that no limit hides
  int64_t horizon_ns = INT64_MAX;    // the clock goes no further from the start; for timers without end
  // The clock moves only when no thread can go on: for timers that are long against all else, and of which each would
  // double the schedules wherever a thread waits.
  bool patient_clock = false;
  int spurious_wakeups = 0;  // how many futex waits may end without cause, each as a preemption
  // How many atomic loads may find the value before the last write, each as a preemption. Only where C++
  // allows it: the write is another thread's, the orders of both are not seq_cst, and no acquire operation
  // or lock of the reader came after the write and may have told of it.
  int stale_reads = 0;
};

struct Outcome {
  bool ok = true;
  std::string report;      // what failed, the trace, and how to replay it; otherwise what was explored
  std::string failure;     // first line of it
  std::string replay;      // the failing schedule
  uint64_t schedules = 0;  // explored in all
};

// Runs `program`, which starts threads and joins them, until a schedule fails or all are explored. It must
// make everything anew each time. CURTAIL_MODEL_REPLAY in the environment runs one schedule, with its trace;
// CURTAIL_MODEL_SEED and CURTAIL_MODEL_RANDOM choose the random ones.
Outcome Explore(const Options& options, const std::function<void()>& program);
// Runs the one schedule that `replay` names.
Outcome Replay(const Options& options, const std::string& replay, const std::function<void()>& program);

// For programs ------------------------------------------------------------------------------------------

// Ends the schedule as failed.
[[noreturn]] void Fail(const std::string& what);
inline void Check(bool holds, const char* what) {
  if (!holds) Fail(what);
}
// A moment `ns` after the start, which the clock may jump to at any point from now on.
int64_t Moment(int64_t ns);

// Lets all other threads go on until they wait, in the one order that they have without interference. For
// programs whose beginning another one explores.
void Settle();

// For primitives ----------------------------------------------------------------------------------------

inline constexpr int64_t kForever = INT64_MAX;

// False outside of Explore(): primitives then just do what they are told.
bool Running();
int ThreadId();
int64_t NowNs();
// The same, and a scheduling point if the clock could move before it.
int64_t ReadClock();
// Another thread may run before what the caller does next, which `what` and `object` name in the trace.
void Point(const char* what, const void* object);
// The last write of an atomic object.
struct LastWrite {
  size_t step = 0;
  uint64_t seen_by = ~uint64_t{0};  // threads, as bits
  bool seq_cst = true;
};
// A Point() before an atomic operation, which synchronizes with nothing by itself.
void AtomicPoint(const char* what, const void* object);
// The caller writes.
void Wrote(LastWrite* write, bool seq_cst);
// The caller has read the last value; `acquire`: by an operation that synchronizes.
void ReadLast(LastWrite* write, bool acquire);
// The caller loads: true if it finds the value before, for which the scheduler decides.
bool ReadsStale(const LastWrite& write, bool seq_cst);
// True in the run of the tests that is to show that they find this mutant (mutate.cmake).
bool Mutant(const char* name);
// Like Point(), and goes on only when `ready(context)` or at `until`. Returns whether it was ready.
bool BlockOn(const char* what, const void* object, bool (*ready)(const void*), const void* context,
             int64_t until, bool may_be_spurious = false);
template <class Ready>
bool Block(const char* what, const void* object, const Ready& ready, int64_t until = kForever,
           bool may_be_spurious = false) {
  return BlockOn(
      what, object, [](const void* f) { return (*static_cast<const Ready*>(f))(); }, &ready, until,
      may_be_spurious);
}
// Lets others go on before the caller does, and some time pass.
void Yield();
// Another thread could not go on. As the kernel says of it: perhaps no longer when this returns.
bool Waits(int thread);
// Starts a thread, which runs when the scheduler says so; Join() waits for its end.
int Spawn(std::function<void()> body);
void Join(int thread);

}  // namespace curtail::model
