// SPDX-License-Identifier: Apache-2.0
#include "gate.h"

namespace curtail::interop {

void Gate::Open() {
  std::lock_guard lock(mu_);
  open_ = true;
  changed_.notify_all();
}

bool Gate::Pass(const std::function<bool()>& cancelled) {
  // Cancellation does not notify: it is looked at every millisecond.
  constexpr std::chrono::milliseconds kLookEvery(1);
  const auto deadline = std::chrono::steady_clock::now() + kMaxTestWait;
  std::unique_lock lock(mu_);
  ++arrived_;
  changed_.notify_all();
  while (!open_ && !cancelled() && std::chrono::steady_clock::now() < deadline)
    changed_.wait_for(lock, kLookEvery);
  if (cancelled()) {
    ++cancelled_;
    changed_.notify_all();
  }
  return open_;
}

bool Gate::AwaitArrivals(int count) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, kMaxTestWait, [&] { return arrived_ >= count; });
}

bool Gate::AwaitCancelled(int count) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, kMaxTestWait, [&] { return cancelled_ >= count; });
}

}  // namespace curtail::interop
