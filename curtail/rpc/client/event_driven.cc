// SPDX-License-Identifier: Apache-2.0
//
// Calls that Channel::Start() begins and that Client::Poll() carries on, on the one thread that polls. A call that a
// request waits for goes by call_all.cc.
#include <algorithm>
#include <optional>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/call/outcome.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/channel_impl.h"

namespace curtail {

using internal::ClientConnection;
using internal::Connection;
using internal::StartedCall;

void internal::StartedCall::Finished() {
  if (hedged != nullptr) [[unlikely]]
    return hedged->Ended(*this);
  // A reply may have come with the timer, or after it. One that says that the call was cut short then says why.
  const bool late = armed() && when() <= Now();
  if (timed_out || (late && (status.ok() || absl::IsCancelled(status)))) status = Late();
  if (!timed_out && (!late || unprocessed) && (!status.ok() || attempts.method() != nullptr)) [[unlikely]] {
    if (client->impl_->Again(this, Now())) return;
  }
  client->impl_->Finish(this);
}

absl::Status internal::StartedCall::Late(std::string_view before) const {
  if (given_up) return internal::CancelledByCaller();
  if (before.empty()) return internal::DeadlinePassed();
  return absl::DeadlineExceededError(Join("deadline exceeded: ", before));
}

void internal::StartedCall::CancelHandled() {
  // Without hedging Finished() has run by then, and may have put the object to use again: nothing is left to do.
  if (cancelled.load(std::memory_order_relaxed)) hedged->CancelHandled();
}

void internal::StartedCall::Touch(Client& client, const std::shared_ptr<ClientConnection>& connection) {
  client.impl_->Touch(connection);
}

StartedCall* Client::Impl::NewCall() {
  if (free_calls.empty()) {
    pool.push_back(std::make_unique<StartedCall>());
    free_calls.push_back(pool.back().get());
  }
  StartedCall* call = free_calls.back();
  free_calls.pop_back();
  call->Reset();
  call->timed_out = call->given_up = false;
  call->wait.call = call;
  return call;
}

bool Client::Impl::Send(StartedCall* call, TimePoint now) {
  absl::StatusOr<std::shared_ptr<ClientConnection>> acquired =
      call->channel->impl().Acquire(lanes[0]->poller(), now, call->head.metadata);
  if (!acquired.ok()) [[unlikely]] {
    call->status = acquired.status();
    call->connection.reset();
    call->unprocessed = call->attempts.method() != nullptr;
    if (call->unprocessed && Again(call, now)) return true;
    failed.push_back(call);
    return false;
  }
  call->connection = *std::move(acquired);
  call->connection->Begin(*call);
  Touch(call->connection);
  const internal::MethodConfig* const method = call->attempts.method();
  if (method != nullptr && method->hedging) [[unlikely]]
    Hedge(call, now);
  return true;
}

// An event-driven call as the owner of its hedges, on the one thread that polls. Connections act in the next Poll().
class Client::Impl::Hedged final : public internal::HedgedCall {
 public:
  Hedged(Impl& client, StartedCall& call)
      : HedgedCall(call, call.attempts, call.channel->impl()), client_(client), call_(call) {}

 private:
  bool WriteRequest(std::string* bytes) override {
    *bytes = call_.kept_message;
    return true;
  }
  void Kick(const std::shared_ptr<ClientConnection>& connection) override { client_.Touch(connection); }
  void Plan(Deadline next) override {
    client_.waits.Remove(call_.wait);
    if (!next.infinite()) client_.waits.Insert(call_.wait, next.when());
  }
  void Over(int) override {
    const std::unique_ptr<HedgedCall> self = std::move(call_.hedged);
    client_.waits.Remove(call_.wait);
    call_.cancelled.store(false, std::memory_order_relaxed);
    call_.Finished();
  }

