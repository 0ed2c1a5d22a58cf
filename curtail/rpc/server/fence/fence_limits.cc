// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/fence/fence_limits.h"

#include "curtail/exec/executor.h"

namespace curtail::internal {
namespace {

// So that an idle server hardly wakes up.
constexpr Nanos kQuietBin = std::chrono::seconds(1);

}  // namespace

FenceLimits::FenceLimits(Fence* fence, TimerClock* clock, Executor* executor)
    : clock_(*clock), executor_(*executor), limits_(fence, Now()) {}

void FenceLimits::Start() { clock_.Arm(*this, Now() + kLoadBin); }

void FenceLimits::OnClock(TaskList*) {
  const TimePoint now = Now();
  const ClassLimits::Closed closed = limits_.Close(now);
  if (closed.changed) {
    TaskList none;  // requests that were held back may begin
    executor_.Submit(none);
  }
  clock_.Arm(*this, now + (closed.busy ? kLoadBin : kQuietBin));
}

}  // namespace curtail::internal
