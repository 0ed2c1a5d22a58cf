// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/wait.h"

#include <functional>
#include <thread>

#include "curtail/exec/blocking.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/receiver.h"

namespace curtail {

constinit thread_local BlockingWatcher* blocking_watcher = nullptr;
constinit thread_local uint64_t waits_of_thread = 0;

const WaitHint& internal::WaitOutside() {
  // Threads that call without being called spread over the lanes by their identity.
  static thread_local const WaitHint outside{
      .thread_index = static_cast<uint32_t>(std::hash<std::thread::id>{}(std::this_thread::get_id()))};
  return outside;
}

void FlushBeforeWait() {
  const WaitHint& hint = CurrentWait();
  if (hint.outbox != nullptr && Fiber::Current() == nullptr) hint.outbox->Flush(hint.thread_index);
}

}  // namespace curtail
