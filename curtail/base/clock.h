// SPDX-License-Identifier: Apache-2.0
//
// clock.h - points in time and deadlines, and a clock that tests can move by hand.
//
// All of curtail measures on one monotonic clock. A deadline is a type, never a bare integer, and
// every wait takes one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace curtail {

using Nanos = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Nanos>;

// A length of time as a number of seconds, milliseconds or microseconds, for reports.
constexpr double InSeconds(Nanos time) { return static_cast<double>(time.count()) / 1e9; }
constexpr double InMillis(Nanos time) { return static_cast<double>(time.count()) / 1e6; }
constexpr double InMicros(Nanos time) { return static_cast<double>(time.count()) / 1e3; }
// The other way, for flags. REQUIRES: less than 292 years.
constexpr Nanos FromSeconds(double s) { return Nanos(static_cast<int64_t>(s * 1e9)); }
constexpr Nanos FromMillis(double ms) { return Nanos(static_cast<int64_t>(ms * 1e6)); }

// The monotonic clock, read through the vDSO (about 20 ns). Callable from any thread.
TimePoint Now();

// A Deadline is the moment after which a wait is given up. Copyable value; thread-compatible.
class Deadline {
 public:
  // Never expires. Only for waits that another event is sure to end.
  static constexpr Deadline Infinite() { return Deadline(TimePoint::max()); }
  // `timeout` from now; a huge or negative one becomes Infinite() or already expired.
  static Deadline In(Nanos timeout);
  static constexpr Deadline At(TimePoint when) { return Deadline(when); }

  constexpr TimePoint when() const { return when_; }
  constexpr bool infinite() const { return when_ == TimePoint::max(); }
  bool Expired() const { return !infinite() && Now() >= when_; }
  // Time left, 0 when expired, Nanos::max() when infinite.
  Nanos Remaining() const;

  friend constexpr auto operator<=>(const Deadline&, const Deadline&) = default;

 private:
  explicit constexpr Deadline(TimePoint when) : when_(when) {}
  TimePoint when_;
};

// A TimeSource tells the time; production code passes RealTime(), tests a ManualTime. Thread-safe.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual TimePoint Now() const = 0;
};

const TimeSource& RealTime();

// A clock that stands still until it is moved. Thread-safe.
class ManualTime final : public TimeSource {
 public:
  TimePoint Now() const override { return TimePoint(Nanos(now_.load(std::memory_order_acquire))); }
  // Pairs with Now(): a thread that reads the new time sees all writes made before Advance().
  void Advance(Nanos by) { now_.fetch_add(by.count(), std::memory_order_acq_rel); }

 private:
  std::atomic<int64_t> now_{0};
};

}  // namespace curtail
