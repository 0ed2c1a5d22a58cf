// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/fanout.h"

#include <algorithm>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/receiver.h"
#include "curtail/rpc/server/observed_call.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

using google::protobuf::MessageLite;

namespace {

// The calls of a larger fan-out are not kept for the next.
constexpr size_t kMostKept = 64;

}  // namespace

Fanout::Fanout(Context& ctx, const CallBatch& batch)
    : ctx_(ctx), batch_(batch), members_(lease_->Prepare(batch.channels.size())) {
  for (size_t i = 0; i < size(); ++i) {
    members_[i].fanout = this;
    members_[i].wanted = true;
  }
}

Fanout::Member* Fanout::Members::Prepare(size_t n) {
  if (capacity < n) {
    items = std::make_unique<Member[]>(n);
    capacity = n;
  }
  count = n;
  return items.get();
}

bool Fanout::Members::Recycle() {
  for (size_t i = 0; i < count; ++i) {
    items[i].connection.reset();
    items[i].Reset();
  }
  return capacity <= kMostKept;
}

absl::Status Fanout::Refusal() {
  if (ctx_.cancelled()) return absl::CancelledError("cancelled by the caller");
  now_ = Now();
  if (ctx_.deadline().when() <= now_) return absl::DeadlineExceededError("deadline exceeded before the call");
  return absl::OkStatus();
}

void Fanout::Prepare(const std::shared_ptr<Poller>& poller) {
  if (attempts_ > 1) now_ = Now();
  const Metadata inherited = ctx_.ChildMetadata();
  const CallOptions& options = ctx_.call_options();
  const std::string* same = nullptr;  // the bytes of the request before, if they are there
  for (size_t i = 0; i < size(); ++i) {
    Member& call = members_[i];
    const std::string* const before = std::exchange(same, nullptr);
    if (!call.wanted) continue;
    absl::Status failed;  // the attempt before
    if (attempts_ > 1) {
      failed = std::move(call.status);
      call.Reset();
      call.connection.reset();
    }
    call.head.metadata = inherited;
    if (!batch_.channels[i]->impl().options.interceptors.empty() && !Intercept(i)) [[unlikely]]
      continue;
    absl::StatusOr<std::shared_ptr<ClientConnection>> connection =
        batch_.channels[i]->impl().Acquire(poller, now_, call.head.metadata);
    if (!connection.ok()) {
      call.status = failed.ok() ? connection.status() : std::move(failed);  // the first says more
      continue;
    }
    const MessageLite* const request = batch_.requests[i];
    if (before != nullptr && request == batch_.requests[i - 1]) {
      call.message = *before;
    } else if (!request->SerializeToString(&call.message)) {
      call.status = absl::InternalError(
          "cannot serialize the request (larger than 2 GiB, or a required field is unset)");
      continue;
    }
    same = &call.message;
    if (call.message.size() > options.max_request_bytes) {
      call.status = TooLong(call.message.size(), options.max_request_bytes);
      continue;
    }
    call.connection = *std::move(connection);
    call.head.path.assign(batch_.PathOf(i));
    call.head.encoding = options.encoding.value_or(batch_.channels[i]->impl().options.encoding);
    if (!options.authority.empty() || !call.head.authority.empty()) [[unlikely]]
      call.head.authority = options.authority;
    call.head.max_message_bytes = options.max_reply_bytes;
    call.SetTimeout(ctx_.deadline(), now_);
  }
}

bool Fanout::Intercept(size_t i) {
  intercepted_ = true;
  Member& call = members_[i];
  call.status = call.leaving.Before(*batch_.channels[i], batch_.PathOf(i), call.head.metadata);
  return call.status.ok();
}

void Fanout::TellInterceptors() {
  for (size_t i = 0; i < size(); ++i) {
    LeavingCall& leaving = members_[i].leaving;
    if (leaving.passed()) leaving.After(*batch_.channels[i], batch_.PathOf(i), batch_.statuses[i]);
  }
}

void Fanout::Send(bool hold) {
  const WaitHint& hint = CurrentWait();
  // One more than there are calls, given up at the end: until then the fan-out is sure to be there.
  int count = 1;
  for (size_t i = 0; i < size(); ++i) count += ConnectionOf(i) != nullptr;
  cancelling_.store(false, std::memory_order_relaxed);
  pending_.store(count, std::memory_order_relaxed);  // before any Post(), which publishes it
  if (ctx_.observed() != nullptr) BeforeSend();
  for (size_t i = 0; i < size(); ++i) {
    if (ClientConnection* connection = ConnectionOf(i)) connection->Begin(members_[i]);
  }
  hold = hold && hint.more_ready && hint.outbox != nullptr;
  for (size_t i = 0; i < size(); ++i) {
    ClientConnection* const connection = ConnectionOf(i);
    const bool again = i > 0 && connection == ConnectionOf(i - 1);
    if (connection == nullptr || again) continue;
    if (hold) {
      hint.outbox->Hold(hint.thread_index, members_[i].connection);
    } else {
      connection->Kick(Connection::kPosted, nullptr);
    }
  }
  if (hold) hint.outbox->FlushIfDue(hint.thread_index);
  if (ctx_.observed() != nullptr && attempts_ == 1) TellCalled();
  ctx_.Attach(*this);
  Complete();
}

