// SPDX-License-Identifier: Apache-2.0
//
// window.h - bins in a row, together: a second of a class, for limiters that compare response times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

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

// A WindowedBins adds bins up. Thread-compatible.
class WindowedBins {
 public:
  // The window that ends with `bin`, if one does.
  std::optional<LimiterWindow> Add(const LoadBin& bin) {
    window_.length += bin.length;
    window_.area += bin.concurrency * InSeconds(bin.length);
    window_.concurrency = std::max(window_.concurrency, bin.concurrency);
    window_.completed += bin.completed;
    window_.dropped += bin.dropped;
    if (window_.length < kLength || window_.completed < kAnswers) return std::nullopt;
    const LimiterWindow whole = window_;
    window_ = {};
    return whole;
  }

 private:
  static constexpr Nanos kLength = std::chrono::seconds(1);
  static constexpr uint64_t kAnswers = 10;

  LimiterWindow window_;
};

}  // namespace curtail
