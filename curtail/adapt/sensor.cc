// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Five arrivals tell a jump within a millisecond, and at a steady load they tell nonsense one time in
// five. An average over a second is the other way round. So the slow estimate is an average that is tested: for
// each of a few lengths, the time that the last arrivals took is compared with what a Poisson process of the
// average's rate would take. A time outside of the quantiles for `false_alarm` on either side refutes the
// average, which then starts again from those arrivals alone. Small jumps need more arrivals to be certain than
// large ones, hence several lengths. Some of the arrivals that betray a change may have come before it, so the
// average starts once more from the first 7 or more, and again from the first 33, that came after it was
// noticed. Rates that climb slowly are followed by the average, within `slow_time`.
//
// A thread that reads late finds many requests at once, which looks like a crowd for a moment. It gives itself away
// by the silence before them, which the average makes implausible: a crowd comes when it likes, mostly after a
// usual gap. So a length that begins among arrivals that a stall may have held up counts from the stall's begin. The
// average says how many those may be, so that a crowd after a long gap is noticed some arrivals later. For the same
// reason one short silence is no sign of a fall; a second one is.
#include "curtail/adapt/sensor.h"
#include "curtail/base/clock.h"

#include <algorithm>
#include <cmath>

namespace curtail {
namespace {

// Arrivals that are worth a look although nothing has changed.
constexpr double kHastyShare = 1e-3;
// Arrivals that a silence must have kept out, on average, to be taken for a stall: one gap in twenty is as long by
// chance.
constexpr double kStalled = 3;

constexpr uint64_t kEmpty = ~uint64_t{0};  // no time: it would be one nanosecond before the clock's start

// At least a nanosecond, so that rates stay finite.
double Between(TimePoint from, TimePoint to) { return InSeconds(std::max(to - from, Nanos(1))); }

// exp(-x). The quotient is right to 1e-5 where it is used, which is at nearly every arrival.
double Decay(double x) { return x < 0.04 ? (2 - x) / (2 + x) : std::exp(-x); }

// Of a sum of `shape` exponential times: the probability to be below `x`, summed from the small end so that small
// probabilities keep their digits.
double ErlangBelow(int shape, double x) {
  double term = std::exp(-x + shape * std::log(x) - std::lgamma(shape + 1.0));
  double sum = 0;
  for (int j = shape; j < shape + 10000 && (term > sum * 1e-15 || j < x); ++j) {
    sum += term;
    term *= x / (j + 1);
  }
  return std::min(sum, 1.0);
}

size_t UsedEntries(int entries) {
  return static_cast<size_t>(std::clamp(entries, ArrivalRing::kMinEntries, ArrivalRing::kMaxEntries));
}

// How many arrivals a stall held up at most, where so many were to be expected: one in a thousand held up more. A half
// more come while those are read, or because the average is too low.
uint64_t MostHeldUp(double expected) {
  return static_cast<uint64_t>(1.5 * expected + 3.1 * std::sqrt(expected)) + 2;
}

// How far the true rate may lie above that of `arrivals`: the quantile of the Gamma distribution by the formula of
// Wilson and Hilferty (1931).
double PlausibleFactor(double arrivals) {
  constexpr double kNormalQuantile = 1.96;
  const double n = std::max(arrivals, 1.0);
  const double root = 1 - 1 / (9 * n) + kNormalQuantile / (3 * std::sqrt(n));
  return root * root * root;
}

}  // namespace

ArrivalRing::ArrivalRing(int entries)
    : entries_(UsedEntries(entries)), lines_(std::make_unique<Line[]>((1 + entries_ + 7) / 8)) {
  Word(0).store(0, std::memory_order_relaxed);
  for (uint64_t i = 0; i < entries_; ++i) Word(1 + i).store(kEmpty, std::memory_order_relaxed);
}

size_t ArrivalRing::Recent(std::span<TimePoint> out) const {
  size_t found = 0;
  uint64_t slot = (count() + entries_ - 1) % entries_;
  uint64_t i = 0;
  // From the youngest ticket on, so that most are in order, and mostly all of them.
  uint64_t before = kEmpty - 1;
  for (; i < entries_ && found < out.size(); ++i) {
    const uint64_t word = Word(1 + slot).load(std::memory_order_relaxed);
    if (word > before) break;
    out[found++] = TimePoint(Nanos(static_cast<int64_t>(word)));
    before = word;
    slot = (slot == 0 ? entries_ : slot) - 1;
  }
  for (; i < entries_; ++i) {  // R3
    const uint64_t word = Word(1 + slot).load(std::memory_order_relaxed);
    slot = (slot == 0 ? entries_ : slot) - 1;
    if (word == kEmpty) continue;
    const TimePoint time{Nanos(static_cast<int64_t>(word))};
    if (found < out.size() && (found == 0 || out[found - 1] >= time)) {
      out[found++] = time;
      continue;
    }
    if (found == out.size() && (found == 0 || out[found - 1] >= time)) continue;
    size_t at = found < out.size() ? found++ : found - 1;
    for (; at > 0 && out[at - 1] < time; --at) out[at] = out[at - 1];
    out[at] = time;
  }
  return found;
}

double PaperRate(std::span<const TimePoint> youngest_first) {
  const size_t n = youngest_first.size();
  if (n < 2) return 0;
  return static_cast<double>(n - 1) / Between(youngest_first.back(), youngest_first.front());
}

double UnbiasedRate(std::span<const TimePoint> youngest_first) {
  const size_t n = youngest_first.size();
  if (n < 3) return 0;
  return static_cast<double>(n - 2) / Between(youngest_first.back(), youngest_first.front());
}

double RateWithSilence(std::span<const TimePoint> youngest_first, TimePoint now) {
  const size_t n = youngest_first.size();
  if (n < 3) return 0;
  // The smaller of the two rates is the one over the longer time.
  return static_cast<double>(n - 2) / Between(youngest_first.back(), std::max(now, youngest_first.front()));
}

double ErlangQuantile(int shape, double probability) {
  double low = 0, high = shape;
  while (ErlangBelow(shape, high) < probability) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (ErlangBelow(shape, middle) < probability ? low : high) = middle;
  }
  return high;
}

