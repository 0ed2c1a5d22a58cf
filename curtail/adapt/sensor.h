// SPDX-License-Identifier: Apache-2.0
//
// sensor.h - the rate of requests, from the times of the last arrivals.
//
// Any thread writes ArrivalRing on the request path. LoadEstimator turns its times into rates, one
// caller at a time. Neither reads a clock: the caller passes times in.
//
// For Poisson arrivals of rate r the time S over n arrivals is Gamma(n-1). The tests check its
// consequences:
//   paper     (n-1)/S           mean r(n-1)/(n-2): a third too high at n = 5   (muTune, section 4)
//   unbiased  (n-2)/S           mean r, deviation r/sqrt(n-3): 71 % at n = 5
//   silence   (n-2)/(now - oldest): the same at an arrival, and falls when no more come; at any
//             other moment its mean is r(n-2)/(n-1)
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "curtail/base/clock.h"

namespace curtail {

// An ArrivalRing keeps the times of the last arrivals. All methods from any thread; none blocks.
//
// Protocol:
// - R1. A writer takes a ticket (fetch_add on the count) and stores its time into slot `ticket %
//   entries`. Both are relaxed, because only the numbers themselves are handed over.
// - R2. Between the two steps the slot holds the time of one lap ago. A reader may see up to one
//   outdated time for each writer in between. A delayed writer may put an old time over a new one.
// - R3. A reader therefore does not trust positions: it takes all slots and sorts. Every value it
//   uses is the time of a real arrival, and the oldest are at worst too old. Rates come out too low
//   by such an entry's share, never too high. They are right again once the slot is overwritten.
// - R4. With up to kSlotsInFirstLine entries the count and all slots share one cache line: an
//   arrival moves one line between CPUs, not two. Longer rings add one line in eight arrivals.
class ArrivalRing {
 public:
  static constexpr int kDefaultEntries = 5;  // muTune, section 5
  static constexpr int kMinEntries = 3;
  static constexpr int kMaxEntries = 512;
  static constexpr int kSlotsInFirstLine = 7;

  // A size outside of the limits becomes the nearest limit.
  explicit ArrivalRing(int entries = kDefaultEntries);

  // Notes an arrival; returns the number of arrivals before it. Takes some nanoseconds.
  uint64_t Add(TimePoint now) {
    const uint64_t ticket = Word(0).fetch_add(1, std::memory_order_relaxed);  // R1
    Word(1 + ticket % entries_).store(now.time_since_epoch().count(), std::memory_order_relaxed);
    return ticket;
  }

  uint64_t count() const { return Word(0).load(std::memory_order_relaxed); }
  int entries() const { return static_cast<int>(entries_); }

  // The approximate time of the arrival for which Add() returned `ticket`; one of the last
  // entries().
  TimePoint At(uint64_t ticket) const {
    return TimePoint(
        Nanos(static_cast<int64_t>(Word(1 + ticket % entries_).load(std::memory_order_relaxed))));
  }

  // The latest arrivals, youngest first, as many as there are and fit in `out`; returns their
  // number.
  size_t Recent(std::span<TimePoint> out) const;

 private:
  struct alignas(64) Line {
    std::atomic<uint64_t> words[8];
  };
  std::atomic<uint64_t>& Word(uint64_t i) const { return lines_[i / 8].words[i % 8]; }

