// SPDX-License-Identifier: Apache-2.0
//
// server_fence.h - connects a server's requests to the permits of its path classes (curtail/fence).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/exec/order.h"
#include "curtail/fence/fence.h"
#include "curtail/fence/fenced_order.h"
#include "curtail/fence/path_class.h"
#include "curtail/rpc/call/refusal.h"
#include "curtail/rpc/call_options.h"
#include "curtail/rpc/server_stats.h"

namespace curtail {

class Context;
class Executor;
class TaskKind;
struct MethodHandler;

namespace internal {

// A ServerFence gives each method its path class, hears which services it calls, and takes permits back. Thread-safe
// once the server runs.
class ServerFence {
 public:
  ServerFence(const FenceOptions& options, const QueueOptions& queue)
      : fence_(options, Now()), queue_(queue), classes_(&fence_) {
    classes_.BeginWith(options.limits);
  }

  // The limits that classes begin with for which the options have none. Before AddMethod().
  void BeginWith(const std::vector<ClassLimit>& limits) { classes_.BeginWith(limits); }
  // Before the executor runs, once for each method, by index. `calls`: the services that it declares to call; empty: it
  // declares nothing. Methods that never wait, and streams, which hold no thread of the pools, are local.
  void AddMethod(std::string_view path, const MethodHandler& handler,
                 const std::optional<std::vector<std::string>>& calls, TaskKind* kind);
  // After the last AddMethod(). Errors: INVALID_ARGUMENT for a limit of a service that no method calls, if all methods
  // declare their calls.
  absl::Status CheckLimits() const;
  // For the executor. It outlives the requests.
  std::unique_ptr<Order> NewOrder() { return MakeFencedOrder(&fence_, queue_); }
  void SubmitTo(Executor* executor) { executor_ = executor; }

  // The end-to-end path of a request that came with `metadata`; 0: none, or text that is none.
  static uint32_t PathOf(const Metadata& metadata) { return metadata.empty() ? 0 : PathIn(metadata); }

  // Its permits.
  Fence& fence() { return fence_; }

  // How a request ends whose answer that is; `ran`: its handler did.
  static PermitEnd EndOf(bool ran, const absl::Status& answer) {
    return !ran ? PermitEnd::kUnused : answer.ok() ? PermitEnd::kAnswered : EndOfError(answer.code());
  }
  // Returns a request's permit, once. Never blocks.
  void Return(uint8_t permit, PermitEnd end);
  // A request of `method` has ended: returns its permit, if it has one. Never blocks.
  // `look`: WaitHint::look of the present thread if the request is its task and does nothing after this; else null.
  void Ended(uint32_t method, uint8_t permit, PermitEnd end, bool* look);
  // A request of `method` calls `path`, "/package.Service/Method".
  void Called(uint32_t method, std::string_view path) {
    if (!classes_.Knows(method, path)) [[unlikely]]
      CalledNew(method, path);
  }
  // The answer to a request that a full queue refused; tells the client when to try again.
  absl::Status Refuse(uint8_t path_class, Context* context) const;
  // A request of the class was refused for a reason that the order does not count itself.
  void CountRefusal(uint8_t path_class, Refusal reason);
  FenceStats Sample() const;

 private:
  static uint32_t PathIn(const Metadata& metadata);
  static PermitEnd EndOfError(absl::StatusCode code);
  // Return(), without a call.
  [[gnu::always_inline]] inline void ReturnHere(uint8_t permit, PermitEnd end, bool* look);
  // Return() where limits follow.
  [[gnu::noinline]] void ReturnMeasured(uint8_t permit, PermitEnd end, bool* look);
  // The order looks at the requests that it holds back.
  void GiveToHeld(bool* look);
  void CalledNew(uint32_t method, std::string_view path);
  void WarnOfCall(uint32_t method, std::string_view path) const;

  Fence fence_;
  const QueueOptions queue_;
  ClassTable classes_;
  // Set by AddMethod(): the services that methods declare to call, and whether any method declares nothing.
  std::set<std::string> declared_;
  bool undeclared_ = false;
  // Atomic, relaxed: for statistics.
  struct Refusals {
    std::atomic<uint64_t> shed{0};  // beside those that the order shed
    std::atomic<uint64_t> late{0};
    std::atomic<uint64_t> no_credit{0};
  };
  std::array<Refusals, Fence::kMaxClasses> refusals_{};
  Executor* executor_ = nullptr;  // immutable once the server runs
};

}  // namespace internal
}  // namespace curtail