LoadEstimator::LoadEstimator(const SensorOptions& options)
    : options_(options),
      fast_entries_(UsedEntries(options.entries)),
      ring_(std::max<int>(options.entries, kScales.back())),
      recent_(std::max<size_t>(fast_entries_, kScales.back())) {
  hasty_ = ErlangQuantile(kHastyGaps, kHastyShare);
  const double p = std::clamp(options_.false_alarm, 1e-12, 0.4);
  for (size_t i = 0; i < kScales.size(); ++i) {
    at_least_[i] = ErlangQuantile(kScales[i] - 1, p);
    at_most_[i] = ErlangQuantile(kScales[i], 1 - p);
  }
}

Rates LoadEstimator::Update(TimePoint now) {
  const size_t n = ring_.Recent(recent_);
  const std::span<const TimePoint> times(recent_.data(), n);
  now = std::max({now, last_, n > 0 ? times[0] : now});
  const bool arrived = ring_.count() != counted_;
  NoticeStall(times);
  Average(now);
  NoticeChange(times, now, arrived);
  Rates rates;
  const std::span<const TimePoint> few = times.first(std::min(n, fast_entries_));
  rates.paper = PaperRate(few);
  rates.fast = RateWithSilence(few, now);
  rates.slow = seconds_ > 0 ? arrivals_ / seconds_ : 0;
  rates.high = rates.slow * PlausibleFactor(arrivals_);
  const double hasty_ns = rates.slow > 0 ? hasty_ / rates.slow * 1e9 : 0;
  // Its cache line is read at every arrival: a little more or less is not worth moving it between CPUs.
  const double before_ns = static_cast<double>(hasty_ns_.load(std::memory_order_relaxed));
  if (std::abs(hasty_ns - before_ns) > 0.1 * before_ns) {
    hasty_ns_.store(static_cast<int64_t>(std::min(hasty_ns, 1e15)), std::memory_order_relaxed);
  }
  return rates;
}

void LoadEstimator::NoticeStall(std::span<const TimePoint> youngest_first) {
  if (seconds_ <= 0 || youngest_first.empty()) return;
  const uint64_t count = ring_.count();
  const double slow = arrivals_ / seconds_;
  for (size_t i = std::min<size_t>(count - counted_, youngest_first.size() - 1); i-- > 0;) {  // oldest first
    const TimePoint from = youngest_first[i + 1], end = youngest_first[i];
    if (end - from > options_.longest_stall) continue;
    const double expected = Between(from, end) * slow;
    if (expected < kStalled) continue;
    const uint64_t before = count - i - 1;
    // One soon after another prolongs it: a length may begin among the arrivals of either.
    const bool soon = stall_.last > 0 && before < stall_.last + kScales.back();
    if (soon && end - stall_.from > options_.longest_stall)
      stall_.from = newest_.from, stall_.before = newest_.before;
    newest_ = {.from = from, .before = before, .last = before + MostHeldUp(expected)};
    if (!soon) stall_ = newest_;
    stall_.last = std::max(stall_.last, newest_.last);
  }
}

