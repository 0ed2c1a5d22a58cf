// SPDX-License-Identifier: Apache-2.0
#include "results.h"

#include <algorithm>
#include <utility>

#include "curtail/base/clock.h"

namespace curtail::models {
namespace {

// A closed loop whose sender has no CPU time left measures the sender.
constexpr double kBusySender = 0.9;

bool InHalf(const std::vector<Measurement>& rounds, bool Measurement::* mark) {
  size_t count = 0;
  for (const Measurement& round : rounds) count += round.*mark;
  return 2 * count >= rounds.size();
}

void MarkGenerator(const LoadResult& result, Measurement* m) {
  if (!result.valid()) {
    m->generator_bound = true;
    m->generator_note = result.invalid.front();
  } else if (result.plan.closed() && InMicros(result.cpu) > kBusySender * InMicros(result.measured)) {
    m->generator_bound = true;
    m->generator_note = "the generator had no CPU time left";
  }
}

}  // namespace

Measurement Evaluate(const LoadResult& result, Nanos elapsed, uint64_t requests, const ThreadStats& used) {
  Measurement m;
  m.requests = result.ok + result.failed;
  m.failed = result.failed;
  m.p50_us = InMicros(result.all.Percentile(50));
  m.p99_us = InMicros(result.all.Percentile(99));
  m.achieved_per_s = m.offered_per_s = result.good_per_s;
  if (!result.plan.closed()) {
    // Replies that came only after the window were not achieved in it: count the time they took as well.
    const Nanos late = std::max(Nanos::zero(), elapsed - result.plan.warmup - result.measured);
    m.offered_per_s = result.scheduled_per_s;
    m.achieved_per_s =
        result.good_per_s * InMicros(result.measured) / std::max(1.0, InMicros(result.measured + late));
    m.saturated = m.achieved_per_s < kSustainedShare * m.offered_per_s;
  }
  MarkGenerator(result, &m);
  const double per = 1.0 / static_cast<double>(std::max<uint64_t>(1, requests));
  m.context_switches = static_cast<double>(used.switches()) * per;
  m.involuntary_switches = static_cast<double>(used.involuntary_switches) * per;
  m.cpu_us = static_cast<double>(used.cpu.count()) / 1e3 * per;
  m.runqueue_us = static_cast<double>(used.run_delay.count()) / 1e3 * per;
  return m;
}

std::optional<Summary> Summarize(const std::vector<Measurement>& rounds) {
  if (rounds.empty()) return std::nullopt;
  Summary s;
  s.p50_us = bench::SpreadOf(bench::Values(rounds, &Measurement::p50_us));
  s.p99_us = bench::SpreadOf(bench::Values(rounds, &Measurement::p99_us));
  s.achieved_per_s = bench::SpreadOf(bench::Values(rounds, &Measurement::achieved_per_s));
  s.saturated = InHalf(rounds, &Measurement::saturated);
  s.generator_bound = InHalf(rounds, &Measurement::generator_bound);
  return s;
}

std::optional<size_t> BestPool(const Results& results, const Model& model, size_t load) {
  std::optional<size_t> best;
  std::pair<bool, double> lowest;  // saturated, p99
  for (size_t i = 0; i < results.rows.size(); ++i) {
    const std::optional<Summary> s = Summarize(results.rows[i].cells[load]);
    if (results.rows[i].model != model || !s) continue;
    const std::pair<bool, double> value(s->saturated, s->p99_us.median);
    if (!best || value < lowest) best = i, lowest = value;
  }
  return best;
}

std::optional<Best> BestOf(const Results& results, Waiting waiting, size_t load) {
  const bool closed = results.loads[load].closed();
  std::optional<Best> best;
  for (size_t i = 0; i < results.rows.size(); ++i) {
    const std::optional<Summary> s = Summarize(results.rows[i].cells[load]);
    if (results.rows[i].model.waiting != waiting || !s || s->saturated) continue;
    const double value = closed ? s->achieved_per_s.median : s->p99_us.median;
    if (!best || (closed ? value > best->value : value < best->value)) best = Best{i, value};
  }
  return best;
}

}  // namespace curtail::models
