// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/internal/online_knowledge.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace curtail::internal {
namespace {

constexpr double kMaxWeight = 4000;      // samples: beyond, the p99 is known to 3 % and older ones should go
constexpr double kMostWindows = 32;      // that stay nevertheless: a machine is slow for seconds now and then
constexpr double kExpectedWeight = 400;  // of what a profile says
constexpr double kLeast = 20;            // samples below which nothing is known
constexpr double kDistrusted = 3;  // samples that stay where all has changed: not enough to exclude much
constexpr std::chrono::duration<double> kHalfLife{600};  // of what was measured
constexpr Nanos kFadeEvery = std::chrono::seconds(20);
constexpr Nanos kForgive = std::chrono::minutes(15);  // how long a saturation is remembered at first
constexpr Nanos kForgiveLast = std::chrono::hours(8);
constexpr double kBorrowed = 0.15;    // added for each bucket of distance
constexpr int kFarthest = 2;          // buckets: an octave
constexpr double kUtilization = 0.7;  // of threads that wait; beyond it queues grow long
constexpr double kOwnShare = 0.25;    // of a request's time that needs a thread where waiting does not

bool Sync(const Config& config) { return config.model.waiting == Waiting::kSync; }

// Threads that can hold a request of a synchronous config, each one at a time.
int HandlerThreads(const Config& config) {
  return config.model.execution == Execution::kInline ? config.network : config.workers;
}

}  // namespace

int Knowledge::BucketOf(double load_per_s) {
  return std::clamp(static_cast<int>(std::lround(2 * std::log2(std::max(load_per_s, 1.0)))), 0, kBuckets - 1);
}

double Knowledge::LowOf(int bucket) { return bucket == 0 ? 0 : std::exp2((bucket - 0.5) / 2); }
double Knowledge::HighOf(int bucket) { return std::exp2((bucket + 0.5) / 2); }

Knowledge::Knowledge(std::vector<Config> configs, std::optional<Envelope> expected)
    : configs_(std::move(configs)), cells_(configs_.size() * kBuckets), limits_(configs_.size()) {
  if (!expected) return;
  for (size_t c = 0; c < configs_.size(); ++c) {
    const std::optional<double> sustained = expected->Sustains(configs_[c]);
    if (!sustained) continue;
    for (int b = 0; b < kBuckets; ++b) {
      // A bucket that the limit lies in is excluded as a whole.
      if (HighOf(b) > *sustained) {
        limits_[c].bucket = b;
        break;
      }
      At(c, b).expected_us = *expected->Predict(configs_[c], std::exp2(b / 2.0));
      At(c, b).expected_weight = kExpectedWeight;
      limits_[c].proven = b;
    }
  }
}

void Knowledge::Learn(size_t config, int bucket, TimePoint now, const LatencyWindow& window) {
  Fade(now);
  Cell& cell = At(config, bucket);
  if (cell.sketch == nullptr) cell.sketch = std::make_unique<LatencySketch>();
  cell.sketch->Merge(window.latencies);
  // Expectations lose weight as measured samples come in.
  const double weight = window.latencies.weight();
  cell.expected_weight *= std::max(0.0, 1 - weight / (4 * kExpectedWeight));
  cell.windows += 1;
  const double most = std::max(kMaxWeight, kMostWindows * weight);
  if (cell.weight() > most) cell.Scale(most / cell.weight());
  Limit& limit = limits_[config];
  if (limit.bucket > bucket) limit.proven = std::max(limit.proven, bucket);
  const double mean = window.latencies.MeanUs();
  limit.mean_us += (mean - limit.mean_us) * (limit.mean_us == 0 ? 1 : std::min(1.0, weight / 1000));
  double shortest = 0;
  for (const Limit& l : limits_) {
    if (l.mean_us > 0 && (shortest == 0 || l.mean_us < shortest)) shortest = l.mean_us;
  }
  if (shortest > 0) mean_us_ = shortest;
}

void Knowledge::Cell::Scale(double factor) {
  if (sketch != nullptr) sketch->Scale(factor);
  windows *= factor;
}

void Knowledge::Fade(TimePoint now) {
  if (faded_ == TimePoint{}) faded_ = now;
  if (now - faded_ < kFadeEvery) return;
  const double fade = std::exp2(-std::chrono::duration<double>(now - faded_) / kHalfLife);
  faded_ = now;
  for (Cell& cell : cells_) {
    cell.Scale(fade);
    cell.expected_weight *= fade;
  }
}

