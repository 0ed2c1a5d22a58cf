// SPDX-License-Identifier: Apache-2.0
//
// class_limits.h - the limits of a fence that follow: a limiter for each class, and its bins.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "curtail/base/clock.h"
#include "curtail/fence/fence.h"
#include "curtail/fence/limiter/limiter.h"

namespace curtail {

// A ClassLimits sets the limits of a Fence from its meter. It has no clock: the caller says when a
// bin ends. Used by one thread at a time.
class ClassLimits {
 public:
  // The fence outlives it, and its limits follow. The first bin begins at `now`.
  ClassLimits(Fence* fence, TimePoint now) : fence_(*fence), began_(now) {}

  struct Closed {
    bool changed = false;  // a limit: submit an empty list to the executor
    bool busy = false;     // a class had requests
  };
  // Ends the bin of each class, and begins the next. Classes without methods keep their limits.
  Closed Close(TimePoint now);

 private:
  struct Class {
    std::unique_ptr<Limiter> limiter;  // null: the class has had no permits yet
    uint64_t begun = 0;                // at the end of the last bin
    uint64_t waited = 0;               // queued or refused until then
  };
  using Shares = std::array<uint32_t, Fence::kMaxClasses>;

  // The limit that the class can have at most, as the others are.
  uint32_t MostOf(uint8_t path_class, const Shares& shares) const;
  void CloseOf(uint8_t path_class, const FenceClassStats& stats, TimePoint now, Shares& shares,
               Closed* closed);

  Fence& fence_;
  TimePoint began_;  // the present bin
  std::array<Class, Fence::kMaxClasses> classes_;
};

}  // namespace curtail
