// SPDX-License-Identifier: Apache-2.0
//
// method_table.h - the methods that a server serves, by path.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"
#include "curtail/exec/task.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/service.h"

namespace curtail::internal {

// A ServedMethod is one method, and how long its handler took in a recent run.
struct ServedMethod {
  // Immutable once the server runs.
  MethodHandler handler;
  std::string_view path;  // "/package.Service/Method"
  uint32_t index = 0;     // in the order in which methods were added
  // The services that it declares to call; empty: it declares nothing.
  std::optional<std::vector<std::string>> calls;
  bool in_line = false;  // health: the thread that receives answers it, however long the queue is
  // Of its requests. Thread-safe.
  TaskKind kind;

  // A handler took `time`. Any thread.
  void Took(Nanos time) {
    const Nanos before = took();
    if (time > before + before / 4 || time < before - before / 4) {
      took_.store(time.count(), std::memory_order_relaxed);
    }
  }
  Nanos took() const { return Nanos(took_.load(std::memory_order_relaxed)); }
  // A handler answered after `time`, its waits included. Any thread.
  void Lasted(Nanos time) {
    const Nanos before = usual();
    if (time < kShort && before == Nanos::zero()) return;
    // Steps of nine up and one down stand still at the time that nine of ten do not exceed.
    const Nanos step = before / 64;
    const Nanos after = before == Nanos::zero() ? time : time > before ? before + 9 * step : before - step;
    usual_.store(after.count(), std::memory_order_relaxed);
  }
  // Nine of ten of its handlers take no longer, as it was lately; zero for a method that answers at once.
  Nanos usual() const { return Nanos(usual_.load(std::memory_order_relaxed)); }

 private:
  static constexpr Nanos kShort = std::chrono::milliseconds(1);

  // Atomic, relaxed: a hint, in ns; roughly, so that threads seldom write it. At first it counts as slow.
  std::atomic<int64_t> took_{1'000'000'000};
  // Atomic, relaxed: an estimate, in ns. A sample that another thread overwrites is lost.
  std::atomic<int64_t> usual_{0};
};

// A MethodTable owns the services of a server and finds their methods. Filled before the server runs, read by any
// thread from then on.
class MethodTable {
 public:
  MethodTable() = default;
  MethodTable(const MethodTable&) = delete;
  MethodTable& operator=(const MethodTable&) = delete;

  // Services of one name make one if each adds a kind of handler that was missing: a straight-line service first,
  // then the coroutine or continuation service for asynchronous models. Errors: INVALID_ARGUMENT for a method
  // named twice, or a declared path of a method that there is not.
  absl::Status Add(std::unique_ptr<Service> service);
  // Null for a path that is not served.
  ServedMethod* Find(std::string_view path) {
    const auto found = methods_.find(path);
    return found == methods_.end() ? nullptr : &found->second;
  }
  // All methods, by their index.
  std::vector<ServedMethod*> InOrder();
  // Errors: INVALID_ARGUMENT when a method cannot run under `config`.
  absl::Status CheckModel(const Config& config) const;
  // Those whose handlers have held a thread up.
  std::vector<HeldUpMethod> HeldUp() const;
  // The full name of each service added, in order.
  std::vector<std::string> ServiceNames() const;

 private:
  absl::Status AddPaths(const Service& service);

  struct PathHash {
    using is_transparent = void;
    size_t operator()(std::string_view path) const { return std::hash<std::string_view>{}(path); }
  };

  // Immutable once the server runs.
  std::vector<std::unique_ptr<Service>> services_;
  std::unordered_map<std::string, ServedMethod, PathHash, std::equal_to<>> methods_;
};

}  // namespace curtail::internal
