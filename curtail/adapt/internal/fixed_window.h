// SPDX-License-Identifier: Apache-2.0
//
// fixed_window.h - a rate from the arrivals of one stretch of time after the other, all of one
// length.
#pragma once

#include <cstdint>
#include <optional>

#include "curtail/base/clock.h"

namespace curtail::internal {

// A FixedWindow counts from the first moment that it is told of. Thread-compatible.
class FixedWindow {
 public:
  explicit FixedWindow(Nanos length) : length_(length > Nanos(0) ? length : Nanos(1)) {}

  // `arrivals` as Signals has them. The rate of the window that has ended since the last call; of
  // several, their mean; absent when none has.
  std::optional<double> Update(TimePoint now, uint64_t arrivals);

 private:
  const Nanos length_;
  bool begun_ = false;
  TimePoint start_{};
  uint64_t before_ = 0;  // arrivals before start_
};

}  // namespace curtail::internal
