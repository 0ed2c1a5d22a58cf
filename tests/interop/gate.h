// SPDX-License-Identifier: Apache-2.0
//
// gate.h - where handlers wait until the test has seen what it wants, and the bound of every wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace curtail::interop {

// Nothing in these tests waits longer.
inline constexpr std::chrono::seconds kMaxTestWait(30);

// A Gate is closed until Open(). Thread-safe.
class Gate {
 public:
  void Open();
  // Handler: waits until the gate opens (true), or `cancelled` says so or the bound is reached (false).
  bool Pass(const std::function<bool()>& cancelled);
  // Test: whether so many handlers arrived, or left because they were cancelled, within the bound.
  bool AwaitArrivals(int count);
  bool AwaitCancelled(int count);

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool open_ = false;
  int arrived_ = 0;
  int cancelled_ = 0;
};

}  // namespace curtail::interop
