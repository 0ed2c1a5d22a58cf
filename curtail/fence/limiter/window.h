// SPDX-License-Identifier: Apache-2.0
//
// window.h - bins in a row, together: a second of a class, for limiters that compare response times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "curtail/fence/limiter/limiter.h"

namespace curtail {

// A second or more, with ten answers or more, as in Netflix' concurrency-limits (WindowedLimit).
struct LimiterWindow {
  Nanos length{0};
  double area = 0;         // of the concurrency, in seconds
  double concurrency = 0;  // the greatest of a bin
  uint64_t completed = 0;
  uint64_t dropped = 0;

  // The mean response time in seconds, by Little's law.
  double response_time() const { return area / static_cast<double>(completed); }
};

// A WindowedLimiter judges windows of bins. Thread-compatible.
class WindowedLimiter : public Limiter {
 public:
  uint32_t Next(const LoadBin& bin) final {
    window_.length += bin.length;
    window_.area += bin.concurrency * InSeconds(bin.length);
    window_.concurrency = std::max(window_.concurrency, bin.concurrency);
    window_.completed += bin.completed;
    window_.dropped += bin.dropped;
    if (window_.length >= kLength && window_.completed >= kAnswers) Judge(std::exchange(window_, {}));
    limit_ = std::clamp<double>(limit_, 1, bin.most);
    return static_cast<uint32_t>(limit_);
  }

 protected:
  explicit WindowedLimiter(uint32_t first) : limit_(first) {}
  // Sets limit_ by a window that has ended. Next() keeps it in its bounds.
  virtual void Judge(const LimiterWindow& window) = 0;

  double limit_;

 private:
  static constexpr Nanos kLength = std::chrono::seconds(1);
  static constexpr uint64_t kAnswers = 10;

  LimiterWindow window_;
};

}  // namespace curtail
