// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/fan_out/fanout.h"

#include <algorithm>
#include <utility>

#include "curtail/base/string_bytes.h"
#include "curtail/base/strings.h"
#include "curtail/exec/receiver.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/call/refusal.h"
#include "curtail/rpc/call/serialize.h"
#include "curtail/rpc/call/server_fence.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

using google::protobuf::MessageLite;

namespace {

// The calls of a larger fan-out are not kept for the next.
constexpr size_t kMostKept = 64;
// Another look at a call that could not be ended yet.
constexpr Nanos kSoon = std::chrono::milliseconds(1);

}  // namespace

Fanout::Fanout(Context& ctx, const CallBatch& batch)
    : ctx_(ctx), batch_(batch), members_(lease_->Prepare(batch.channels.size())) {}

Fanout::~Fanout() = default;

void Fanout::BeginAttempts() {
  for (size_t i = 0; i < size(); ++i) {
    Member& call = members_[i];
    call.fanout = this;
    call.wanted = true;
    call.retries = call.hedges = 0;
    call.again = kNever;
    call.deadline = Deadline::Infinite();
    call.attempts.Begin(batch_.channels[i]->impl().policy(), batch_.PathOf(i),
                        ctx_.call_options().wait_for_ready);
    Nanos timeout = batch_.timeouts.empty() ? Nanos::max() : batch_.timeouts[i];
    if (const MethodConfig* const method = call.attempts.method()) {
      policies_ = true;
      timeout = std::min(timeout, method->timeout.value_or(Nanos::max()));
    }
    if (timeout == Nanos::max()) continue;
    policies_ = true;
    call.deadline = Deadline::At(now_ + timeout);
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
    items[i].hedged.reset();
    items[i].Reset();
  }
  return capacity <= kMostKept;
}

absl::Status Fanout::Refusal() {
  if (ctx_.cancelled()) return CancelledByCaller();
  now_ = Now();
  if (ctx_.deadline().when() <= now_) return LateCallError(ctx_, size());
  return absl::OkStatus();
}

void Fanout::Prepare(const std::shared_ptr<Poller>& poller) {
  if (first_) {
    BeginAttempts();
  } else {
    now_ = Now();
    TakeDue();
  }
  if (policies_) [[unlikely]]
    BeginHedges(poller);
  const Metadata inherited = ctx_.ChildMetadata();
  const CallOptions& options = ctx_.call_options();
  const std::string* same = nullptr;  // the bytes of the request before, if they are there
  for (size_t i = 0; i < size(); ++i) {
    Member& call = members_[i];
    const std::string* const before = std::exchange(same, nullptr);
    if (!call.wanted) continue;
    if (!Connect(i, poller, inherited)) continue;
    const MessageLite* const request = batch_.requests[i];
    if (before != nullptr && request == batch_.requests[i - 1]) {
      AssignBytes(call.message, *before);
    } else if (!Serialize(*request, &call.message)) {
      Refuse(call, absl::InternalError(
                       "cannot serialize the request (larger than 2 GiB, or a required field is unset)"));
      continue;
    }
    same = &call.message;
    if (call.message.size() > options.max_request_bytes) {
      Refuse(call, TooLong(call.message.size(), options.max_request_bytes));
      continue;
    }
    if (policies_) [[unlikely]] {
      if (absl::Status fits = call.attempts.CheckRequest(call.message.size()); !fits.ok()) {
        Refuse(call, std::move(fits));
        continue;
      }
    }
    if (call.head.path != batch_.PathOf(i)) call.head.path.assign(batch_.PathOf(i));
    call.head.encoding = options.encoding.value_or(batch_.channels[i]->impl().options.encoding);
    if (!options.authority.empty() || !call.head.authority.empty()) [[unlikely]]
      call.head.authority = options.authority;
    call.head.max_message_bytes = options.max_reply_bytes;
    if (const int failed = call.attempts.failed(); failed > 0) [[unlikely]]
      call.head.metadata.AddLowerCase(kAttemptsKey, std::to_string(failed));
    call.SetTimeout(DeadlineOf(call), now_);
  }
}

void Fanout::Refuse(Member& call, absl::Status why) {
  call.status = std::move(why);
  call.connection.reset();
  call.committed = true;  // another attempt would end alike
}

void Fanout::TakeDue() {
  for (size_t i = 0; i < size(); ++i) {
    Member& call = members_[i];
    if (call.again > std::max(now_, resume_at_)) continue;
    call.wanted = DeadlineOf(call).when() > now_;
    if (call.wanted && call.connection != nullptr) ++call.retries;
    if (!call.wanted) call.status = CutShort(i, false);  // it waited for a connection until its deadline
    call.again = kNever;
  }
}

