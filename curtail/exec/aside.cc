// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/aside.h"

#include "curtail/exec/executor.h"

namespace curtail::internal {

bool AsideTask::Launch(std::coroutine_handle<> coroutine) {
  Executor* const executor = CurrentWait().executor;
  coroutine_ = coroutine;
  executor_ = executor;
  executor->AsyncBegun();
  if (executor->TryRunAside(this)) return true;
  executor->AsyncEnded();
  return false;
}

void AsideTask::Run(const WaitHint&) {
  Executor* const executor = executor_;  // this may be gone once the coroutine goes on
  if (!std::exchange(executed_, true)) {
    Execute();
    TaskList alone;
    alone.Push(this);
    executor->SubmitResponse(alone);
    return;
  }
  coroutine_.resume();
  executor->AsyncEnded();
}

}  // namespace curtail::internal
