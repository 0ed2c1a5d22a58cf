// SPDX-License-Identifier: Apache-2.0
//
// policy_runs.h - what policies came to under scenarios, run by run.
//
// Plain values, thread-compatible, and a pure function. Times count from the start of the run, warm-up
// included, unless something else is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/load/report/report.h"
#include "tools/curtail/compare/scenario.h"

namespace curtail::tool {

// A request that ended.
struct CallSample {
  Nanos due{0};      // when it was to be sent
  Nanos latency{0};  // since then; of a failed one at least the timeout
  bool ok = false;
};

struct ConfigChange {
  Nanos at{0};
  double rate_per_s = 0;  // what the policy took the load to be
  std::string from;
  std::string to;
  std::string reason;
};

// The outcome of the requests that were due in a phase, whenever they ended.
struct PhaseResult {
  Phase phase;
  uint64_t due = 0;  // ok + failed
  uint64_t ok = 0;
  uint64_t failed = 0;
  // Over all of them, failed ones included, by nearest rank; 0 where none was due.
  double p50_us = 0;
  double p99_us = 0;
  double mean_us = 0;
  std::string config;       // in force the longest within the phase
  double config_share = 0;  // for how much of the phase, 0 to 1
};

// The requests that were due in kBucketLength.
struct Bucket {
  Nanos from{0};
  uint64_t due = 0;
  double p99_us = 0;  // 0 where none was due
};
inline constexpr Nanos kBucketLength = std::chrono::milliseconds(100);

// A run as it was measured.
struct PolicyMeasurement {
  std::string policy;
  size_t scenario = 0;  // an index into PolicyComparison::scenarios
  int round = 0;
  std::string first_config;           // in force when the run began
  std::vector<CallSample> samples;    // in any order; those due in the warm-up count in the series only
  std::vector<ConfigChange> changes;  // in the order of time, from the start of the run
  // Earlier changes of the run than these have been forgotten: what was in force before is not known.
  bool changes_lost = false;
  uint64_t switches = 0;             // all of the run, listed or not
  double server_cores = 0;           // CPU that the server under test used, in cores
  Nanos server_cpu{0};               // the same as time, from the first request to the last reply
  std::vector<std::string> invalid;  // why the run must not be believed; empty when it may
};

// A run as it is reported.
struct PolicyRun {
  std::string policy;
  size_t scenario = 0;
  int round = 0;
  std::string first_config;
  PhaseResult whole;                // everything after the warm-up
  std::vector<PhaseResult> phases;  // those of the scenario, in order
  std::vector<Bucket> series;       // from the start of the run to its end, without gaps; 100,000 at most
  std::vector<ConfigChange> changes;
  bool changes_lost = false;  // as in PolicyMeasurement
  uint64_t switches = 0;      // may exceed changes.size()
  double server_cores = 0;
  Nanos server_cpu{0};
  // For how long after the end of the spike requests were still slow, by due time: until the first whole
  // second in which none was, so that a single slow one much later does not count. Slow is over three times
  // the p99 before the spike, and over 10 ms. Zero if none was; absent without a spike.
  std::optional<Nanos> backlog_after_spike;
  // From the first request due in the spike to the first change after it that came before the spike's end;
  // absent if none did, or without a spike.
  std::optional<Nanos> reaction;
  // In force at the end of the spike, or of the run where there is no spike.
  std::string settled_config;
  // Most changes within any second of a steady phase, as far as `changes` tell.
  uint64_t most_switches_in_a_second = 0;
  std::vector<std::string> invalid;

  bool valid() const { return invalid.empty(); }
};

// Sums a run of `scenario` up.
PolicyRun Evaluate(PolicyMeasurement measured, const Scenario& scenario);

// All runs of a comparison, and where they come from.
struct PolicyComparison {
  std::string application;  // "hdsearch"
  std::string data;         // what it served, in words
  std::string profile;      // file or name, and what it holds in words; empty without one
  std::optional<Machine> machine;
  std::string curtail_version;
  uint64_t seed = 0;
  Nanos slo{0};  // that the policies were given; zero: none
  std::vector<Scenario> scenarios;
  std::vector<std::string> policies;  // as given; the first is the one that the others are judged against
  int rounds = 0;                     // begun, or planned before the first one
  int looks = 1;                      // how often at most the rounds so far are judged
  std::vector<PolicyRun> runs;        // in any order; those of one round and scenario had the same arrivals
  bool interrupted = false;
  std::vector<std::string> notes;  // sentences that stand beside the verdict
};

// A phase of PolicyRun::phases, or kWhole for everything after the warm-up.
inline constexpr size_t kWhole = ~size_t{0};

// The runs of a policy under a scenario that are not void, by round. REQUIRES: indices of `comparison`.
std::vector<const PolicyRun*> ValidRuns(const PolicyComparison& comparison, size_t scenario, size_t policy);
const PhaseResult& ResultOf(const PolicyRun& run, size_t phase);

}  // namespace curtail::tool
