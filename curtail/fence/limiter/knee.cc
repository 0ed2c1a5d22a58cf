// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Points of about one concurrency form a group; groups of few points are left out. Up to the group with the
// greatest mean the means are made to ascend (isotonic regression, by pooling adjacent violators), because a throughput
// that falls and rises again is noise. The descent beyond is left as it is. The stable stage is the run of groups around
// the greatest that reach 95 % of it, or 90 % where Welch's test, one-sided at 95 %, finds no difference. Without that
// second bound a group of few or wild points would count as stable, however slow: the test has no power there.
#include "curtail/fence/limiter/knee.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <vector>

namespace curtail {
namespace {

constexpr double kSignificance = 0.05;
constexpr double kStable = 0.95;          // of the greatest throughput
constexpr double kPerhapsStable = 0.9;    // where no test finds a difference
constexpr double kDescended = 0.9;        // below: the throughput has fallen
constexpr double kFlat = 0.2;             // of the first slope
constexpr double kLeastWidth = 2;         // of a stable stage, in requests
constexpr double kWholeGroups = 32;       // concurrency up to which each number is a group
constexpr double kGroupsOfDoubling = 16;  // beyond it

struct Group {
  double n = 0;
  double concurrency = 0;  // the mean
  double mean = 0;         // of the throughput
  double variance = 0;
  double smooth = 0;
};

long GroupOf(double concurrency) {
  if (concurrency <= kWholeGroups) return std::lround(concurrency);
  return std::lround(kWholeGroups + kGroupsOfDoubling * std::log2(concurrency / kWholeGroups));
}

// By ascending concurrency. `variance` sums squares until the end (Welford).
std::vector<Group> Collect(std::span<const LoadPoint> points) {
  std::map<long, Group> all;
  for (const LoadPoint& point : points) {
    if (!(point.concurrency > 0) || !std::isfinite(point.concurrency) || !std::isfinite(point.throughput))
      continue;
    Group& group = all[GroupOf(point.concurrency)];
    ++group.n;
    group.concurrency += (point.concurrency - group.concurrency) / group.n;
    const double delta = point.throughput - group.mean;
    group.mean += delta / group.n;
    group.variance += delta * (point.throughput - group.mean);
  }
  std::vector<Group> groups;
  for (auto& [key, group] : all) {
    if (group.n < static_cast<double>(kKneePoints)) continue;
    group.variance /= group.n - 1;
    group.smooth = group.mean;
    groups.push_back(group);
  }
  return groups;
}

// Makes `smooth` ascend, with the least change in squares: pools neighbours that do not.
void Ascend(std::span<Group> groups) {
  struct Pool {
    double n, mean;
    size_t size;
  };
  std::vector<Pool> pools;
  for (const Group& group : groups) {
    pools.push_back({group.n, group.mean, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& before = pools.back();
      before.mean = (before.mean * before.n + last.mean * last.n) / (before.n + last.n);
      before.n += last.n;
      before.size += last.size;
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools) {
    for (size_t end = i + pool.size; i < end; ++i) groups[i].smooth = pool.mean;
  }
}

// True if the mean of `a` is below that of `b` by more than chance (B. L. Welch, Biometrika 34, 1947).
bool IsBelow(const Group& a, const Group& b) {
  if (a.mean >= b.mean) return false;
  const double va = a.variance / a.n;
  const double vb = b.variance / b.n;
  if (va + vb <= 0) return true;
  const double t = (b.mean - a.mean) / std::sqrt(va + vb);
  const double freedom = (va + vb) * (va + vb) / (va * va / (a.n - 1) + vb * vb / (b.n - 1));
  return boost::math::cdf(boost::math::complement(boost::math::students_t(freedom), t)) < kSignificance;
}

bool IsStable(const Group& group, const Group& best) {
  if (group.smooth >= kStable * best.mean) return true;
  return group.smooth >= kPerhapsStable * best.mean && !IsBelow(group, best);
}

}  // namespace

std::optional<Knee> EstimateKnee(std::span<const LoadPoint> points) {
  std::vector<Group> groups = Collect(points);
  if (groups.empty()) return std::nullopt;
  const auto by_mean = [](const Group& a, const Group& b) { return a.mean < b.mean; };
  const auto top =
      static_cast<size_t>(std::max_element(groups.begin(), groups.end(), by_mean) - groups.begin());
  const Group& best = groups[top];
  if (best.mean <= 0) return std::nullopt;
  Ascend({groups.data(), top + 1});
  size_t first = top;
  size_t last = top;
  while (first > 0 && IsStable(groups[first - 1], best)) --first;
  // One group below it between others may be chance; two in a row are a descent.
  for (size_t i = top + 1; i < groups.size() && i <= last + 2; ++i) {
    if (IsStable(groups[i], best)) last = i;
  }
  const Group& low = groups[first];
  const Group& high = groups[last];
  Knee knee{.lower = low.concurrency,
            .upper = high.concurrency,
            .ascended = first > 0,
            .max_throughput = best.mean};
  for (size_t i = last + 1; i < groups.size(); ++i) {
    knee.descending |= groups[i].mean < kDescended * best.mean && IsBelow(groups[i], best);
  }
  const double width = knee.upper - knee.lower;
  const double first_slope = groups.front().smooth / groups.front().concurrency;
  const bool flat = width >= kLeastWidth && (high.smooth - low.smooth) / width < kFlat * first_slope;
  knee.saturated = flat || knee.descending;
  return knee;
}

}  // namespace curtail
