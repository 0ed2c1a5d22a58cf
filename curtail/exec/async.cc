// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/async.h"

#include <system_error>
#include <thread>

#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"

namespace curtail::internal {

void AsyncState::Launch() {
  const WaitHint& hint = CurrentWait();
  if (Fiber::Current() != nullptr) {
    if (!hint.loop->Spawn(this, hint)) Unref();
  } else if (hint.executor != nullptr) {
    if (!hint.executor->TryRunAside(this)) Unref();
  } else {
    try {
      std::thread([this] { Run(CurrentWait()); }).detach();
    } catch (const std::system_error&) {
      Unref();  // no thread to be had: get() runs it
    }
  }
}

void AsyncState::LaunchAside() {
  Executor* const executor = Fiber::Current() != nullptr ? CurrentWait().executor : nullptr;
  if (executor != nullptr && executor->TryRunAside(this)) return;
  Unref();
  RunIfUnclaimed();
}

void AsyncState::RunIfUnclaimed() {
  if (claimed_.exchange(true, std::memory_order_acq_rel)) return;
  Execute();
  done_.Notify(kDone);
}

void AsyncState::Wait() {
  if (!done()) FlushBeforeWait();
  for (uint32_t ticket = done_.Ticket(); (ticket & kDone) == 0; ticket = done_.Ticket()) {
    done_.Wait(ticket, Deadline::Infinite());  // sure to end: whoever claimed the function runs it
  }
}

void AsyncState::Run(const WaitHint&) {
  RunIfUnclaimed();
  Unref();
}

void AsyncState::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace curtail::internal
