// SPDX-License-Identifier: Apache-2.0
//
// truth.h - what the latencies of a run must have been, from the service times that the target logged.
#pragma once

#include <cstdint>
#include <vector>

#include "curtail/base/clock.h"
#include "target.h"

namespace curtail::bench {

// The last `count` of a log, or all if there are fewer: a generator may try a call before it starts.
std::vector<ServedRequest> LastOf(const std::vector<ServedRequest>& log, size_t count);

// The drawn times, and those that each request took, by number.
std::vector<Nanos> DrawnTimes(const std::vector<ServedRequest>& log);
std::vector<Nanos> ServiceTimes(const std::vector<ServedRequest>& log);

// The nearest-rank percentile of values in any order; zero of none.
Nanos PercentileOf(std::vector<Nanos> values, double percent);

// The time that each request kept a single thread from the next one: its own, and the time until the next one began if
// that is at most 0.2 ms, which is how long the server may need between two requests that are there already.
std::vector<Nanos> OccupiedTimes(const std::vector<ServedRequest>& log);

// The latency of each of the requests that are due every `gap` at a server that takes one at a time, first come,
// first served, takes service[i] for the i-th and after that is free for the next one in occupied[i] from its
// beginning (Lindley, "The theory of queues with a single server", 1952). Network and timers add to it.
// REQUIRES: as many of both.
std::vector<Nanos> FifoLatencies(Nanos gap, const std::vector<Nanos>& service,
                                 const std::vector<Nanos>& occupied);

// The least rank and the greatest, 1 to n, between which the percentile of a distribution lies among n independent
// samples with the given confidence: order statistics, no normal approximation. Widened to what is sure, so that the
// confidence is at least that. 0 or n + 1: no sample bounds it.
struct Ranks {
  uint64_t low = 0;
  uint64_t high = 0;
};
Ranks PercentileRanks(double percent, uint64_t n, double confidence);

}  // namespace curtail::bench