  // Immutable after construction.
  const uint64_t entries_;
  const std::unique_ptr<Line[]> lines_;  // the count, then the slots
};

// Estimators of arrivals in requests a second. `youngest_first` as from ArrivalRing::Recent(). Zero
// for too few arrivals; always finite. Pure functions.
double PaperRate(std::span<const TimePoint> youngest_first);
double UnbiasedRate(std::span<const TimePoint> youngest_first);
double RateWithSilence(std::span<const TimePoint> youngest_first, TimePoint now);

// The value below which a sum of `shape` independent exponential times of mean 1 stays with this
// probability. REQUIRES: shape >= 1, 0 < probability < 1.
double ErlangQuantile(int shape, double probability);

struct SensorOptions {
  // Arrivals of the fast estimates. Raise for steadier ones.
  int entries = ArrivalRing::kDefaultEntries;
  // The time over which the slow estimate averages, exponentially. Raise for low loads: its
  // relative deviation is 1/sqrt(2 * rate * slow_time).
  Nanos slow_time = std::chrono::seconds(1);
  // The slow estimate starts afresh when the last arrivals have at most this probability under it.
  double false_alarm = 1e-6;
  // Arrivals closer together than this may be one burst of a client that sends several requests at
  // once. They count as spread over this time.
  Nanos burst = std::chrono::milliseconds(1);
  // A silence that the slow estimate makes implausible, and that was no longer than this, may be a
  // stall of the thread that reads: no fall, and what comes after it counts as spread over it.
  Nanos longest_stall = std::chrono::milliseconds(250);
};

// Requests a second; zero before there are enough arrivals.
struct Rates {
  double paper = 0;  // as muTune has it: from the ring alone, so it does not fall in silence
  double fast = 0;   // RateWithSilence() over the same few arrivals
  double slow = 0;   // steady, and yet at once at a new level
  // The highest rate that the arrivals behind `slow` leave plausible: it is exceeded one time in
  // forty. Far above `slow` just after a change, and close to it later.
  double high = 0;
};

// A LoadEstimator holds the ring and a slow estimate that notices changes. The estimate is an
// exponential average of the arrivals. It is replaced by the last 5, 7, 9, 17 or 33 arrivals as
// soon as those are all but impossible under it. Any thread may call Add(), Hasty(), count() and
// ring() at any time; otherwise thread-compatible.
class LoadEstimator {
 public:
  explicit LoadEstimator(const SensorOptions& options);

  uint64_t Add(TimePoint now) { return ring_.Add(now); }
  // True if the arrival at `now` and the four before it came so close together that it is worth an
  // Update(). One in a thousand does by chance. `ticket` is Add()'s for that arrival. Takes some
  // instructions.
  bool Hasty(uint64_t ticket, TimePoint now) const {
    if (ticket < kHastyGaps) return false;
    return (now - ring_.At(ticket - kHastyGaps)).count() < hasty_ns_.load(std::memory_order_relaxed);
  }
  uint64_t count() const { return ring_.count(); }
  const ArrivalRing& ring() const { return ring_; }

  // The rates at `now`. Times that go back count as no time.
  Rates Update(TimePoint now);
  // The number of fresh starts of the slow estimate.
  uint64_t changes() const { return changes_; }

 private:
  static constexpr int kHastyGaps = 4;
  static constexpr std::array<int, 5> kScales = {5, 7, 9, 17, 33};  // arrivals
  static constexpr std::array<int, 2> kRefineAfter = {7, 33};       // arrivals

  // A silence that may be a stall of the thread that reads, and the arrivals that it may have held
  // up: those after the first `before` ones, up to the `last`.
  struct Stall {
    TimePoint from;  // the last arrival before it
    uint64_t before = 0;
    uint64_t last = 0;
  };

  // Looks for a stall among the arrivals since the last update.
  void NoticeStall(std::span<const TimePoint> youngest_first);
  // For the arrival before which there were so many.
  bool HeldUp(uint64_t before) const { return before >= stall_.before && before < stall_.last; }
  void Average(TimePoint now);
  // Compares with the last arrivals; starts afresh when they contradict.
  void NoticeChange(std::span<const TimePoint> youngest_first, TimePoint now, bool arrived);
  // Some time after a change, forgets arrivals that may have come before it.
  void Refine(std::span<const TimePoint> youngest_first, TimePoint now);
  void Restart(double arrivals, double seconds);

  // Immutable after construction.
  const SensorOptions options_;
  const size_t fast_entries_;
  // Quantiles of the time over so many arrivals, for rate 1
  std::array<double, kScales.size()> at_least_;
  std::array<double, kScales.size()> at_most_;
  double hasty_;  // the quantile of the time over kHastyGaps gaps, for rate 1
  // Thread-safe by itself.
  ArrivalRing ring_;
  // Written by the thread that updates; a reader that sees an old one is a moment late.
  std::atomic<int64_t> hasty_ns_{0};
  // Of the thread that updates.
  std::vector<TimePoint> recent_;
  TimePoint last_ = TimePoint::min();
  TimePoint since_ = TimePoint::min();  // the oldest arrival after the last change
  Stall stall_;                         // one, or several that followed one another
  Stall newest_;                        // of those
  uint64_t counted_ = 0;
  double arrivals_ =
      0;  // weighted by age, and the time they came in, weighted the same: the rate is the quotient
  double seconds_ = 0;
  uint64_t changes_ = 0;
  uint64_t changed_at_ = 0;  // arrivals before the last change was noticed
  size_t refined_ = 0;       // steps of kRefineAfter done since then
};

}  // namespace curtail
