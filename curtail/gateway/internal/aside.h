// SPDX-License-Identifier: Apache-2.0
//
// aside.h - a second thread for work that would keep the gateway's own from its clients: the forms of long messages.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "curtail/base/boundary.h"

namespace curtail::gateway::internal {

// An Aside does one thing at a time. Its thread starts with the first. Thread-compatible: the gateway's thread owns it.
class Aside {
 public:
  // `wake`, which any thread may call, has the owner call Collect() soon.
  explicit Aside(std::function<void()> wake) : wake_(std::move(wake)) {}
  // Waits for the work in hand, if there is some.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  bool busy() const { return then_ != nullptr; }
  // Has `work` done by the other thread, and then `then` by this one, in Collect(); or both at once, if no thread starts. What `work` uses outlives it, and
  // nobody changes it meanwhile. REQUIRES: !busy()
  void Do(std::function<void()> work, std::function<void()> then);
  // Ends what is done.
  void Collect();

 private:
  void Run();

  const std::function<void()> wake_;
  std::function<void()> then_;

  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  std::function<void()> work_;
  bool done_ = false;
  bool over_ = false;

  std::thread thread_;
};

}  // namespace curtail::gateway::internal
