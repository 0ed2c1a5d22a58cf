// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The limit follows the knee of the last 30 s (knee.h). Once a second, or as soon as eight points show
// the present limit's effect:
//
//   the throughput has stopped to rise          the limit goes to the least concurrency of the stable stage
//   ... and no less concurrency was seen        the limit goes a tenth below that, to see whether as few will do
//   it still rises, and requests often waited   the limit grows by a tenth, to see whether it rises further
//   else                                        the limit binds nothing, and stays
//
// A step changes it by a quarter at most. Bins in a row make a point (points.h).
//
// A guard acts between the steps. If the throughput at the limit is below the knee's by 30 %, and by three deviations
// of a random count, the knee has moved: a neighbour took CPUs, or a service below is slower. The limit falls by a fifth.
// The points before describe what is no more, so they are forgotten, and the next knee is found without them.
#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "curtail/fence/limiter/knee.h"
#include "curtail/fence/limiter/limiter.h"
#include "curtail/fence/limiter/points.h"

namespace curtail {
namespace {

constexpr Nanos kWindow = std::chrono::seconds(30);
constexpr Nanos kStep = std::chrono::seconds(1);
constexpr double kMostChange = 0.25;
constexpr double kExplore = 0.1;
constexpr double kOften = 0.5;  // of the points since the last step
constexpr double kFallen = 0.7;
constexpr double kDeviations = 3;
constexpr double kGuardCut = 0.8;

class Sct final : public Limiter {
 public:
  explicit Sct(uint32_t first) : limit_(first) {}

  uint32_t Next(const LoadBin& bin) override {
    now_ += bin.length;
    Gather(bin);
    while (!points_.empty() && points_.front().when < now_ - kWindow) points_.pop_front();
    if (now_ - stepped_ >= kStep && seen_ >= static_cast<double>(kKneePoints)) Step();
    limit_ = std::clamp<double>(limit_, 1, bin.most);
    return static_cast<uint32_t>(std::lround(limit_));
  }

 private:
  struct Timed {
    Nanos when{0};
    LoadPoint point;
  };
  void Gather(const LoadBin& bin) {
    const std::optional<PointMaker::Whole> whole = maker_.Add(bin);
    if (!whole) return;
    ++seen_;
    limited_ += whole->limited ? 1 : 0;
    points_.push_back({now_, whole->point});
    Guard(whole->point, whole->seconds);
  }

  void Guard(const LoadPoint& point, double seconds) {
    if (plateau_ <= 0 || point.concurrency < 0.9 * limit_) return;
    const double expected = plateau_ * seconds;
    const double answers = point.throughput * seconds;
    if (answers >= kFallen * expected || answers >= expected - kDeviations * std::sqrt(expected)) return;
    limit_ *= kGuardCut;
    plateau_ = 0;
    points_.clear();
  }

  void Step() {
    stepped_ = now_;
    const bool often = seen_ > 0 && limited_ >= kOften * seen_;
    seen_ = limited_ = 0;
    std::vector<LoadPoint> points;
    for (const Timed& timed : points_) points.push_back(timed.point);
    const std::optional<Knee> knee = EstimateKnee(points);
    double wanted = limit_;
    plateau_ = knee && knee->saturated ? knee->max_throughput : 0;
    if (knee && knee->saturated) {
      wanted = knee->ascended ? std::round(knee->lower) : knee->lower - std::max(1.0, kExplore * knee->lower);
    } else if (often) {
      wanted = limit_ + std::max(1.0, kExplore * limit_);
    }
    const double most = std::max(1.0, kMostChange * limit_);
    limit_ += std::clamp(wanted - limit_, -most, most);
  }

  double limit_;
  Nanos now_{0};  // the bins' lengths, together
  Nanos stepped_{0};
  std::deque<Timed> points_;  // of kWindow
  PointMaker maker_;
  double plateau_ = 0;  // the throughput of the knee, a second; 0: none is known
  // Points since the last step, and those with requests that waited.
  double seen_ = 0;
  double limited_ = 0;
};

}  // namespace

std::unique_ptr<Limiter> MakeSct(uint32_t first) { return std::make_unique<Sct>(first); }

}  // namespace curtail
