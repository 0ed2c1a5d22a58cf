// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Explore() runs the program again and again, each time under a Chooser that decides otherwise
// (run.h). The depth-first one keeps the decisions of the last run and advances the last of them that has a
// candidate left.
#include "tests/model/scheduler.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/model/kernel.h"
#include "tests/model/run.h"

namespace curtail::model {
namespace {

// The primitives have no other way to find their scheduler. One system thread, hence no lock.
Run* g_run = nullptr;

// Depth first, at most `bound` preemptions a run.
class DepthFirst final : public Chooser {
 public:
  explicit DepthFirst(int bound) : bound_(bound) {}

  void Begin() { depth_ = 0, spent_ = 0; }
  // Goes on to the next schedule; false when there is none.
  bool Next() {
    while (!path_.empty() && path_.back().chosen + 1 >= path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    return true;
  }
  size_t Choose(const std::vector<Candidate>& candidates, size_t free) override {
    const size_t options = spent_ < bound_ ? candidates.size() : free;
    if (depth_ == path_.size()) path_.push_back({0, options});
    const Decision& decision = path_[depth_++];
    if (decision.options != options)
      model::Fail("the program is not deterministic: other candidates than before");
    if (decision.chosen >= free) ++spent_;
    return decision.chosen;
  }

 private:
  struct Decision {
    size_t chosen;
    size_t options;
  };
  const int bound_;
  int spent_ = 0;
  size_t depth_ = 0;
  std::vector<Decision> path_;
};

// PCT: the candidate of highest priority goes on; at a few random steps the current one falls to the bottom.
class RandomPriorities final : public Chooser {
 public:
  RandomPriorities(uint64_t seed, size_t length) : rng_(seed) {
    const size_t changes = 1 + rng_() % 6;
    for (size_t i = 0; i < changes; ++i) changes_.push_back(rng_() % length);
    priorities_[kClock] = Fresh();
  }
  void Spawned(int thread) override { priorities_[thread] = Fresh(); }
  void Yielded(int thread) override { priorities_[thread] = --lowest_; }
  size_t Choose(const std::vector<Candidate>& candidates, size_t) override {
    if (std::count(changes_.begin(), changes_.end(), step_++) > 0)
      priorities_[candidates[Highest(candidates)].thread] = --lowest_;
    return Highest(candidates);
  }

 private:
  int64_t Fresh() { return static_cast<int64_t>(rng_() >> 32); }
  size_t Highest(const std::vector<Candidate>& candidates) {
    size_t best = 0;
    for (size_t i = 1; i < candidates.size(); ++i) {
      const bool again = candidates[i].thread == candidates[best].thread;
      if (candidates[i].spurious && rng_() % 16 != 0) continue;
      if (again || priorities_[candidates[i].thread] > priorities_[candidates[best].thread]) best = i;
    }
    return best;
  }
  std::mt19937_64 rng_;
  std::vector<size_t> changes_;
  std::map<int, int64_t> priorities_;
  int64_t lowest_ = 0;
  size_t step_ = 0;
};

// The deviations of a schedule that was printed.
class Scripted final : public Chooser {
 public:
  explicit Scripted(const std::string& replay) {
    std::istringstream in(replay);
    size_t decision, index;
    char skip;
    while (in >> decision >> skip >> index) deviations_[decision] = index, in >> skip;
  }
  size_t Choose(const std::vector<Candidate>& candidates, size_t) override {
    const auto it = deviations_.find(decision_++);
    const size_t index = it == deviations_.end() ? 0 : it->second;
    if (index >= candidates.size()) model::Fail("the replay is of another program: no such candidate");
    return index;
  }

