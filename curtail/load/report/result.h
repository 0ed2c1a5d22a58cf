// SPDX-License-Identifier: Apache-2.0
//
// result.h - the outcome of a load run, and its validity.
//
// Plain values; thread-compatible. Latency counts from the intended send time in open loop and from
// the actual one in closed loop. Only requests due in the measured window (after the warm-up)
// count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"
#include "curtail/load/report/plan.h"

namespace curtail {

// A second of a run, warm-up included; in runs of over an hour two, four, ... seconds
// (LoadResult::series).
struct LoadInterval {
  Nanos end{0};  // since the start of the run
  Nanos length{0};
  uint64_t due = 0;  // open loop: by the schedule; closed loop: sent
  uint64_t sent = 0;
  uint64_t ok = 0;
  uint64_t failed = 0;
  // Of calls that ended in it, as in LoadResult::all; of merged intervals the larger one.
  Nanos p50{0};
  Nanos p99{0};
  uint64_t in_flight = 0;  // at its end
  std::string config;      // threading config of the server at its end, where known
};

// Results of the checks of a run's assumptions; absent if they do not apply or samples are too few.
// None makes a run void; see LoadResult::warnings.
struct LoadChecks {
  // Anderson-Darling statistic of the gaps between actual sends, scaled by the rate that was due,
  // against the exponential distribution. Poisson arrivals only. Above 3.878 they differ with 99 %
  // confidence.
  std::optional<double> gaps_a2;
  // Spearman's rank correlation of a latency with the next one's, and with time: -1 to 1.
  std::optional<double> neighbours;
  std::optional<double> trend;
};

// Quality of the replies as judged by the workload.
struct ScoreSummary {
  std::string name;  // "recall@10"; empty when the workload has none
  uint64_t count = 0;
  double sum = 0;
  double min = 1;

  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// A check of the replies (reply_check.h).
struct CheckResult {
  uint64_t failed = 0;  // replies
  std::string example;  // what the first of them had instead: "it is 8"
};

// The checks of all OK replies.
struct ReplyCheckSummary {
  uint64_t replies = 0;
  uint64_t failed = 0;              // at least one check
  std::vector<CheckResult> checks;  // as LoadPlan::checks

  double failed_fraction() const {
    return replies == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(replies);
  }
};

// A part of the requests that were due in the window: a step of all journeys, or a method.
struct PartResult {
  std::string name;
  uint64_t ok = 0;
  uint64_t failed = 0;  // of a step: and its journeys with it
  // From when it was due: a later step from the end of the reply before and the pause. A failed one
  // counts as at least the timeout.
  Histogram latency;
};

struct LoadResult {
  LoadPlan plan;
  // The real length of the measured window: shorter than planned when interrupted.
  Nanos measured{0};
  bool interrupted = false;
  // The start of the warm-up, since 1970, in whole microseconds. 0: not known.
  Nanos started{0};

  uint64_t scheduled = 0;  // due in the window (closed loop: sent)
  uint64_t sent = 0;
  uint64_t ok = 0;
  uint64_t failed = 0;   // includes dropped and unfinished
  uint64_t dropped = 0;  // not sent: too many calls in flight already
  uint64_t retried = 0;  // failed, and were made again; then they count once, as ok or failed
  uint64_t retries = 0;  // attempts at them after the first
  // Calls that the client did not end in time after their deadline; always a fault.
  uint64_t unfinished = 0;

  // Requests a second over the window: due, sent (late sends stretch the time it took), answered
  // OK.
  double scheduled_per_s = 0;
  double sent_per_s = 0;
  double good_per_s = 0;

  // gRPC code name -> calls, and "CODE: text" -> calls; sorted by key.
  std::map<std::string, uint64_t> codes;
  std::map<std::string, uint64_t> errors;

