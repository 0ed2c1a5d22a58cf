// SPDX-License-Identifier: Apache-2.0
//
// run.h - one execution of a program under a Chooser. Private to the scheduler.
//
// At each scheduling point a Run lists the candidates, those that could go on, in a fixed order: first the
// current thread, then the others in turn, then the clock, then spurious wake-ups. The Chooser picks one by
// its index; index 0 is what happens without interference. So a schedule is the list of its deviations,
// "decision=index", and that is what a replay is given.
#pragma once

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/scheduler.h"
#include "tests/model/thread_locals.h"

namespace curtail::model {

inline constexpr int kClock = -1;  // in the place of a thread
inline constexpr int64_t kStart = 1'000'000'000;

struct Candidate {
  int thread;
  bool spurious = false;  // it wakes up without cause, or reads a stale value
};

// A Chooser picks one of the candidates, the first `free` of which cost no preemption. It is asked only when
// there are several.
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual size_t Choose(const std::vector<Candidate>& candidates, size_t free) = 0;
  virtual void Spawned(int) {}
  virtual void Yielded(int) {}
};

struct Step {
  int thread;
  const char* what;
  const void* object;
};

class Run {
 public:
  Run(const Options& options, Chooser* chooser)
      : chooser_(chooser),
        horizon_(options.horizon_ns),
        patient_clock_(options.patient_clock),
        spurious_left_(options.spurious_wakeups),
        stale_left_(options.stale_reads) {}

  void Execute(const std::function<void()>& program);
  int Spawn(std::function<void()> body);
  void AtomicPoint(const char* what, const void* object) {
    Block(what, object, nullptr, nullptr, kForever, false);
  }
  void Point(const char* what, const void* object) {
    AtomicPoint(what, object);
    Synchronize(steps_.size());
  }
  // The present thread knows of all writes before `step`.
  void Synchronize(size_t step) {
    size_t& known = threads_[current_]->known;
    known = std::max(known, step);
  }
  bool ReadsStale(const LastWrite& write, bool seq_cst);
  bool Block(const char* what, const void* object, bool (*ready)(const void*), const void* context,
             int64_t until, bool may_be_spurious);
  void Yield();
  void Settle();
  [[noreturn]] void Fail(const std::string& what);
  void AddMoment(int64_t when) { moments_.push_back(when); }

  int current() const { return current_; }
  int64_t now() const { return now_; }
  bool ClockCouldMove() const { return NextMoment() != kForever; }
  bool done(int thread) const { return threads_[thread]->done; }
  bool Waits(int thread) const {
    const Thread& t = *threads_[thread];
    return !t.done && t.ready != nullptr && !t.ready(t.ready_context);
  }
  size_t steps() const { return steps_.size(); }
  const std::string& failure() const { return failure_; }
  std::string Trace() const;
  std::string Choices() const;

 private:
  struct Thread {
    std::function<void()> body;
    boost::context::fiber context;
    ThreadLocals locals;
    // Its next step, and when it can take it: always if `ready` is null.
    const char* what = "start";
    const void* object = nullptr;
    bool (*ready)(const void*) = nullptr;
    const void* ready_context = nullptr;
    int64_t until = kForever;
    bool may_be_spurious = false;
    bool yielded = false;
    bool done = false;
    size_t known = 0;  // it knows of all writes before this step
  };

  bool Enabled(const Thread& t) const {
    return !t.done && !t.yielded && (t.ready == nullptr || t.ready(t.ready_context) || t.until <= now_);
  }
  int64_t NextMoment() const;
  // Fills candidates_; returns how many of them are free.
  size_t List();
  // Sets next_ to the thread that goes on; to kNone at the end of the run.
  void Decide();
  size_t Pick(size_t free);
  void Suspend() { main_ = std::move(main_).resume(); }
  void RecordFailure(const std::string& what);
  std::string Blocked() const;

  static constexpr int kNone = -2;
  Chooser* const chooser_;
  const int64_t horizon_;
  const bool patient_clock_;
  int spurious_left_;
  int stale_left_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<int64_t> moments_;
  std::vector<Candidate> candidates_;
  std::vector<Step> steps_;
  std::vector<std::pair<size_t, size_t>> deviations_;
  size_t decisions_ = 0;
  bool settling_ = false;
  size_t idle_yields_ = 0;  // in a row, while no other thread could go on
  boost::context::fiber main_;
  int64_t now_ = kStart;
  int current_ = 0;
  int next_ = 0;
  std::string failure_;
};

}  // namespace curtail::model
