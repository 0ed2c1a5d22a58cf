// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A call that has failed is made again for one of four reasons, which are tried in this order:
//
//  Unseen   No server has seen it. At once, whatever the policy.
//  Waits    No connection is to be had, and its method waits for one. When the next attempt to connect is due, until the
//           call's deadline.
//  Retry    Its method has a retry policy, and is named there or declared idempotent (https://github.com/grpc/proposal/blob/master/A6-client-retries.md). After a
//           backoff, or when the server said; never once the head of a reply has come, or if the deadline comes first.
//  Hedged   Its method has a hedging policy, and all attempts that were sent have failed (hedging.cc sends more while one
//           has not). As with Retry, but at once.
//
// A policy counts the attempts that a server may have seen. With the unseen ones there are kMaxAttempts in all.
#include "curtail/rpc/client/attempts.h"

#include <algorithm>
#include <charconv>

#include "curtail/base/mix.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/connection/backoff.h"

namespace curtail::internal {
namespace {

// Between looks for a connection, should it be due at once.
constexpr Nanos kShortWait = std::chrono::milliseconds(5);

absl::Status OverLimit(std::string_view what, size_t bytes, size_t most) {
  return absl::ResourceExhaustedError(
      Join(what, " of ", bytes, " bytes; the service config allows ", most, " for this method"));
}

}  // namespace

const MethodConfig Attempts::kNothingElse;

void Throttle::Add(int milli) {
  if (!config_) return;
  int before = milli_tokens_.load(std::memory_order_relaxed);
  int after = 0;
  do {
    after = std::clamp(before + milli, 0, config_->max_milli_tokens);
  } while (!milli_tokens_.compare_exchange_weak(before, after, std::memory_order_relaxed));
}

std::optional<int64_t> PushbackMs(const ClientCall& call) {
  const auto text = call.metadata.trailing.Find(kPushbackKey);
  if (!text) return std::nullopt;
  int64_t ms = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), ms);
  return error == std::errc() && end == text->data() + text->size() && ms <= INT32_MAX ? ms : -1;
}

bool Attempts::MayGoOn(const ClientCall& call) const {
  if (call.unprocessed && (!Spent() || WaitsForReady())) return true;
  if (method_ == nullptr || call.committed || Spent()) return false;
  const absl::StatusCode code = call.status.code();
  if (method_->hedging)
    return method_->hedging->IsNonFatal(code) && failed_ + 1 < method_->hedging->max_attempts;
  return method_->retry && method_->retry->Repeats(code) && failed_ + 1 < method_->retry->max_attempts;
}

std::optional<TimePoint> Attempts::Again(const ClientCall& call, TimePoint now, Deadline deadline,
                                         TimePoint ready_at) {
  if (call.status.ok()) {
    if (method_ != nullptr && (method_->retry || method_->hedging)) policy_->throttle().Succeeded();
    return std::nullopt;
  }
  // Such a call ends by its deadline, even if that has come with the news that no connection is to be had.
  const bool waits = call.unprocessed && WaitsForReady() && absl::IsUnavailable(call.status);
  if (deadline.when() <= now) return waits ? std::optional(deadline.when()) : std::nullopt;
  if (call.unprocessed && ready_at <= now && !Spent()) {
    ++unseen_;
    return now;
  }
  if (waits) return std::min(deadline.when(), std::max(ready_at, now + kShortWait));
  if (method_ == nullptr || call.committed || Spent()) return std::nullopt;
  if (method_->hedging) return HedgeAgain(call, now, deadline);
  return method_->retry ? Retry(call, now, deadline) : std::nullopt;
}

std::optional<TimePoint> Attempts::HedgeAgain(const ClientCall& call, TimePoint now, Deadline deadline) {
  const HedgingPolicy& hedging = *method_->hedging;
  const int64_t pushback = PushbackMs(call).value_or(0);
  if (!counted_ && hedging.IsNonFatal(call.status.code())) policy_->throttle().Failed();
  if (!hedging.IsNonFatal(call.status.code()) || pushback < 0) return std::nullopt;
  if (failed_ + 1 >= hedging.max_attempts || !MayHedge()) return std::nullopt;
  ++failed_;
  const TimePoint when = now + std::chrono::milliseconds(pushback);
  return when < deadline.when() ? std::optional(when) : std::nullopt;
}

std::optional<TimePoint> Attempts::Retry(const ClientCall& call, TimePoint now, Deadline deadline) {
  const RetryPolicy& retry = *method_->retry;
  const std::optional<int64_t> pushback = PushbackMs(call);
  if (!pushback && !retry.Repeats(call.status.code())) return std::nullopt;
  policy_->throttle().Failed();
  if (!retry.Repeats(call.status.code()) || pushback.value_or(0) < 0) return std::nullopt;
  if (!policy_->throttle().Allows() || failed_ + 1 >= retry.max_attempts) return std::nullopt;
  ++failed_;
  if (backoff_ == Nanos::zero()) backoff_ = std::min(retry.initial_backoff, retry.max_backoff);
  TimePoint when;
  if (pushback) {
    when = now + std::chrono::milliseconds(*pushback);
    backoff_ = Nanos::zero();
  } else {
    when = now + Backoff::Jittered(backoff_, Mix(static_cast<uint64_t>(now.time_since_epoch().count()) +
                                                 reinterpret_cast<uintptr_t>(this)));
    backoff_ = std::max(Backoff::Grown(backoff_, retry.multiplier, retry.max_backoff), Nanos(1));
  }
  if (when >= deadline.when()) return std::nullopt;
  return when;
}

absl::Status Attempts::CheckRequest(size_t bytes) const {
  if (method_ == nullptr || bytes <= method_->max_request_bytes.value_or(bytes)) return absl::OkStatus();
  return OverLimit("a request", bytes, *method_->max_request_bytes);
}

absl::Status Attempts::CheckReply(size_t bytes) const {
  if (method_ == nullptr || bytes <= method_->max_response_bytes.value_or(bytes)) return absl::OkStatus();
  return OverLimit("a reply", bytes, *method_->max_response_bytes);
}

}  // namespace curtail::internal
