// SPDX-License-Identifier: Apache-2.0
//
// knee.h - finds the concurrency at which a service has its full throughput (the SCT model).
//
// SCT, scatter concurrency throughput, is from J. Liu, S. Zhang, Q. Wang, J. Wei, "Mitigating Large
// Response Time Fluctuations through Fast Concurrency Adapting in Clouds", IPDPS 2020. A service
// has three stages as its concurrency rises: its throughput ascends, is stable, and descends. The
// least concurrency of the stable stage is the best: by Little's law the response time is least
// there. The statistics here are our own. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace curtail {

// One short interval of a service.
struct LoadPoint {
  double concurrency = 0;  // requests begun and not answered, the mean over time
  double throughput = 0;   // answered, a second
};

struct Knee {
  // The stable stage: its throughput is the greatest, or not told from it.
  double lower = 0;
  double upper = 0;
  // Less concurrency than `lower` was seen, and had less throughput. If not, less may be as good.
  bool ascended = false;
  double max_throughput = 0;  // a second
  // The throughput had stopped to rise. If not, more concurrency may bring more.
  bool saturated = false;
  // Beyond `upper` the throughput is less by a tenth or more.
  bool descending = false;
};

// The points of one concurrency that make it count.
inline constexpr size_t kKneePoints = 8;

// Nothing if no concurrency has kKneePoints points. Points without concurrency are left out. Takes
// time and memory in proportion to the points.
std::optional<Knee> EstimateKnee(std::span<const LoadPoint> points);

}  // namespace curtail
