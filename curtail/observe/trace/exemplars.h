// SPDX-License-Identifier: Apache-2.0
//
// exemplars.h - traced calls that show what a bucket of a histogram has.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/observe/metrics/metrics_calls.h"
#include "curtail/observe/trace/trace_context.h"

namespace curtail::observe {

// An Exemplar is a call that became a span.
struct Exemplar {
  // False: there is none.
  bool valid() const { return (trace.high | trace.low) != 0; }

  TraceId trace;
  Nanos duration{0};
  Nanos since_epoch{0};  // when it ended
};

// Of one method, by the buckets of MetricsCalls.
using BucketExemplars = std::array<Exemplar, MetricsCalls::kBuckets>;

// An Exemplars has the latest call of each bucket of each method: some 800 bytes a method. Thread-compatible; whoever
// takes spans from their rings fills it, so no request pays for it.
class Exemplars {
 public:
  explicit Exemplars(size_t methods) : methods_(methods) {}

  // A call of the method became a span. One of a method that there is not is left out.
  void Note(size_t method, const Exemplar& call) {
    if (method < methods_.size()) methods_[method][MetricsCalls::BucketOf(call.duration)] = call;
  }
  // By method.
  const std::vector<BucketExemplars>& methods() const { return methods_; }

 private:
  std::vector<BucketExemplars> methods_;
};

}  // namespace curtail::observe
