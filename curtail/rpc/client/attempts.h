// SPDX-License-Identifier: Apache-2.0
//
// attempts.h - which failed calls are made again, and when.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/call/call_metadata.h"
#include "curtail/rpc/client/config/idempotent_methods.h"
#include "curtail/rpc/client/config/service_config.h"
#include "curtail/rpc/client/connection/client_call.h"

namespace curtail::internal {

// A Throttle stops retries while many calls fail: a failure takes a token, a success gives `milli_ratio` thousandths of
// one back, and there are retries while more than half of all tokens are there. Thread-safe.
class Throttle {
 public:
  explicit Throttle(std::optional<ThrottleConfig> config)
      : config_(config), milli_tokens_(config ? config->max_milli_tokens : 0) {}

  void Succeeded() { Add(config_ ? config_->milli_ratio : 0); }
  void Failed() { Add(-1000); }
  bool Allows() const {
    return !config_ || milli_tokens_.load(std::memory_order_relaxed) > config_->max_milli_tokens / 2;
  }

 private:
  void Add(int milli);

  const std::optional<ThrottleConfig> config_;
  // Atomic, relaxed: a count that orders nothing.
  std::atomic<int> milli_tokens_;
};

// A CallPolicy is what a channel's options and service config say of its calls. Thread-safe.
class CallPolicy {
 public:
  CallPolicy(ServiceConfig config, bool wait_for_ready)
      : config_(std::move(config)), once_(config_.methods), throttle_(config_.throttle) {
    for (MethodConfig& method : once_) method.retry.reset(), method.hedging.reset();
    otherwise_.wait_for_ready = wait_for_ready;
    wait_for_ready_ = wait_for_ready;
  }

  // The config for calls of `path`; null if nothing applies to them. Retries and hedging of a config that does not name
  // the method itself are for idempotent methods only.
  const MethodConfig* Find(std::string_view path) {
    const MethodConfig* const found = config_.Find(path);
    if (found == nullptr) return wait_for_ready_ ? &otherwise_ : nullptr;
    if (!found->MakesAgain() || config_.Names(path) || idempotent_.Contains(path)) return found;
    return &once_[static_cast<size_t>(found - config_.methods.data())];
  }
  bool WaitsForReady(const MethodConfig& method) const {
    return method.wait_for_ready.value_or(wait_for_ready_);
  }
  Throttle& throttle() { return throttle_; }

 private:
  const ServiceConfig config_;
  std::vector<MethodConfig>
      once_;  // those of config_ without retries and hedging; immutable after construction
  IdempotentMethods idempotent_;
  MethodConfig otherwise_;  // immutable after construction, like the next
  bool wait_for_ready_;
  Throttle throttle_;
};

// The attempts at one call. Thread-compatible.
class Attempts {
 public:
  // `policy` is null for a channel without. `waits`: the call itself asks to wait for a connection.
  void Begin(CallPolicy* policy, std::string_view path, bool waits = false) {
    *this = Attempts();
    if (policy == nullptr && !waits) [[likely]]
      return;
    waits_ = waits;
    if (policy != nullptr) method_ = policy->Find(path);
    if (method_ != nullptr) policy_ = policy;
    if (method_ == nullptr && waits) method_ = &kNothingElse;
  }

  // The config of the method; null: there is none.
  const MethodConfig* method() const { return method_; }
  // Attempts that a server may have seen and that failed.
  int failed() const { return failed_; }

  // True if a call that has failed may be made again. Any thread, as long as no other thread calls Again().
  bool MayGoOn(const ClientCall& call) const;
  // The call has ended; returns when it is made again, if so: before `deadline`, unless it waits for a connection, for
  // which it may wait until then. `ready_at`: when the next attempt to connect may be made.
  std::optional<TimePoint> Again(const ClientCall& call, TimePoint now, Deadline deadline,
                                 TimePoint ready_at);

  // True if the call waits for a connection while there is none.
  bool WaitsForReady() const { return waits_ || (policy_ != nullptr && policy_->WaitsForReady(*method_)); }

  // Hedging. REQUIRES: the method has such a policy.
  bool MayHedge() const { return policy_->throttle().Allows(); }
  // An attempt has failed in a way that counts for the throttle. Any thread.
  void HedgeFailed() { policy_->throttle().Failed(); }
  // Beside the attempt that just ended `others` were made; HedgeFailed() was called for those that failed. `stop`: a
  // server wants no more.
  void NoteHedges(int others, bool stop) {
    failed_ = stop ? kMostAttempts : failed_ + others;
    counted_ = true;
  }

  // The verdict of the method's limits on a request, or on a reply that came.
  absl::Status CheckRequest(size_t bytes) const;
  absl::Status CheckReply(size_t bytes) const;

 private:
  bool Spent() const { return unseen_ + failed_ >= ClientCall::kMaxAttempts; }
  std::optional<TimePoint> Retry(const ClientCall& call, TimePoint now, Deadline deadline);
  std::optional<TimePoint> HedgeAgain(const ClientCall& call, TimePoint now, Deadline deadline);

  static const MethodConfig kNothingElse;  // of a call that waits, on a channel that says nothing of it

  CallPolicy* policy_ = nullptr;
  bool waits_ = false;
  const MethodConfig* method_ = nullptr;
  int unseen_ = 1;  // attempts that no server has seen, and this one
  int failed_ = 0;
  bool counted_ = false;  // the throttle knows of them
  Nanos backoff_{0};      // the next
};

// When the server of `call` says to try again (kPushbackKey); -1 also for text that is not a number.
std::optional<int64_t> PushbackMs(const ClientCall& call);
}  // namespace curtail::internal