bool Fanout::Connect(size_t i, const std::shared_ptr<Poller>& poller, const Metadata& inherited) {
  Member& call = members_[i];
  Channel::Impl& channel = batch_.channels[i]->impl();
  absl::Status failed;  // the attempt before
  call.cancelled.store(false, std::memory_order_relaxed);
  if (!first_) {
    failed = std::move(call.status);
    call.Reset();
    call.connection.reset();
  }
  if (!inherited.empty() || !call.head.metadata.empty()) [[unlikely]]
    call.head.metadata = inherited;
  if (ctx_.path() != 0) [[unlikely]]
    ctx_.AddPathTo(&call.head.metadata);
  if (!channel.options.interceptors.empty() && !Intercept(i)) [[unlikely]] {
    call.committed = true;
    return false;
  }
  if (channel.FindReady(poller, now_, &call.connection)) [[likely]]
    return true;
  absl::StatusOr<std::shared_ptr<ClientConnection>> connection =
      channel.Acquire(poller, now_, call.head.metadata);
  if (connection.ok()) {
    call.connection = *std::move(connection);
    return true;
  }
  call.status = failed.ok() ? connection.status() : std::move(failed);  // the first says more
  call.unprocessed = call.attempts.method() != nullptr && absl::IsUnavailable(connection.status());
  return false;
}

bool Fanout::Intercept(size_t i) {
  intercepted_ = true;
  Member& call = members_[i];
  call.status = batch_.channels[i]->impl().Intercept(call.leaving, batch_.PathOf(i), call.head.metadata);
  return call.status.ok();
}

void Fanout::TellInterceptors() {
  for (size_t i = 0; i < size(); ++i) {
    batch_.channels[i]->impl().TellInterceptors(members_[i].leaving, batch_.PathOf(i), batch_.statuses[i]);
  }
}

