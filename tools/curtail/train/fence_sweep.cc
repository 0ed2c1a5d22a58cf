// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/fence_sweep.h"

#include <algorithm>
#include <cmath>

#include "curtail/fence/limiter/points.h"

namespace curtail::tool {
namespace {

constexpr double kRises = 1.03;
constexpr int kBetween = 3;  // that are measured between two steps

double MeanThroughput(const std::vector<LoadPoint>& points) {
  double sum = 0;
  for (const LoadPoint& point : points) sum += point.throughput;
  return points.empty() ? 0 : sum / static_cast<double>(points.size());
}

}  // namespace

FenceSweep::FenceSweep(int most, int passes) : most_(std::max(1, most)), passes_(std::max(1, passes)) {}

std::optional<int> FenceSweep::Next() const {
  if (due_.empty()) return std::nullopt;
  return due_.front();
}

void FenceSweep::Tell(const std::vector<LoadPoint>& points) {
  const int step = due_.front();
  due_.pop_front();
  ++done_;
  tried_ = std::max(tried_, step);
  points_.insert(points_.end(), points.begin(), points.end());
  if (climbing_) {
    ladder_.push_back(step);
    throughputs_.push_back(MeanThroughput(points));
    if (step < most_ && !Flat()) {
      due_.push_back(std::min(2 * step, most_));
    } else {
      EndClimb();
    }
  }
  if (due_.empty() && !refined_) Refine();
}

void FenceSweep::GiveUp() {
  due_.pop_front();
  ++done_;
  if (climbing_) EndClimb();
  if (due_.empty() && !refined_) Refine();
}

bool FenceSweep::Flat() const {
  const size_t n = throughputs_.size();
  if (n < 3) return false;
  const double before = *std::max_element(throughputs_.begin(), throughputs_.end() - 2);
  return before > 0 && throughputs_[n - 1] < kRises * before && throughputs_[n - 2] < kRises * before;
}

void FenceSweep::EndClimb() {
  climbing_ = false;
  for (int pass = 1; pass < passes_; ++pass) due_.insert(due_.end(), ladder_.begin(), ladder_.end());
}

void FenceSweep::Refine() {
  refined_ = true;
  const std::optional<Knee> found = knee();
  if (!found || !found->ascended) return;
  const auto lower = static_cast<int>(std::lround(found->lower));
  int before = 0;
  for (const int step : ladder_) {
    if (step < lower) before = std::max(before, step);
  }
  std::vector<int> between;
  for (int i = 1; i <= kBetween; ++i) {
    const int step = before + (lower - before) * i / (kBetween + 1);
    if (step > before && step < lower && (between.empty() || step > between.back())) between.push_back(step);
  }
  for (int pass = 0; pass < passes_; ++pass) due_.insert(due_.end(), between.begin(), between.end());
}

size_t FenceSweep::left_at_most() const {
  if (!climbing_) return due_.size() + (refined_ ? 0 : static_cast<size_t>(kBetween * passes_));
  size_t steps = 1;
  for (int step = due_.front(); step < most_; step *= 2) ++steps;
  const size_t repeats = (ladder_.size() + steps) * static_cast<size_t>(passes_ - 1);
  return steps + repeats + static_cast<size_t>(kBetween * passes_);
}

LoadBins::LoadBins(Nanos from, Nanos until)
    : from_(from), bins_(static_cast<size_t>(std::max<int64_t>(0, (until - from) / kLoadBin))) {}

void LoadBins::Ended(Nanos due, Nanos latency, bool ok) {
  if (!ok) return;  // its latency is the timeout at least, however soon it failed
  const Nanos end = due + latency - from_;
  const Nanos begin = std::max(due - from_, Nanos(0));
  if (end <= Nanos(0)) return;
  const auto last = static_cast<size_t>(end / kLoadBin);
  for (auto i = static_cast<size_t>(begin / kLoadBin); i <= last && i < bins_.size(); ++i) {
    const Nanos bin = static_cast<int64_t>(i) * kLoadBin;
    bins_[i].area += std::min(end, bin + kLoadBin) - std::max(begin, bin);
  }
  if (last < bins_.size()) ++bins_[last].completed;
}

std::vector<LoadPoint> LoadBins::Points() const {
  PointMaker maker;
  std::vector<LoadPoint> points;
  for (const Bin& bin : bins_) {
    const LoadBin load{.length = kLoadBin,
                       .concurrency = InSeconds(bin.area) / InSeconds(kLoadBin),
                       .completed = bin.completed};
    if (const auto whole = maker.Add(load)) points.push_back(whole->point);
  }
  return points;
}

}  // namespace curtail::tool
