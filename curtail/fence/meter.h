// SPDX-License-Identifier: Apache-2.0
//
// meter.h - counts of each path class what a limiter goes by. Fences with fixed limits have none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "curtail/base/clock.h"
#include "curtail/fence/occupancy.h"

namespace curtail {

// How a request returned its permit.
enum class PermitEnd : uint8_t {
  kUnused,     // its handler did not run
  kAnswered,   // or it left its path early
  kDropped,    // the handler's answer was overload or a deadline
  kCancelled,  // its caller no longer waited: for a limiter the same as an answer
};

// A FenceMeter is the meters of all classes. Come() under the executor's mutex, Leave() and Hear()
// from any thread, Read() from one thread at a time. None blocks.
class FenceMeter {
 public:
  // Requests come within 2 years after `origin`.
  FenceMeter(size_t classes, TimePoint origin)
      : origin_(origin), classes_(std::make_unique<Class[]>(classes)) {}

  // A request got a permit. `now` may be older than what Hear() brought: an empty Append() of the
  // order brings no time.
  void Come(uint8_t path_class, TimePoint now) {
    const int64_t ticks = std::max(Ticks(now), heard_.load(std::memory_order_relaxed));
    classes_[path_class].held.Come(static_cast<uint64_t>(ticks));
  }
  // A request returns its permit. Before Fence::End(), so that the next holder comes later.
  void Leave(uint8_t path_class, TimePoint now, PermitEnd end) {
    const int64_t ticks = Ticks(now);
    heard_.store(ticks, std::memory_order_relaxed);
    Class& c = classes_[path_class];
    c.held.Leave(static_cast<uint64_t>(ticks));
    if (end == PermitEnd::kUnused) return;
    c.answered.fetch_add(1, std::memory_order_relaxed);
    if (end == PermitEnd::kDropped) c.dropped.fetch_add(1, std::memory_order_relaxed);
  }
  // It is `now`, or a little later.
  void Hear(TimePoint now) { heard_.store(Ticks(now), std::memory_order_relaxed); }

  struct Reading {
    double held = 0;  // requests times seconds
    uint64_t answered = 0;
    uint64_t dropped = 0;  // of those
  };
  // Adds up since the last Read() of the class.
  Reading Read(uint8_t path_class, TimePoint now) {
    Class& c = classes_[path_class];
    const uint64_t dropped = c.dropped.load(std::memory_order_relaxed);
    const uint64_t answered = c.answered.load(std::memory_order_relaxed);
    const uint64_t held = c.held.Read(static_cast<uint64_t>(Ticks(now)));
    const Reading reading{static_cast<double>(held << kTickBits) / 1e9, answered - c.answered_read,
                          dropped - c.dropped_read};
    c.answered_read = answered;
    c.dropped_read = dropped;
    return reading;
  }

 private:
  // Of 1,024 ns: no request pays for a division.
  static constexpr int kTickBits = 10;
  int64_t Ticks(TimePoint t) const { return (t - origin_).count() >> kTickBits; }

  struct alignas(64) Class {
    Occupancy held;
    // Atomic, relaxed: counters since the start.
    std::atomic<uint64_t> answered{0};
    std::atomic<uint64_t> dropped{0};
    // Owned by the reader.
    uint64_t answered_read = 0;
    uint64_t dropped_read = 0;
  };

  const TimePoint origin_;
  const std::unique_ptr<Class[]> classes_;
  // Atomic, relaxed: the time of a late event, in ticks. The executor's mutex orders it before the
  // Append() that follows an end.
  std::atomic<int64_t> heard_{0};
};

}  // namespace curtail
