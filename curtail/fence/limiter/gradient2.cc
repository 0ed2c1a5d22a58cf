// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Gradient2Limit of Netflix' concurrency-limits: the response time now is compared with its mean over 600 windows.
// Where it is more than 1.5 times as long, the limit falls by the ratio; else it rises by a queue of 4. A mean that
// stays twice as long as what is measured belongs to a past load, and sinks faster.
#include <algorithm>

#include "curtail/fence/limiter/window.h"

namespace curtail {
namespace {

constexpr double kTolerance = 1.5;
constexpr double kLongWindows = 600;
constexpr double kWarmUp = 10;
constexpr double kSmoothing = 0.2;
constexpr double kQueue = 4;

class Gradient2 final : public WindowedLimiter {
 public:
  explicit Gradient2(uint32_t first) : WindowedLimiter(first) {}

 private:
  void Judge(const LimiterWindow& window) override {
    const double now = window.response_time();
    // The plain mean at first, then one that forgets.
    ++windows_;
    long_ += (now - long_) * (windows_ <= kWarmUp ? 1 / windows_ : 2 / (kLongWindows + 1));
    if (long_ > 2 * now) long_ *= 0.9;
    if (window.concurrency < limit_ / 2 || now <= 0) return;
    const double gradient = std::clamp(kTolerance * long_ / now, 0.5, 1.0);
    limit_ = (1 - kSmoothing) * limit_ + kSmoothing * (limit_ * gradient + kQueue);
  }

  double long_ = 0;  // s
  double windows_ = 0;
};

}  // namespace

std::unique_ptr<Limiter> MakeGradient2(uint32_t first) { return std::make_unique<Gradient2>(first); }

}  // namespace curtail