bool Fanout::AddPending() {
  int n = pending_.load(std::memory_order_relaxed);
  while (n > 0) {
    if (pending_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

Deadline Fanout::GiveUpConnecting() {
  Deadline next = Deadline::Infinite();
  for (size_t i = 0; i < size(); ++i) {
    ClientConnection* connection = ConnectionOf(i);
    if (connection == nullptr) continue;
    if (connection->connect_deadline().Expired()) connection->Kick(Connection::kGiveUp, nullptr);
    if (connection->usable()) next = std::min(next, connection->connect_deadline());
  }
  return next;
}

void Fanout::CancelOpenCalls() {
  // One more to wait for meanwhile, so that the fan-out stays until this returns.
  if (cancelling_.exchange(true, std::memory_order_acq_rel) || !AddPending()) return;
  for (size_t i = 0; i < size(); ++i) {
    ClientConnection* connection = ConnectionOf(i);
    if (connection == nullptr) continue;
    pending_.fetch_add(1, std::memory_order_relaxed);
    connection->Post(&members_[i].cancel);
  }
  for (size_t i = 0; i < size(); ++i) {
    if (ClientConnection* connection = ConnectionOf(i)) connection->Kick(Connection::kPosted, nullptr);
  }
  Complete();
}

bool Fanout::TakeRetry() {
  if (attempts_ == ClientCall::kMaxAttempts ||
      (batch_.fail_fast && cancelling_.load(std::memory_order_relaxed)))
    return false;
  bool any = false;
  for (size_t i = 0; i < size(); ++i) {
    Member& call = members_[i];
    call.wanted = !call.status.ok() && call.unprocessed;
    any |= call.wanted;
  }
  if (!any || ctx_.cancelled() || ctx_.deadline().Expired()) return false;
  ++attempts_;
  return true;
}

void Fanout::TakeMetadata(size_t i) {
  if (batch_.metadata.empty() || batch_.metadata[i] == nullptr) return;
  *batch_.metadata[i] = std::move(members_[i].metadata);
}

// Why a call that was cut short by its own side ended.
absl::Status Fanout::Outcome(size_t i, bool cancelled, bool expired) {
  ClientCall& call = members_[i];
  if (!absl::IsCancelled(call.status) && !absl::IsDeadlineExceeded(call.status))
    return std::move(call.status);
  if (cancelled) return absl::CancelledError("cancelled by the caller");
  if (expired) {
    return absl::DeadlineExceededError(
        Join("deadline exceeded while waiting for ", batch_.channels[i]->target()));
  }
  return std::move(call.status);
}

void Fanout::Collect(const absl::Status& refused) {
  // Asked once, so that calls that were cut short together say the same.
  bool failed = false;
  for (size_t i = 0; i < size(); ++i) failed |= !members_[i].status.ok();
  const bool cancelled = failed && ctx_.cancelled();
  const bool expired = failed && ctx_.deadline().Expired();
  size_t largest = 0;
  for (size_t i = 0; i < size(); ++i) {
    absl::Status& status = batch_.statuses[i];
    status = refused.ok() ? Outcome(i, cancelled, expired) : refused;
    if (!members_[i].metadata.empty()) TakeMetadata(i);
    if (!status.ok()) continue;
    const std::string& reply = members_[i].reply;
    largest = std::max(largest, reply.size());
    if (!batch_.replies[i]->ParseFromString(reply)) {
      status = absl::InternalError(Join("reply is no valid ", batch_.replies[i]->GetTypeName()));
    }
  }
  if (batch_.largest != nullptr) *batch_.largest = std::max(*batch_.largest, largest);
  if (ctx_.observed() != nullptr && refused.ok()) TellAnswered();
  if (intercepted_) [[unlikely]]
    TellInterceptors();
}

ChildCall Fanout::Child(size_t i) const {
  return {.index = i, .path = batch_.path, .target = batch_.channels[i]->target(), .called = called_};
}

void Fanout::BeforeSend() {
  if (attempts_ == 1) called_ = now_;
  // Those that have no connection to go out on stay so.
  for (size_t i = 0; i < size(); ++i) {
    if (members_[i].wanted) members_[i].answered = now_;
  }
}

void Fanout::TellCalled() const {
  for (size_t i = 0; i < size(); ++i) ctx_.observed()->ChildCalled(Child(i));
}

void Fanout::TellAnswered() const {
  for (size_t i = 0; i < size(); ++i) {
    ChildCall child = Child(i);
    child.answered = members_[i].answered;
    child.code = batch_.statuses[i].code();
    ctx_.observed()->ChildAnswered(child);
  }
}

}  // namespace curtail::internal
