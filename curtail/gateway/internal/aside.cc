// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/aside.h"

namespace curtail::gateway::internal {

Aside::~Aside() {
  {
    std::lock_guard lock(mu_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Aside::Do(std::function<void()> work, std::function<void()> then) {
  const auto start = [this] { thread_ = std::thread([this] { Run(); }); };
  if (!thread_.joinable() && !Contain("gateway", start)) {  // there is no thread to be had
    Contain("gateway", work);
    return then();
  }
  then_ = std::move(then);
  {
    std::lock_guard lock(mu_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Aside::Collect() {
  if (!busy()) return;
  {
    std::lock_guard lock(mu_);
    if (!std::exchange(done_, false)) return;
  }
  std::exchange(then_, nullptr)();
}

void Aside::Run() {
  std::unique_lock lock(mu_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || work_ != nullptr; });
    if (work_ == nullptr) return;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    Contain("gateway", work);
    lock.lock();
    done_ = true;
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace curtail::gateway::internal
