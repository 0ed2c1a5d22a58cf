// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/schedule.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace curtail {
namespace {

class Poisson final : public Gaps {
 public:
  explicit Poisson(double rate) : rate_(rate) {}
  double NextNs(Rng& rng) override { return rng.Exponential(1e9 / rate_); }
  std::string_view name() const override { return "poisson"; }
  double rate_per_s() const override { return rate_; }

 private:
  const double rate_;
};

class Constant final : public Gaps {
 public:
  explicit Constant(double rate) : rate_(rate) {}
  double NextNs(Rng&) override { return 1e9 / rate_; }
  std::string_view name() const override { return "constant"; }
  double rate_per_s() const override { return rate_; }

 private:
  const double rate_;
};

}  // namespace

std::unique_ptr<Gaps> PoissonGaps(double rate_per_s) { return std::make_unique<Poisson>(rate_per_s); }
std::unique_ptr<Gaps> ConstantGaps(double rate_per_s) { return std::make_unique<Constant>(rate_per_s); }

absl::StatusOr<Schedule> Schedule::Make(Gaps& gaps, Nanos length, uint64_t seed) {
  const double rate = gaps.rate_per_s();
  if (!std::isfinite(rate) || rate <= 0) {
    return absl::InvalidArgumentError(absl::StrFormat("the rate must be more than 0 a second, not %g", rate));
  }
  if (length <= Nanos::zero()) return absl::InvalidArgumentError("the run must be longer than 0 s");
  const double seconds = static_cast<double>(length.count()) / 1e9;
  if (rate * seconds > static_cast<double>(kMaxArrivals)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%g requests a second for %g s are %.3g requests; at most %d can be scheduled in one run", rate,
        seconds, rate * seconds, kMaxArrivals));
  }
  Schedule schedule;
  schedule.length_ = length;
  schedule.seed_ = seed;
  schedule.rate_per_s_ = rate;
  schedule.name_ = gaps.name();
  schedule.offsets_.reserve(static_cast<size_t>(rate * seconds * 1.02) + 16);
  Rng rng(seed);
  const double end = static_cast<double>(length.count());
  // Summed in floating point (exact to under a ns for months), so that rounding does not bias the rate.
  for (double at = gaps.NextNs(rng); at < end; at += gaps.NextNs(rng)) {
    schedule.offsets_.emplace_back(static_cast<int64_t>(at));
  }
  return schedule;
}

}  // namespace curtail