 private:
  std::map<size_t, size_t> deviations_;
  size_t decision_ = 0;
};

// A crash is a failure like others, but the last one.
void OnCrash(int signal) {
  std::printf("failing schedule\n%scrash: signal %d\nreplay with CURTAIL_MODEL_REPLAY='%s'\n",
              g_run->Trace().c_str(), signal, g_run->Choices().c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

// Reports crashes of the schedule that runs.
class CrashReporter {
 public:
  CrashReporter()
      : before_segv_(std::signal(SIGSEGV, OnCrash)), before_abort_(std::signal(SIGABRT, OnCrash)) {}
  ~CrashReporter() {
    std::signal(SIGSEGV, before_segv_);
    std::signal(SIGABRT, before_abort_);
  }

 private:
  void (*const before_segv_)(int);
  void (*const before_abort_)(int);
};

// Runs one schedule; fills `outcome` if it fails or `always`.
size_t RunOne(const Options& options, Chooser* chooser, const std::function<void()>& program, bool always,
              Outcome* outcome) {
  Run run(options, chooser);
  ResetKernel();
  g_run = &run;
  run.Execute(program);
  g_run = nullptr;
  ++outcome->schedules;
  if (run.failure().empty() && !always) return run.steps();
  outcome->ok = run.failure().empty();
  outcome->failure = run.failure();
  outcome->replay = run.Choices();
  std::ostringstream out;
  out << (outcome->ok ? "schedule" : "failing schedule") << " (" << outcome->schedules << " explored)\n"
      << run.Trace() << outcome->failure << "\nreplay with CURTAIL_MODEL_REPLAY='" << outcome->replay
      << "'\n";
  outcome->report = out.str();
  return run.steps();
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace

Outcome Replay(const Options& options, const std::string& replay, const std::function<void()>& program) {
  const CrashReporter reporter;
  Outcome outcome;
  Scripted scripted(replay);
  RunOne(options, &scripted, program, true, &outcome);
  return outcome;
}

Outcome Explore(const Options& options, const std::function<void()>& program) {
  if (const char* replay = std::getenv("CURTAIL_MODEL_REPLAY")) {
    Outcome outcome = Replay(options, replay, program);
    std::printf("%s", outcome.report.c_str());
    return outcome;
  }
  const CrashReporter reporter;
  Outcome outcome;
  std::ostringstream summary;
  size_t longest = 1;
  for (int bound = 0; bound <= options.preemptions; ++bound) {
    const uint64_t before = outcome.schedules;
    DepthFirst search(bound);
    do {
      if (outcome.schedules >= options.max_schedules) {
        outcome.ok = false;
        outcome.report = outcome.failure = "too many schedules: shrink the program or the bound";
        return outcome;
      }
      search.Begin();
      longest = std::max(longest, RunOne(options, &search, program, false, &outcome));
      if (!outcome.ok) return outcome;
    } while (search.Next());
    summary << (bound == 0 ? "" : " + ") << outcome.schedules - before;
  }
  summary << " schedules with 0.." << options.preemptions << " preemptions";
  const uint64_t seed = FromEnvironment("CURTAIL_MODEL_SEED", 1);
  const uint64_t random = FromEnvironment("CURTAIL_MODEL_RANDOM", options.random_schedules);
  for (uint64_t i = 0; i < random; ++i) {
    RandomPriorities chooser(seed * 1'000'003 + i, longest);
    RunOne(options, &chooser, program, false, &outcome);
    if (!outcome.ok) return outcome;
  }
  summary << ", " << random << " random (seed " << seed << "), up to " << longest << " steps each";
  outcome.report = summary.str();
  std::printf("[ explored ] %s\n", outcome.report.c_str());
  return outcome;
}

void Fail(const std::string& what) {
  if (g_run == nullptr) {
    std::fprintf(stderr, "outside of a schedule: %s\n", what.c_str());
    std::abort();
  }
  g_run->Fail(what);
}

int64_t Moment(int64_t ns) {
  g_run->AddMoment(kStart + ns);
  return kStart + ns;
}

void Settle() {
  if (g_run != nullptr) g_run->Settle();
}

bool Running() { return g_run != nullptr; }
int ThreadId() { return g_run == nullptr ? 0 : g_run->current(); }
int64_t NowNs() { return g_run == nullptr ? kStart : g_run->now(); }

int64_t ReadClock() {
  if (g_run != nullptr && g_run->ClockCouldMove()) g_run->Point("read the clock", nullptr);
  return NowNs();
}

void Point(const char* what, const void* object) {
  if (g_run != nullptr) g_run->Point(what, object);
}

void AtomicPoint(const char* what, const void* object) {
  if (g_run != nullptr) g_run->AtomicPoint(what, object);
}

void Wrote(LastWrite* write, bool seq_cst) {
  if (g_run == nullptr) return;
  *write = {.step = g_run->steps(), .seen_by = uint64_t{1} << g_run->current(), .seq_cst = seq_cst};
}

void ReadLast(LastWrite* write, bool acquire) {
  if (g_run == nullptr) return;
  write->seen_by |= uint64_t{1} << g_run->current();
  if (acquire) g_run->Synchronize(write->step);
}

bool ReadsStale(const LastWrite& write, bool seq_cst) {
  return g_run != nullptr && g_run->ReadsStale(write, seq_cst);
}

bool Mutant(const char* name) {
  static const char* const chosen = std::getenv("CURTAIL_MODEL_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}

bool BlockOn(const char* what, const void* object, bool (*ready)(const void*), const void* context,
             int64_t until, bool may_be_spurious) {
  if (g_run != nullptr) return g_run->Block(what, object, ready, context, until, may_be_spurious);
  if (!ready(context)) Fail("would block");
  return true;
}

void Yield() {
  if (g_run != nullptr) g_run->Yield();
}

bool Waits(int thread) {
  Point("look at a thread", nullptr);
  return g_run != nullptr && g_run->Waits(thread);
}

int Spawn(std::function<void()> body) { return g_run->Spawn(std::move(body)); }

void Join(int thread) {
  Block("join", nullptr, [thread] { return g_run->done(thread); });
}

}  // namespace curtail::model
