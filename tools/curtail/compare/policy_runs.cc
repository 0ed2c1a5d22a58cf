// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_runs.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxBuckets = 100'000;
constexpr double kSlowFactor = 3;  // times the p99 before the spike
constexpr double kSlowUs = 10'000;
constexpr Nanos kQuiet = std::chrono::seconds(1);  // without a slow request, after which a backlog has ended

using Samples = std::span<const CallSample>;

// Those due in [from, to). REQUIRES: sorted by due time.
Samples DueIn(Samples samples, Nanos from, Nanos to) {
  const auto before = [](const CallSample& sample, Nanos t) { return sample.due < t; };
  const auto begin = std::lower_bound(samples.begin(), samples.end(), from, before);
  return {begin, std::lower_bound(begin, samples.end(), to, before)};
}

// Latencies in ascending order.
std::vector<Nanos> SortedLatencies(Samples samples) {
  std::vector<Nanos> latencies;
  latencies.reserve(samples.size());
  for (const CallSample& sample : samples) latencies.push_back(sample.latency);
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

double PercentileUs(const std::vector<Nanos>& sorted, double percent) {
  return sorted.empty() ? 0 : InMicros(sorted[Histogram::RankOf(percent, sorted.size()) - 1]);
}

// Which config was in force when.
class Configs {
 public:
  // `run` must outlive it. Where its changes are not known, the config is empty.
  explicit Configs(const PolicyRun& run)
      : first_(run.changes_lost      ? ""
               : run.changes.empty() ? run.first_config
                                     : run.changes.front().from),
        changes_(run.changes) {}

  const std::string& At(Nanos t) const {
    const auto next = After(t);
    return next == changes_.begin() ? first_ : std::prev(next)->to;
  }
  // The first change after `t`.
  std::vector<ConfigChange>::const_iterator After(Nanos t) const {
    return std::upper_bound(changes_.begin(), changes_.end(), t,
                            [](Nanos time, const ConfigChange& change) { return time < change.at; });
  }
  // The one that was in force for the longest of [from, to), and for which share of it. REQUIRES: from < to.
  std::pair<std::string, double> Longest(Nanos from, Nanos to) const {
    std::map<std::string_view, Nanos> times;
    Nanos since = from;
    std::string_view config = At(from);
    for (auto change = After(from); change != changes_.end() && change->at < to; ++change) {
      times[config] += change->at - since;
      config = change->to;
      since = change->at;
    }
    times[config] += to - since;
    const auto longest = std::max_element(times.begin(), times.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    return {std::string(longest->first), InMicros(longest->second) / InMicros(to - from)};
  }

 private:
  const std::string first_;
  const std::vector<ConfigChange>& changes_;
};

PhaseResult SumUp(const Phase& phase, Samples all, const Configs& configs) {
  const Samples samples = DueIn(all, phase.from, phase.to);
  const std::vector<Nanos> latencies = SortedLatencies(samples);
  PhaseResult result{.phase = phase, .due = samples.size()};
  double sum_us = 0;
  for (const CallSample& sample : samples) {
    sum_us += InMicros(sample.latency);
    ++(sample.ok ? result.ok : result.failed);
  }
  if (result.due > 0) result.mean_us = sum_us / static_cast<double>(result.due);
  result.p50_us = PercentileUs(latencies, 50);
  result.p99_us = PercentileUs(latencies, 99);
  std::tie(result.config, result.config_share) = configs.Longest(phase.from, phase.to);
  return result;
}

std::vector<Bucket> SeriesOf(Samples samples, Nanos length) {
  std::vector<Bucket> series;
  for (Nanos from{0}; from < length && series.size() < kMaxBuckets; from += kBucketLength) {
    const Samples due = DueIn(samples, from, std::min(length, from + kBucketLength));
    series.push_back({from, due.size(), PercentileUs(SortedLatencies(due), 99)});
  }
  return series;
}

Nanos Backlog(Samples samples, Nanos spike_end, double p99_before_us) {
  const double slow_us = std::max(kSlowFactor * p99_before_us, kSlowUs);
  Nanos last_slow = spike_end;
  for (const CallSample& sample : DueIn(samples, spike_end, Nanos::max())) {
    if (sample.due - last_slow > kQuiet) break;
    if (InMicros(sample.latency) > slow_us) last_slow = sample.due;
  }
  return last_slow - spike_end;
}

std::optional<Nanos> Reaction(Samples samples, const Phase& spike, const Configs& configs,
                              const PolicyRun& run) {
  const Samples due = DueIn(samples, spike.from, spike.to);
  if (due.empty()) return std::nullopt;
  const auto change = configs.After(due.front().due);
  if (change == run.changes.end() || change->at >= spike.to) return std::nullopt;
  // It may not have been the first one.
  if (run.changes_lost && change == run.changes.begin()) return std::nullopt;
  return change->at - due.front().due;
}

uint64_t MostInASecond(const std::vector<ConfigChange>& changes, const Phase& phase) {
  uint64_t most = 0;
  auto first = changes.begin();
  for (auto last = changes.begin(); last != changes.end() && last->at < phase.to; ++last) {
    while (first->at < phase.from && first != last) ++first;
    while (last->at - first->at >= std::chrono::seconds(1)) ++first;
    if (last->at >= phase.from) most = std::max<uint64_t>(most, last - first + 1);
  }
  return most;
}

}  // namespace

PolicyRun Evaluate(PolicyMeasurement measured, const Scenario& scenario) {
  std::vector<CallSample> samples = std::move(measured.samples);
  std::sort(samples.begin(), samples.end(),
            [](const CallSample& a, const CallSample& b) { return a.due < b.due; });
  PolicyRun run{std::move(measured.policy), measured.scenario, measured.round,
                std::move(measured.first_config)};
  run.changes = std::move(measured.changes);
  run.changes_lost = measured.changes_lost;
  run.switches = std::max<uint64_t>(measured.switches, run.changes.size());
  run.server_cores = measured.server_cores;
  run.server_cpu = measured.server_cpu;
  run.invalid = std::move(measured.invalid);
  const Configs configs(run);

  const Nanos begin = scenario.warmup, end = scenario.curve.length();
  const double mean_per_s =
      (scenario.curve.total() - scenario.curve.Expected(begin)) * 1e6 / InMicros(end - begin);
  run.whole = SumUp({"whole", mean_per_s, begin, end}, samples, configs);
  for (const Phase& phase : scenario.phases) {
    run.phases.push_back(SumUp(phase, samples, configs));
    if (phase.steady) {
      run.most_switches_in_a_second =
          std::max(run.most_switches_in_a_second, MostInASecond(run.changes, phase));
    }
  }
  run.series = SeriesOf(samples, end);
  const Phase* spike = FindPhase(scenario, "spike");
  run.settled_config = configs.At(spike == nullptr ? end : spike->to);
  if (spike != nullptr) {
    const double p99_before_us = PercentileUs(SortedLatencies(DueIn(samples, begin, spike->from)), 99);
    run.backlog_after_spike = Backlog(samples, spike->to, p99_before_us);
    run.reaction = Reaction(samples, *spike, configs, run);
  }
  return run;
}

std::vector<const PolicyRun*> ValidRuns(const PolicyComparison& c, size_t scenario, size_t policy) {
  std::vector<const PolicyRun*> runs;
  for (const PolicyRun& run : c.runs) {
    if (run.scenario == scenario && run.policy == c.policies[policy] && run.valid()) runs.push_back(&run);
  }
  std::sort(runs.begin(), runs.end(),
            [](const PolicyRun* a, const PolicyRun* b) { return a->round < b->round; });
  return runs;
}

const PhaseResult& ResultOf(const PolicyRun& run, size_t phase) {
  return phase == kWhole ? run.whole : run.phases[phase];
}

}  // namespace curtail::tool