  Impl& client_;
  StartedCall& call_;
};

void Client::Impl::Hedge(StartedCall* call, TimePoint now) {
  call->hedged = std::make_unique<Hedged>(*this, *call);
  call->hedged->Begin(lanes[0]->poller(), call->armed() ? Deadline::At(call->when()) : Deadline::Infinite(),
                      now);
  call->hedged->Sent();
}

void Client::Impl::Touch(const std::shared_ptr<ClientConnection>& connection) {
  if (std::exchange(connection->dirty, true)) return;
  dirty.push_back(connection);
  if (!std::exchange(connection->watched, true)) connecting.push_back(connection);
}

bool Client::Impl::Again(StartedCall* call, TimePoint now) {
  const Deadline deadline = call->armed() ? Deadline::At(call->when()) : Deadline::Infinite();
  const TimePoint ready_at = call->unprocessed && call->attempts.method() != nullptr
                                 ? call->channel->impl().NextAttempt(lanes[0]->poller())
                                 : TimePoint();
  const int failed = call->attempts.failed();
  const std::optional<TimePoint> when = call->attempts.Again(*call, now, deadline, ready_at);
  if (!when) return false;
  if (call->attempts.failed() > failed) call->done->OnRetry();
  call->connection.reset();
  if (*when <= now) {
    refused.push_back(call);
  } else {
    waits.Insert(call->wait, *when);
  }
  return true;
}

void Client::Impl::EndWaits() {
  const TimePoint now = waits.empty() ? TimePoint() : Now();
  while (!waits.empty() && waits.first().when() <= now) {
    StartedCall* const call = static_cast<StartedCall::Wait&>(waits.first()).call;
    waits.Remove(call->wait);
    if (call->hedged != nullptr) {
      call->hedged->SendDue();
    } else {
      refused.push_back(call);
    }
  }
}

void Client::Impl::SendRefusedAgain() {
  refused_before.swap(refused);
  for (StartedCall* call : refused_before) {
    const TimePoint now = Now();
    if (call->timed_out || (call->armed() && call->when() <= now)) {  // it waited until its deadline
      call->status = call->Late(Message(call->status));
      Finish(call);
      continue;
    }
    const absl::Status before = std::move(call->status);
    call->ResetOutcome();
    if (call->attempts.method() != nullptr) {
      call->message = call->kept_message;
      call->head.metadata = call->kept_metadata;
      if (const int failed = call->attempts.failed(); failed > 0)
        call->head.metadata.AddLowerCase(internal::kAttemptsKey, std::to_string(failed));
    }
    if (call->armed()) call->SetTimeout(Deadline::At(call->when()), now);
    if (Send(call, now)) continue;
    timers.Remove(*call);
    call->status = before;  // it says more
  }
  refused_before.clear();
}

void Client::Impl::Finish(StartedCall* call) {
  ++completed;
  timers.Remove(*call);
  Completion* done = call->done;
  if (call->status.ok() && call->attempts.method() != nullptr) [[unlikely]] {
    call->status = call->attempts.CheckReply(call->reply.size());
    if (!call->status.ok()) call->reply.clear();
  }
  absl::Status status = std::move(call->status);
  EmptyForReuse(reply);
  reply.swap(call->reply);
  ReplyMetadata metadata = std::move(call->metadata);
  const TimePoint arrived = call->arrived;
  call->channel->impl().TellInterceptors(call->leaving, call->head.path, status);
  call->connection.reset();
  free_calls.push_back(call);
  if (!metadata.empty()) done->OnMetadata(std::move(metadata));
  if (arrived != TimePoint()) done->OnArrival(arrived);
  done->Done(std::move(status), std::move(reply));
}

void Client::Impl::Cancel(StartedCall* call) {
  if (call->timed_out || std::exchange(call->given_up, true)) return;
  gave_up = true;
  timers.Remove(*call);
  timers.Insert(*call, TimePoint());
}

void Client::Impl::ExpireTimers() {
  if (timers.empty()) return;
  const TimePoint now = Now();
  std::vector<std::shared_ptr<ClientConnection>> kick;
  std::vector<StartedCall*> late_waits;
  while (!timers.empty() && timers.first().when() <= now) {
    auto& call = static_cast<StartedCall&>(timers.first());
    timers.Remove(call);
    if (call.hedged != nullptr) {
      call.timed_out = true;
      call.hedged->Cancel();
      continue;
    }
    if (call.wait.armed()) {
      waits.Remove(call.wait);
      call.status = call.Late(Message(call.status));
      late_waits.push_back(&call);
      continue;
    }
    call.timed_out = true;
    if (call.connection == nullptr) continue;  // it is to be sent again, and ends instead
    if (kick.empty() || kick.back() != call.connection) kick.push_back(call.connection);
    call.connection->Post(&call.cancel);
  }
  for (const auto& connection : kick) connection->Kick(Connection::kPosted, nullptr);
  for (StartedCall* call : late_waits) Finish(call);
}

Deadline Client::Impl::GiveUpConnecting() {
  Deadline next = Deadline::Infinite();
  std::vector<std::shared_ptr<ClientConnection>> late;
  std::erase_if(connecting, [&](const std::shared_ptr<ClientConnection>& connection) {
    const Deadline look_at = connection->look_at();
    if (look_at.infinite() || !connection->usable()) {
      if (connection->looks_again()) connection->watched = false;  // the next call has it watched again
      return true;
    }
    if (look_at.Expired()) {
      late.push_back(connection);
      return false;
    }
    next = std::min(next, look_at);
    return false;
  });
  // Completions may begin calls that connect anew.
  for (const auto& connection : late) {
    connection->Look();
    if (connection->usable()) next = std::min(next, connection->look_at());
  }
  return next;
}

Channel::CallId Channel::Start(std::string_view path, Deadline deadline, const Metadata& metadata,
                               std::string_view request, Completion* done) {
  Client::Impl& client = *impl_->client->impl_;
  StartedCall* call = client.NewCall();
  call->client = impl_->client;
  call->channel = this;
  call->done = done;
  call->head.path.assign(path);
  call->head.metadata = metadata;
  call->head.encoding = impl_->options.encoding;
  call->message.assign(request);
  const TimePoint now = Now();
  const auto fail = [&](absl::Status why) {
    call->status = std::move(why);
    client.failed.push_back(call);
    return call;
  };
  if (impl_->in_process != nullptr) {
    return fail(absl::FailedPreconditionError("event-driven calls need a connection"));
  }
  call->attempts.Begin(impl_->policy(), path);
  if (const internal::MethodConfig* method = call->attempts.method()) {
    if (method->timeout) deadline = std::min(deadline, Deadline::At(now + *method->timeout));
    call->kept_message = call->message;
    if (absl::Status wrong = call->attempts.CheckRequest(call->message.size()); !wrong.ok())
      return fail(wrong);
  }
  if (deadline.when() <= now) {
    return fail(internal::DeadlinePassed("before the call was sent"));
  }
  absl::Status refused = impl_->Intercept(call->leaving, path, call->head.metadata);
  if (!refused.ok()) [[unlikely]]
    return fail(std::move(refused));
  if (call->attempts.method() != nullptr) call->kept_metadata = call->head.metadata;
  call->SetTimeout(deadline, now);
  if (!deadline.infinite()) client.timers.Insert(*call, deadline.when());
  if (!client.Send(call, now)) client.timers.Remove(*call);
  return call;
}

void Channel::Cancel(CallId call) { impl_->client->impl_->Cancel(call); }

size_t Client::Poll(Deadline deadline) {
  Impl& impl = *impl_;
  // Calls that completions begin meanwhile are for the next Poll(): a call that fails at once and is begun again at
  // once must not keep the caller here.
  if (std::exchange(impl.gave_up, false)) impl.ExpireTimers();  // a start and its end share a write
  impl.dirty_before.swap(impl.dirty);
  impl.failed_before.swap(impl.failed);
  for (const auto& connection : impl.dirty_before) {
    connection->dirty = false;
    connection->Kick(Connection::kPosted, nullptr);
  }
  for (StartedCall* call : impl.failed_before) impl.Finish(call);
  impl.dirty_before.clear();
  impl.failed_before.clear();
  if (!impl.connecting.empty()) deadline = std::min(deadline, impl.GiveUpConnecting());
  if (!impl.timers.empty()) deadline = std::min(deadline, Deadline::At(impl.timers.first().when()));
  if (!impl.waits.empty()) deadline = std::min(deadline, Deadline::At(impl.waits.first().when()));
  if (impl.completed > 0 || !impl.dirty.empty() || !impl.failed.empty() || !impl.refused.empty())
    deadline = Deadline::At(TimePoint());
  impl.lanes[0]->PollOnce(deadline);
  impl.EndWaits();
  if (!impl.refused.empty()) impl.SendRefusedAgain();
  impl.ExpireTimers();
  return std::exchange(impl.completed, 0);
}

}  // namespace curtail
