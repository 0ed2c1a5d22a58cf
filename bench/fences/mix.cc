// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The sum of independent Poisson processes is one whose rate is the sum. An arrival at time t belongs to class k
// with probability rate_k(t) / sum(t), independently of all others. So one schedule has the arrivals of all classes.
#include "bench/fences/mix.h"

#include <algorithm>
#include <set>
#include <utility>

#include "curtail/base/rng.h"

namespace curtail::fences {
namespace {

double TotalAt(const std::vector<ClassPlan>& classes, Nanos t) {
  double sum = 0;
  for (const ClassPlan& one : classes) sum += one.curve.RateAt(t);
  return sum;
}

size_t Draw(const std::vector<ClassPlan>& classes, Nanos t, Rng& rng) {
  double left = rng.Uniform01() * TotalAt(classes, t);
  for (size_t i = 0; i + 1 < classes.size(); ++i) {
    left -= classes[i].curve.RateAt(t);
    if (left < 0) return i;
  }
  return classes.size() - 1;
}

}  // namespace

absl::StatusOr<RateCurve> SumOf(const std::vector<ClassPlan>& classes) {
  const Nanos length = classes.front().curve.length();
  std::set<Nanos> corners;
  for (const ClassPlan& one : classes) {
    for (const RateCurve::Piece& piece : one.curve.pieces()) corners.insert(piece.start);
  }
  std::vector<RatePoint> points;
  for (const Nanos at : corners) {
    if (at > Nanos(0)) points.push_back({at, TotalAt(classes, at - Nanos(1))});
    points.push_back({at, TotalAt(classes, at)});
  }
  points.push_back({length, TotalAt(classes, length - Nanos(1))});
  return RateCurve::Make(std::move(points), length);
}

absl::StatusOr<std::unique_ptr<Mix>> Mix::Make(std::vector<ClassPlan> classes, uint64_t seed) {
  absl::StatusOr<RateCurve> sum = SumOf(classes);
  if (!sum.ok()) return sum.status();
  absl::StatusOr<Schedule> schedule = Schedule::Make(*std::move(sum), Gaps::kPoisson, seed);
  if (!schedule.ok()) return schedule.status();
  auto mix = std::unique_ptr<Mix>(new Mix(std::move(classes), *std::move(schedule), seed));
  if (mix->arrivals_.empty()) return absl::InvalidArgumentError("no request is due in so short a run");
  return mix;
}

Mix::Mix(std::vector<ClassPlan> classes, Schedule schedule, uint64_t seed)
    : classes_(std::move(classes)), schedule_(std::move(schedule)) {
  Rng rng(~seed);
  std::vector<uint32_t> numbers(classes_.size(), 0);
  Arrivals arrivals = schedule_.arrivals();
  while (const std::optional<Nanos> due = arrivals.Next()) {
    const size_t of_class = Draw(classes_, *due, rng);
    arrivals_.push_back({*due, static_cast<uint32_t>(of_class), numbers[of_class]++});
  }
}

size_t Mix::ClassAt(Nanos due) const {
  const auto found = std::lower_bound(arrivals_.begin(), arrivals_.end(), due,
                                      [](const Arrival& a, Nanos t) { return a.due < t; });
  return found == arrivals_.end() ? arrivals_.back().of_class : found->of_class;
}

std::string_view Mix::MethodOf(uint64_t index) const {
  const Arrival& arrival = At(index);
  return classes_[arrival.of_class].workload->MethodOf(arrival.number);
}

std::string Mix::Request(uint64_t index) const {
  const Arrival& arrival = At(index);
  return classes_[arrival.of_class].workload->Request(arrival.number);
}

PhaseRecorder::PhaseRecorder(const Mix& mix, const PhaseOptions& options)
    : mix_(mix), options_(options), tallies_((mix.classes() + (options.total ? 1 : 0)) * options.phases) {}

void PhaseRecorder::Tally::Record(Nanos latency, bool ok, Nanos slo) {
  all.Record(latency);
  if (!ok) return;
  answered.Record(latency);
  if (latency <= slo) ++good;
}

void PhaseRecorder::Ended(Nanos due, Nanos latency, bool ok) {
  if (due < options_.warmup) return;
  const auto phase = static_cast<size_t>((due - options_.warmup) / options_.phase);
  if (phase >= options_.phases) return;
  tallies_[mix_.ClassAt(due) * options_.phases + phase].Record(latency, ok, options_.slo);
  if (options_.total) tallies_[mix_.classes() * options_.phases + phase].Record(latency, ok, options_.slo);
}

std::vector<std::vector<PhaseResult>> PhaseRecorder::Results() const {
  std::vector<std::vector<PhaseResult>> results(tallies_.size() / options_.phases);
  const double seconds = InSeconds(options_.phase);
  for (size_t i = 0; i < tallies_.size(); ++i) {
    const Tally& tally = tallies_[i];
    const uint64_t answered = tally.answered.count();
    results[i / options_.phases].push_back({
        .due = tally.all.count(),
        .dropped = tally.all.count() - answered,
        .answered_per_s = static_cast<double>(answered) / seconds,
        .good_per_s = static_cast<double>(tally.good) / seconds,
        .mean_ms = InMillis(tally.answered.mean()),
        .answered_p99_ms = InMillis(tally.answered.Percentile(99)),
        .p99_ms = InMillis(tally.all.Percentile(99)),
    });
  }
  return results;
}

}  // namespace curtail::fences