  // Every request; a failed one counts as at least LoadPlan::failure_latency(), so no failure
  // improves a percentile. A journey's pauses are not part of its latency.
  Histogram all;
  // The same from the actual send time: without the generator's own lateness. Empty in closed loop.
  Histogram since_sent;
  // OK replies, and failures with their real times.
  Histogram success;
  Histogram failure;
  // Actual minus intended send time, of journeys of their first step; empty in closed loop.
  Histogram send_lag;
  // Of journeys: the OK ones with their pauses, and each step. Empty otherwise.
  Histogram with_pauses;
  std::vector<PartResult> steps;
  // Of requests by two or more methods: each method, with the sent ones. Empty otherwise.
  std::vector<PartResult> methods;

  // CPU time of the sending thread over the window, and its part spent only on watching the clock
  // for the next send.
  Nanos cpu{0};
  Nanos spin{0};

  ScoreSummary score;
  // A reply that fails a check is OK all the same.
  ReplyCheckSummary reply_checks;
  LoadChecks checks;
  // At most kMaxIntervals, whatever the length of the run: neighbours are then merged.
  static constexpr size_t kMaxIntervals = 3600;
  std::vector<LoadInterval> series;

  // The reasons not to believe the numbers; empty if there are none. Filled by Judge().
  std::vector<std::string> invalid;
  // Remarks for the reader of the numbers. Filled by Judge().
  std::vector<std::string> warnings;

  bool valid() const { return invalid.empty(); }
  // For PercentileInterval95() of `all`: 0 if it was not measured.
  double neighbours() const { return checks.neighbours.value_or(0); }
  double failed_fraction() const {
    return ok + failed == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(ok + failed);
  }
};

// One plan, run once or several times with fresh connections. Not empty.
struct LoadReport {
  std::vector<LoadResult> runs;
  // Conditions that each run must meet, each a Threshold's text; none: nothing was asked for.
  std::vector<std::string> thresholds;

  bool valid() const {
    return std::all_of(runs.begin(), runs.end(), [](const LoadResult& run) { return run.valid(); });
  }
  bool interrupted() const { return runs.back().interrupted; }
};

// Fills result.invalid and result.warnings. A run is void if one of these holds:
// V1. No request was due in the measured window.
// V2. The p50, p90, p95 or p99 of the send lag is over a quarter of the latency's, and over 50 us
//     (a timer's lateness), as p99 over 250 us (a short preemption): the generator was starved, and
//     reads replies as late as it sends.
// V3. The p99.9 of the send lag is over a quarter of the latency's, and over 10 ms: the generator
//     stood still for longer than schedulers let a thread wait.
// V4. The rate of sends is more than 1 % off the schedule.
// V5. In a closed loop, the sending thread was busy for over 95 % of the time.
// V6. A call never ended.
// A lag within V2 and V3 can be corrected: since_sent leaves it out. Where that lowers a percentile
// by over a tenth and over 10 us, a warning names both numbers (W1). The true one is not above
// them: lag only adds.
void Judge(LoadResult& result);

// A percentile that is not given without the generator's own lateness.
struct LaggedPercentile {
  double percent;
  Nanos latency;
  Nanos since_sent;
};
// The percentiles of W1, of percentiles that a report names and that have an interval.
std::vector<LaggedPercentile> LaggedPercentiles(const LoadResult& result);

// Ranks of the samples between which a percentile lies with 95 % confidence, whatever the
// distribution. An end is absent if n samples are too few to have it. `neighbours` is the rank
// correlation of each sample with the next. With it n samples count as n (1 - r) / (1 + r)
// independent ones, as if correlation faded geometrically.
struct RankInterval {
  std::optional<uint64_t> low;
  std::optional<uint64_t> high;
};
RankInterval PercentileRanks95(double percent, uint64_t n, double neighbours = 0);

// The samples without which such an interval has an end missing: 563 for the p99.
uint64_t SamplesForInterval95(double percent, double neighbours = 0);

// The same as values of `histogram`.
struct ValueInterval {
  std::optional<Nanos> low;
  std::optional<Nanos> high;
};
ValueInterval PercentileInterval95(const Histogram& histogram, double percent, double neighbours = 0);

}  // namespace curtail
