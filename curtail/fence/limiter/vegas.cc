// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. TCP Vegas (L. Brakmo, L. Peterson, 1995) for requests, after VegasLimit of Netflix' concurrency-limits. The least
// response time seen is that of a service without a queue. What is longer is its queue: limit * (1 - least / now)
// requests. Few of them raise the limit, many lower it, by steps in the order of the limit's logarithm. The least time is
// taken anew after 15 to 30 windows for each request of the limit, as the service may have become slower for good.
#include <algorithm>
#include <cmath>
#include <limits>

#include "curtail/base/rng.h"
#include "curtail/fence/limiter/window.h"

namespace curtail {
namespace {

constexpr double kProbe = 30;

class Vegas final : public WindowedLimiter {
 public:
  explicit Vegas(uint32_t first) : WindowedLimiter(first) {}

 private:
  void Judge(const LimiterWindow& window) override {
    const double now = window.response_time();
    if (++windows_ >= probe_at_ * limit_) {
      windows_ = 0;
      probe_at_ = kProbe * (0.5 + 0.5 * rng_.Uniform01());
      least_ = now;
    }
    least_ = std::min(least_, now);
    const double step = std::max(1.0, std::log10(limit_));
    if (window.dropped > 0) {
      limit_ -= step;
      return;
    }
    if (window.concurrency * 2 < limit_) return;
    const double queue = now > 0 ? std::ceil(limit_ * (1 - least_ / now)) : 0;
    if (queue <= step) {
      limit_ += 6 * step;
    } else if (queue < 3 * step) {
      limit_ += step;
    } else if (queue > 6 * step) {
      limit_ -= step;
    }
  }

  Rng rng_{1};                                              // spreads probes; the same in each run
  double least_ = std::numeric_limits<double>::infinity();  // response time, s
  double windows_ = 0;                                      // since the last probe
  double probe_at_ = kProbe;
};

}  // namespace

std::unique_ptr<Limiter> MakeVegas(uint32_t first) { return std::make_unique<Vegas>(first); }

}  // namespace curtail
