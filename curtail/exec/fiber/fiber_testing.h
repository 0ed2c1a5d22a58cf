// SPDX-License-Identifier: Apache-2.0
//
// fiber_testing.h - runs functions on fibers of the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "curtail/exec/fiber.h"
#include "curtail/exec/task_testing.h"

namespace curtail {

// Begins each of `bodies` on a fiber of one thread, in their order, and returns when all have ended.
inline void RunOnFibers(std::vector<std::function<void()>> bodies) {
  FiberLoop loop({});
  const WaitHint hint{.waiting = Waiting::kFiber, .loop = &loop};
  const ScopedWait scope(hint);
  Parker seat;
  std::vector<std::unique_ptr<FunctionTask>> tasks;
  for (auto& body : bodies) {
    tasks.push_back(std::make_unique<FunctionTask>(std::move(body)));
    ASSERT_TRUE(loop.Start(tasks.back().get(), hint));
  }
  while (loop.live() > 0) {
    if (loop.HasReady()) {
      loop.RunReady();
    } else {
      loop.Wait(seat, seat.Ticket(), nullptr);
    }
  }
}

}  // namespace curtail
