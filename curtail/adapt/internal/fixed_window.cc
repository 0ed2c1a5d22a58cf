// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/internal/fixed_window.h"

namespace curtail::internal {

std::optional<double> FixedWindow::Update(TimePoint now, uint64_t arrivals) {
  if (!begun_) {
    begun_ = true;
    start_ = now;
    before_ = arrivals;
  }
  const auto ended = (now - start_) / length_;
  if (ended < 1) return std::nullopt;
  const double seconds = std::chrono::duration<double>(length_ * ended).count();
  const double rate = static_cast<double>(arrivals - before_) / seconds;
  start_ += length_ * ended;
  before_ = arrivals;
  return rate;
}

}  // namespace curtail::internal
