// SPDX-License-Identifier: Apache-2.0
//
// points.h - bins in a row, together: a point of concurrency and throughput that means something.
#pragma once

#include <cstdint>
#include <optional>

#include "curtail/fence/limiter/knee.h"
#include "curtail/fence/limiter/limiter.h"

namespace curtail {

// A PointMaker adds bins up until they have ten answers, and twice as many as there were requests.
// In a shorter time concurrency and throughput belong to different requests, and a steady load
// of slow ones would look like a plateau. A bin that came late is not part of a point, as it mixes
// concurrencies. Thread-compatible.
class PointMaker {
 public:
  struct Whole {
    LoadPoint point;
    double seconds = 0;
    bool limited = false;  // requests waited for a permit
  };
  // The point that ends with `bin`, if one does.
  std::optional<Whole> Add(const LoadBin& bin);

 private:
  double seconds_ = 0;
  double area_ = 0;  // of the concurrency, in seconds
  uint64_t completed_ = 0;
  bool limited_ = false;
};

}  // namespace curtail
