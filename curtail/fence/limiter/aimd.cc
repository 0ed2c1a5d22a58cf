// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Additive increase, multiplicative decrease, after AIMDLimit of Netflix' concurrency-limits: one more a second
// while the class uses half its limit or more; a tenth less when a request was dropped, or took over 5 s. A request
// that this limit refused is no drop: it says nothing of the services.
#include <cmath>

#include "curtail/fence/limiter/window.h"

namespace curtail {
namespace {

constexpr double kBackoff = 0.9;
constexpr double kTimeout = 5;  // s

class Aimd final : public WindowedLimiter {
 public:
  explicit Aimd(uint32_t first) : WindowedLimiter(first) {}

 private:
  void Judge(const LimiterWindow& window) override {
    if (window.dropped > 0 || window.response_time() > kTimeout) {
      limit_ = std::floor(limit_ * kBackoff);
    } else if (window.concurrency * 2 >= limit_) {
      ++limit_;
    }
  }
};

}  // namespace

std::unique_ptr<Limiter> MakeAimd(uint32_t first) { return std::make_unique<Aimd>(first); }

}  // namespace curtail
