// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/connection/connection_slot.h"

#include <algorithm>
#include <utility>

#include "curtail/rpc/client/connection/client_connection.h"

namespace curtail::internal {

void SharedBackend::Down(TimePoint until) {
  const int64_t ns = until.time_since_epoch().count();
  int64_t before = down_until.load(std::memory_order_relaxed);
  while (before < ns && !down_until.compare_exchange_weak(before, ns, std::memory_order_relaxed)) continue;
}

void Slot::Release(uint32_t bits) {
  std::shared_ptr<ClientConnection> held;
  {
    MutexLock lock(mu);
    held = std::move(connection);
  }
  if (held != nullptr) held->Kick(bits, nullptr);
}

absl::Status Slot::Failed(const absl::Status& why, SharedBackend* shared) {
  if (shared != nullptr) {
    // An attempt may have taken longer than its backoff.
    shared->Down(std::max(next_attempt, Now() + backoff.last));
    shared->Unreachable();
  }
  last_error = Apart(why);
  return why;
}

}  // namespace curtail::internal