void Knowledge::LearnSaturation(size_t config, int bucket, TimePoint now) {
  Limit& limit = limits_[config];
  limit.bucket = std::min(limit.bucket, bucket);
  // Learnt again after it was forgiven: believed for twice as long.
  if (now - limit.learnt >= limit.remember) limit.remember = std::min(2 * limit.remember, kForgiveLast);
  if (limit.learnt == TimePoint{}) limit.remember = kForgive;
  limit.learnt = now;
  limit.proven = std::min(limit.proven, limit.bucket - 1);
}

void Knowledge::Distrust() {
  for (Cell& cell : cells_) {
    cell.expected_weight = 0;
    cell.ratio.reset();
    if (cell.weight() > kDistrusted) cell.Scale(kDistrusted / cell.weight());
  }
  for (Limit& limit : limits_) limit.mean_us = 0, limit.proven = -1;
}

void Knowledge::ForgetRatios(int bucket) {
  for (size_t c = 0; c < configs_.size(); ++c) At(c, bucket).ratio.reset();
}

double Knowledge::Weight(size_t config, int bucket) const { return At(config, bucket).weight(); }

std::optional<double> Knowledge::P99(size_t config, int bucket) const {
  const Cell& cell = At(config, bucket);
  const double measured = cell.weight(), all = measured + cell.expected_weight;
  if (all < kLeast) return std::nullopt;
  if (cell.expected_weight <= 0) return cell.sketch->QuantileUs(0.99);
  if (measured < 1) return cell.expected_us;
  const double log = measured * std::log(std::max(cell.sketch->QuantileUs(0.99), 1e-3)) +
                     cell.expected_weight * std::log(std::max(cell.expected_us, 1e-3));
  return std::exp(log / all);
}

std::optional<double> Knowledge::P99Nearby(size_t config, int bucket) const {
  for (int away = 0; away <= kFarthest; ++away) {
    for (int b : {bucket + away, bucket - away}) {
      if (b < 0 || b >= kBuckets) continue;
      if (const std::optional<double> p99 = P99(config, b)) return *p99 * (1 + kBorrowed * away);
    }
  }
  return std::nullopt;
}

double Knowledge::P99AtLeast(size_t config, int bucket) const {
  const Cell& cell = At(config, bucket);
  const double measured = cell.sketch == nullptr ? 0 : cell.sketch->P99AtLeastUs();
  if (cell.expected_weight < 1) return measured;
  // A profile is a measurement of another day: trusted as far as its weight goes.
  const double trust = 1 - 2 / std::sqrt(cell.expected_weight);
  return cell.weight() < 1 ? cell.expected_us * std::max(trust, 0.0) : measured;
}

bool Knowledge::Excluded(size_t config, int bucket, TimePoint now) const {
  const Limit& limit = limits_[config];
  // A profile's numbers were not learnt here, and are not forgiven.
  const bool remembered = limit.learnt == TimePoint{} || now - limit.learnt < limit.remember;
  if (remembered && bucket >= limit.bucket) return true;
  // Little's law: a thread that waits for each request cannot hold two.
  return Sync(configs_[config]) &&
         HighOf(bucket) * mean_us_ * 1e-6 > kUtilization * HandlerThreads(configs_[config]);
}

bool Knowledge::SafeToTry(size_t config, int bucket, TimePoint now) const {
  if (Excluded(config, bucket, now)) return false;
  return limits_[config].proven >= bucket - 1 || PresumedCapacity(configs_[config]) > 2 * HighOf(bucket);
}

double Knowledge::PresumedCapacity(const Config& config) const {
  const double threads = HandlerThreads(config);
  return threads / (mean_us_ * 1e-6 * (Sync(config) ? 1 : kOwnShare));
}

size_t Knowledge::Presumed(double load_per_s, TimePoint now) const {
  const int bucket = BucketOf(load_per_s);
  // Lower is better.
  const auto rank = [&](size_t c) {
    const Config& config = configs_[c];
    const double capacity = PresumedCapacity(config);
    const bool poll = config.model.reception == Reception::kPoll;
    const bool calm = !poll && config.model.execution == Execution::kInline;
    const bool fiber = calm && config.model.waiting == Waiting::kFiber;
    const bool enough = calm && capacity > 2 * load_per_s;
    const int kind = Excluded(c, bucket, now) ? 4 : config.stand_ins ? 0 : fiber ? 1 : enough ? 2 : 3;
    // Of in-line blocking the fewest threads, of the rest the most capable, and of those the ones that block.
    const double size = kind == 3 ? -capacity : config.network;
    return std::tuple(kind, size, poll);
  };
  size_t best = 0;
  for (size_t c = 1; c < configs_.size(); ++c) {
    if (rank(c) < rank(best)) best = c;
  }
  return best;
}

}  // namespace curtail::internal
