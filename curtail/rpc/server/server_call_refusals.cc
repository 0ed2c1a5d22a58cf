// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. How a request that has its ServerCall ends without its handler: it is late, shed, has no credit, or is given
// up. ServerConnection refuses unknown methods, and what is over the memory budget or has no place in the queue. A
// deadline is looked at in three places, each with a counter (docs/design/overload.md):
//
//   D1  When the request has come whole, before it is queued. Its head may have come long before.
//   D2  When its turn has come, or when its stream has ended while it was queued. One that waited for longer than
//       the time that is left needs as much time as nine of ten of its method's handlers took: else a queue that
//       stands in order of arrival gives each request its turn just before its deadline, and all are late.
//   D3  Before a call that its handler makes: see LateCallError().
#include "curtail/rpc/server/server_call.h"

#include <algorithm>
#include <optional>
#include <string>

#include "curtail/rpc/call/call_metadata.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/server/server_connection.h"

namespace curtail {

bool ServerCall::LeaveQueue(size_t bytes) {
  connection_->Dequeued();
  if (placed_.exchange(false, std::memory_order_acq_rel)) [[likely]] {
    parts_->places.Left(bytes);
    return true;
  }
  parts_->places.AbandonedGone();
  return false;
}

bool ServerCall::Abandon(size_t bytes) {
  if (!placed_.load(std::memory_order_relaxed) || !parts_->places.TryAbandon(bytes)) return false;
  if (placed_.exchange(false, std::memory_order_acq_rel)) {
    if (due_ <= Now()) CountRefusal(internal::Refusal::kQueuedTooLong);  // D2
    return true;
  }
  parts_->places.NotAbandoned(bytes);
  return false;
}

void ServerCall::ReadPriority(std::string_view peer) {
  priority_ = {};
  const std::optional<std::string_view> text = context_.metadata_.Find(kPriorityKey);
  if (!text) return;
  if (const std::optional<Priority> read = ParsePriority(*text)) {
    priority_ = *read;
  } else {
    parts_->limits.Reached(internal::ServerLimit::kPriority, peer);
  }
}

void ServerCall::CountRefusal(internal::Refusal reason) {
  parts_->refusals.Count(reason);
  if (parts_->fence != nullptr) parts_->fence->CountRefusal(method_->kind.path_class(), reason);
}

absl::Status ServerCall::Shed(TimePoint now) {
  switch (shed_reason()) {
    case ShedReason::kFull:
      return parts_->fence->Refuse(order_note(), &context_);
    case ShedReason::kOverdue:
      parts_->refusals.Count(internal::Refusal::kOverdue);  // the order counts it for the class
      return internal::OverdueError(now - queued_at(), &context_);
    case ShedReason::kLessImportant:
      CountRefusal(internal::Refusal::kLessImportant);
      return internal::LessImportantError(priority_, &context_);
  }
  return absl::InternalError("shed");
}

absl::Status ServerCall::Begin(const WaitHint& hint) {
  if (hint.shed) [[unlikely]]
    return Shed(hint.now);
  if (parts_->credits != nullptr && method_->handler.kind == MethodHandler::Kind::kUnary &&
      !parts_->credits->Taken(hint.now - queued_at(), hint.now)) [[unlikely]] {
    CountRefusal(internal::Refusal::kOverdue);
    return internal::OverdueError(hint.now - queued_at(), &context_);
  }
  const Nanos left = context_.deadline().when() - hint.now;
  if (left <= std::min(method_->usual(), hint.now - queued_at())) [[unlikely]] {  // D2
    CountRefusal(internal::Refusal::kQueuedTooLong);
    if (left <= Nanos::zero()) return internal::DeadlinePassed("while queued");
    return absl::DeadlineExceededError("too little time was left after the queue");
  }
  if (context_.cancelled()) return internal::CancelledByCaller();
  if (connection_->overloaded()) [[unlikely]] {
    return absl::ResourceExhaustedError("the server holds too much for this client");
  }
  return absl::OkStatus();
}

bool ServerCall::TakeCredit(CreditAccount& account) {
  if (method_->handler.kind != MethodHandler::Kind::kUnary) return true;
  std::optional<uint32_t> demand;
  if (const auto text = context_.metadata_.Find(internal::kDemandKey))
    demand = ParseCredits(*text).value_or(0);
  if (!account.Open(demand)) return false;
  credit_ = demand ? Credit::kOwn : Credit::kForeign;
  told_ = 0;
  return true;
}

void ServerCall::GiveCreditBack(CreditAccount& account, bool answered) {
  if (credit_ == Credit::kNone) return;
  if (credit_ == Credit::kForeign) account.Settle();
  account.Ended(answered ? told_ : 0);
  credit_ = Credit::kNone;
}

void ServerCall::TellCredits() {
  CreditAccount& account = connection_->account();
  told_ = account.Settle();
  context_.trailing_.AddLowerCase(internal::kCreditsKey, std::to_string(told_));
}

void ServerCall::RefuseWithoutCredit(CreditAccount& account, wire::Session& session) {
  CountRefusal(internal::Refusal::kNoCredit);
  const absl::Status status = internal::NoCreditError(parts_->admission_target, &context_);
  if (context_.metadata_.Find(internal::kDemandKey))
    context_.trailing_.AddLowerCase(internal::kCreditsKey, std::to_string(account.Refused()));
  NeverRun(status.code());
  if (stream_open_) session.EndCall(id_, status, context_.trailing_metadata());
}

void ServerCall::Refuse(const absl::Status& status, wire::Session& session) {
  NeverRun(status.code());
  if (stream_open_) session.EndCall(id_, status);
}

void ServerCall::RefuseLate(wire::Session& session) {
  CountRefusal(internal::Refusal::kCameTooLate);
  Refuse(internal::DeadlinePassed("before the request had come"), session);
}

}  // namespace curtail