void LoadEstimator::Average(TimePoint now) {
  const uint64_t count = ring_.count();
  if (changes_ == 0) {  // nothing is known until there are enough arrivals for the first comparison
    last_ = now;
    return;
  }
  if (now == last_) return;  // arrivals at one moment wait for time to pass
  const double passed = Between(last_, now);
  const double tau = std::max(InSeconds(options_.slow_time), 1e-3);
  const double decay = Decay(passed / tau);
  const double weight = tau * (1 - decay);  // of the time since then, each moment by its age
  arrivals_ = arrivals_ * decay + static_cast<double>(count - counted_) * (weight / passed);
  seconds_ = seconds_ * decay + weight;
  last_ = now;
  counted_ = count;
}

void LoadEstimator::NoticeChange(std::span<const TimePoint> youngest_first, TimePoint now, bool arrived) {
  const double slow = seconds_ > 0 ? arrivals_ / seconds_ : 0;
  const double burst = InSeconds(options_.burst);
  const uint64_t count = ring_.count();
  double low = 0, high = 0;  // what the most telling lengths say of the rate
  size_t low_at = 0, high_at = 0;
  Nanos silence = now - (youngest_first.empty() ? now : youngest_first[0]);  // the longest so far
  size_t seen = 1;
  for (size_t i = 0; i < kScales.size(); ++i) {
    const auto n = static_cast<size_t>(kScales[i]);
    // Arrivals from before the last change are no evidence of what came after it.
    if (n > youngest_first.size() || youngest_first[n - 1] < since_) break;
    const double age = std::max(Between(youngest_first[n - 1], now), burst);
    const double longest = HeldUp(count - n) ? Between(stall_.from, now) : age;
    if (at_least_[i] / longest > low) low = at_least_[i] / longest, low_at = i;
    for (; seen < n; ++seen) silence = std::max(silence, youngest_first[seen - 1] - youngest_first[seen]);
    const double shortest =
        silence > options_.longest_stall ? age : std::max(age - InSeconds(silence), burst);
    if (high == 0 || at_most_[i] / shortest < high) high = at_most_[i] / shortest, high_at = i;
  }
  const bool rose = low > slow && arrived;  // silence is no news of a rise
  if (high == 0 || !(rose || slow > high)) return Refine(youngest_first, now);
  uint64_t n = static_cast<uint64_t>(kScales[rose ? low_at : high_at]);
  since_ = youngest_first[n - 1];
  if (rose && HeldUp(count - n)) {
    since_ = stall_.from;
    n = count - stall_.before + 1;
  }
  // Unbiased at an arrival, as a rise is noticed, and at any other moment, as a fall is.
  Restart(static_cast<double>(rose ? n - 2 : n - 1), std::max(Between(since_, now), burst));
  changed_at_ = counted_;
  refined_ = 0;
  ++changes_;
}

void LoadEstimator::Refine(std::span<const TimePoint> youngest_first, TimePoint now) {
  if (refined_ == kRefineAfter.size()) return;
  const auto least = static_cast<size_t>(kRefineAfter[refined_]);
  const size_t n = std::min<size_t>(ring_.count() - changed_at_, kScales.back());
  if (n < least || youngest_first.size() < n || HeldUp(ring_.count() - n)) return;
  since_ = youngest_first[n - 1];
  Restart(static_cast<double>(n) - 2, std::max(Between(since_, now), InSeconds(options_.burst)));
  ++refined_;
}

void LoadEstimator::Restart(double arrivals, double seconds) {
  // Older than slow_time, the arrivals weigh no more than the average's own.
  const double most = std::max(InSeconds(options_.slow_time), 1e-3);
  const double keep = std::min(1.0, most / seconds);
  arrivals_ = arrivals * keep;
  seconds_ = seconds * keep;
  counted_ = ring_.count();
}

}  // namespace curtail