void Fanout::Send(bool hold) {
  const WaitHint& hint = CurrentWait();
  // One more than there are calls, given up at the end with those that are not sent: until then the fan-out is sure to be
  // there.
  int given_up = 1;
  cancelling_.store(false, std::memory_order_relaxed);
  // Before any Post(), which publishes it.
  pending_.store(static_cast<int>(size()) + 1, std::memory_order_relaxed);
  if (ctx_.observed() != nullptr) BeforeSend();
  for (size_t i = 0; i < size(); ++i) {
    if (ClientConnection* connection = ConnectionOf(i)) {
      connection->Begin(members_[i]);
    } else {
      ++given_up;
    }
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
  if (ctx_.observed() != nullptr && first_) TellCalled();
  if (ctx_.fence() != nullptr && first_) [[unlikely]]
    TellFence();
  if (policies_) [[unlikely]]
    StartHedges();
  ctx_.Attach(*this);
  Sent();
  Complete(given_up);
}

bool Fanout::AddPending() {
  int n = pending_.load(std::memory_order_relaxed);
  while (n > 0) {
    if (pending_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

Deadline Fanout::GiveUp() {
  Deadline next = Deadline::Infinite();
  for (size_t i = 0; i < size(); ++i) {
    ClientConnection* connection = ConnectionOf(i);
    if (connection == nullptr) continue;
    if (!connection->look_at().infinite()) [[unlikely]] {
      if (connection->look_at().Expired()) connection->Look();
      if (connection->usable()) next = std::min(next, connection->look_at());
    }
    if (policies_) [[unlikely]]
      next = std::min(next, Attend(members_[i]));
  }
  return next;
}

Deadline Fanout::Attend(Member& call) {
  if (!call.deadline.Expired()) {
    return call.hedged == nullptr ? call.deadline : std::min(call.deadline, call.hedged->SendDue());
  }
  if (call.cancelled.load(std::memory_order_relaxed)) return Deadline::Infinite();
  if (!AddPending()) return Deadline::In(kSoon);  // it is about to be sent, or has ended
  PostCancel(call);
  call.connection->Kick(Connection::kPosted, nullptr);
  Complete();
  return Deadline::Infinite();
}

void Fanout::PostCancel(Member& call) {
  if (call.hedged != nullptr) [[unlikely]]
    return call.hedged->Cancel();
  if (call.cancelled.exchange(true, std::memory_order_relaxed)) return;
  pending_.fetch_add(1, std::memory_order_relaxed);
  call.connection->Post(&call.cancel);
}

void Fanout::CancelOpenCalls() {
  // One more to wait for meanwhile, so that the fan-out stays until this returns.
  if (cancelling_.exchange(true, std::memory_order_acq_rel) || !AddPending()) return;
  for (size_t i = 0; i < size(); ++i) {
    if (ConnectionOf(i) != nullptr) PostCancel(members_[i]);
  }
  for (size_t i = 0; i < size(); ++i) {
    if (ClientConnection* connection = ConnectionOf(i)) connection->Kick(Connection::kPosted, nullptr);
  }
  Complete();
}

void Fanout::Repeat(size_t i, const std::shared_ptr<Poller>& poller, TimePoint now) {
  Member& call = members_[i];
  const bool waits = call.unprocessed && call.attempts.method() != nullptr;
  const TimePoint ready_at = waits ? batch_.channels[i]->impl().NextAttempt(poller) : TimePoint();
  call.again = call.attempts.Again(call, now, DeadlineOf(call), ready_at).value_or(kNever);
}

bool Fanout::TakeRetry(const std::shared_ptr<Poller>& poller) {
  if (batch_.fail_fast && cancelling_.load(std::memory_order_relaxed)) return false;
  bool failed = policies_;  // an answer counts for the policy, too
  for (size_t i = 0; i < size(); ++i) failed |= members_[i].wanted && !members_[i].status.ok();
  if (!failed) [[likely]]
    return false;
  const TimePoint now = Now();
  resume_at_ = kNever;
  for (size_t i = 0; i < size(); ++i) {
    if (std::exchange(members_[i].wanted, false)) Repeat(i, poller, now);
    resume_at_ = std::min(resume_at_, members_[i].again);
  }
  if (resume_at_ == kNever || ctx_.cancelled() || ctx_.deadline().Expired()) return false;
  first_ = false;
  return true;
}

// A member whose method has a hedging policy. To the others of the fan-out it is one call, which ends once.
class Fanout::Hedged final : public HedgedCall {
 public:
  Hedged(Member& member, Channel::Impl& channel, const MessageLite& request)
      : HedgedCall(member, member.attempts, channel), member_(member), request_(request) {}

 private:
  bool WriteRequest(std::string* bytes) override { return Serialize(request_, bytes); }
  void Kick(const std::shared_ptr<ClientConnection>& connection) override {
    connection->Kick(Connection::kPosted, nullptr);
  }
  void Over(int hedges) override {
    member_.hedges += static_cast<uint32_t>(hedges);
    member_.fanout->Settled(member_);
  }

  Member& member_;
  const MessageLite& request_;
};

void Fanout::BeginHedges(const std::shared_ptr<Poller>& poller) {
  for (size_t i = 0; i < size(); ++i) {
    Member& call = members_[i];
    const MethodConfig* const method = call.attempts.method();
    if (method == nullptr || !method->hedging) continue;
    if (call.hedged == nullptr) {
      call.hedged = std::make_unique<Hedged>(call, batch_.channels[i]->impl(), *batch_.requests[i]);
    }
    call.hedged->Begin(poller, DeadlineOf(call), now_);
  }
}

void Fanout::StartHedges() {
  for (size_t i = 0; i < size(); ++i) {
    if (members_[i].hedged != nullptr && ConnectionOf(i) != nullptr) members_[i].hedged->Sent();
  }
}

void Fanout::TakeMetadata(size_t i) {
  if (batch_.metadata.empty() || batch_.metadata[i] == nullptr) return;
  *batch_.metadata[i] = std::move(members_[i].metadata);
}

// Why a call that was cut short by its own side ended.
absl::Status Fanout::Outcome(size_t i, bool cancelled, bool expired) {
  Member& call = members_[i];
  if (call.again != kNever) return CutShort(i, cancelled);
  if (!absl::IsCancelled(call.status) && !absl::IsDeadlineExceeded(call.status))
    return std::move(call.status);
  if (cancelled) return CancelledByCaller();
  if (expired || call.deadline.Expired()) {
    return DeadlinePassed(Join("while waiting for ", batch_.channels[i]->target()));
  }
  return std::move(call.status);
}

absl::Status Fanout::CutShort(size_t i, bool cancelled) const {
  if (cancelled) return CancelledByCaller();
  return DeadlinePassed(
      Join("while waiting to call ", batch_.channels[i]->target(), ": ", Message(members_[i].status)));
}

void Fanout::Collect(const absl::Status& refused) {
  // Asked once, so that calls that were cut short together say the same.
  bool failed = false;
  for (size_t i = 0; i < size(); ++i) failed |= !members_[i].status.ok();
  const bool cancelled = failed && ctx_.cancelled();
  const bool expired = failed && ctx_.deadline().Expired();
  if (failed && ctx_.refusals() != nullptr) CountRefused();
  size_t largest = 0;
  for (size_t i = 0; i < size(); ++i) {
    absl::Status& status = batch_.statuses[i];
    if (failed || !refused.ok()) [[unlikely]] {
      status = refused.ok() ? Outcome(i, cancelled, expired) : refused;
    } else {
      status = absl::OkStatus();
    }
    if (!members_[i].metadata.empty()) TakeMetadata(i);
    if (!status.ok()) continue;
    const std::string& reply = members_[i].reply;
    largest = std::max(largest, reply.size());
    if (policies_) [[unlikely]] {
      if (status = members_[i].attempts.CheckReply(reply.size()); !status.ok()) continue;
    }
    if (!Parse(reply, batch_.replies[i])) {
      status = absl::InternalError(Join("reply is not a valid ", batch_.replies[i]->GetTypeName()));
    }
  }
  if (batch_.largest != nullptr) *batch_.largest = std::max(*batch_.largest, largest);
  if (ctx_.observed() != nullptr && refused.ok()) TellAnswered();
  if (intercepted_) [[unlikely]]
    TellInterceptors();
}

void Fanout::CountRefused() const {
  for (size_t i = 0; i < size(); ++i) {
    if (members_[i].no_credit) ctx_.refusals()->Count(Refusal::kCallNoCredit);
  }
}

inline void Fanout::Describe(size_t i, ChildCall* child) const {
  child->index = static_cast<uint32_t>(i);
  child->ordinal = ordinal_ + static_cast<uint32_t>(i);
  child->within = ctx_.within();
  child->path = batch_.PathOf(i);
  child->target = batch_.channels[i]->target();
  child->called = called_;
  child->sent = sent_;
}

void Fanout::BeforeSend() {
  if (first_) {
    called_ = now_;
    ordinal_ = ctx_.observed()->Number(static_cast<uint32_t>(size()));
  } else {
    // Those that have no connection to go out on stay so; in the first round an older time counts as `called_`.
    for (size_t i = 0; i < size(); ++i) {
      if (members_[i].wanted) members_[i].answered = now_;
    }
  }
  if (ctx_.observed()->wants(kChildLeaves)) TellLeaves();
}

void Fanout::TellLeaves() {
  ChildCall child;
  for (size_t i = 0; i < size(); ++i) {
    wire::RequestHead& head = members_[i].head;
    if (ConnectionOf(i) != nullptr) {
      Describe(i, &child);
      ctx_.observed()->ChildLeaves(child, {head.metadata, &head.trace_parent});
    }
  }
}

void Fanout::TellCalled() {
  if (!ctx_.observed()->exact()) return;
  sent_ = Now();
  if (!ctx_.observed()->wants(kChildCalled)) return;
  for (size_t i = 0; i < size(); ++i) {
    ChildCall child;
    Describe(i, &child);
    ctx_.observed()->ChildCalled(child);
  }
}

void Fanout::TellFence() const {
  if (!batch_.paths.empty()) [[unlikely]]
    return TellFenceOfEach();
  ctx_.fence()->Called(ctx_.method(), batch_.path);
}

void Fanout::TellFenceOfEach() const {
  for (const std::string_view path : batch_.paths) ctx_.fence()->Called(ctx_.method(), path);
}

void Fanout::TellAnswered() const {
  const ObservedCall& observed = *ctx_.observed();
  if (observed.wants(kKeepsLateChildren) && !observed.wants(kChildAnswered)) [[likely]] {
    if (const TimePoint late = observed.Late(); AnyKept(late)) [[unlikely]]
      TellEach(late, {});
    return;
  }
  const TimePoint late = observed.wants(kKeepsLateChildren) ? observed.Late() : TimePoint::max();
  TellEach(late, observed.wants(kKeepsChildren) ? observed.Keep(size()) : std::span<ChildCall>());
}

bool Fanout::AnyKept(TimePoint late) const {
  bool any = false;
  for (size_t i = 0; i < size(); ++i) any |= members_[i].answered > late || !batch_.statuses[i].ok();
  return any;
}

void Fanout::TellEach(TimePoint late, std::span<ChildCall> room) const {
  const ObservedCall& observed = *ctx_.observed();
  const bool tell = observed.wants(kChildAnswered);
  const bool keeps_late = observed.wants(kKeepsLateChildren);
  for (size_t i = 0; i < size(); ++i) {
    const bool ok = batch_.statuses[i].ok();
    const TimePoint answered = std::max(members_[i].answered, called_);
    std::span<ChildCall> place = room.subspan(std::min(i, room.size()));
    if (place.empty() && (answered > late || (!ok && keeps_late))) [[unlikely]]
      place = observed.Keep(1);
    if (place.empty() && !tell) continue;
    ChildCall own;
    ChildCall& child = place.empty() ? own : place.front();
    Describe(i, &child);
    child.answered = answered;
    child.code = ok ? absl::StatusCode::kOk : batch_.statuses[i].code();
    child.retries = members_[i].retries;
    child.hedges = members_[i].hedges;
    if (tell) observed.ChildAnswered(child);
  }
}

}  // namespace curtail::internal
