// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A blocking fan-out. The thread that runs the request serializes and sends all calls itself, then
// waits on its lane until the last reply is in; no helper thread takes part. Calls to the same connection
// share a write.
//
// The fan-out lies on the waiting thread's stack. It may be left only when no connection refers to it any
// more: when a deadline or a cancellation ends it early, every call still open is cancelled and its end
// awaited, which takes no round trip (a connection ends a cancelled call at once).
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/internal/channel_impl.h"
#include "google/protobuf/message_lite.h"

namespace curtail {

using google::protobuf::MessageLite;
using internal::ClientCall;
using internal::ClientConnection;
using internal::Connection;

// A Fanout is one or more calls that one thread waits for together.
class Fanout {
 public:
  Fanout(Context& ctx, Client* client, size_t size)
      : ctx_(ctx),
        lane_index_(ctx.wait_hint_.thread_index % client->lane_count()),
        lane_(client->lane(lane_index_)),
        waiter_(&lane_),
        size_(size),
        calls_(std::make_unique<Member[]>(size)) {
    for (size_t i = 0; i < size; ++i) calls_[i].fanout = this;
  }

  // Sends requests[i] to channels[i] for each i whose `wanted` is set, and waits. Leaves each outcome in its
  // call.
  void Run(std::span<Channel* const> channels, std::string_view path,
           std::span<const MessageLite* const> requests);

  ClientCall& call(size_t i) { return calls_[i]; }
  bool TakeRetry();

  // The context's cancellation. Any thread, under the context's mutex.
  void Interrupt() { waiter_.Notify(Waiter::kInterrupted); }

 private:
  struct Member final : ClientCall {
    void Finished() override { fanout->Complete(); }
    void CancelHandled() override { fanout->Complete(); }
    Fanout* fanout = nullptr;
    std::shared_ptr<ClientConnection> connection;
    bool wanted = true;
  };

  void Prepare(std::span<Channel* const> channels, std::string_view path,
               std::span<const MessageLite* const> requests);
  void Send();
  void Wait();
  // Ends attempts to connect that have taken too long; returns when the next will have.
  Deadline GiveUpConnecting();
  void CancelOpenCalls();
  // One call fewer to wait for. The last to call it touches nothing afterwards.
  void Complete() {
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) waiter_.Notify(Waiter::kDone);
  }
  // Counts one more thing to wait for, unless all is over.
  bool AddPending() {
    int n = pending_.load(std::memory_order_relaxed);
    while (n > 0) {
      if (pending_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  Context& ctx_;
  const size_t lane_index_;
  Lane& lane_;
  Waiter waiter_;
  const size_t size_;
  const std::unique_ptr<Member[]> calls_;
  bool retried_ = false;
  // Atomic: calls and cancellations under way. Reaching zero sets kDone.
  std::atomic<int> pending_{0};
};

void Fanout::Prepare(std::span<Channel* const> channels, std::string_view path,
                     std::span<const MessageLite* const> requests) {
  const TimePoint now = Now();
  // A caller may have sent what we may not send on.
  Metadata inherited;
  for (const auto& [key, value] : ctx_.metadata_) {
    if (wire::IsCustomKey(key) && (key.ends_with("-bin") || wire::IsTextValue(value)))
      inherited.Add(key, value);
  }
  for (size_t i = 0; i < size_; ++i) {
    Member& call = calls_[i];
    if (!call.wanted) continue;
    call.Reset();
    call.connection.reset();
    absl::StatusOr<std::shared_ptr<ClientConnection>> connection =
        channels[i]->impl().Acquire(lane_index_, now);
    if (!connection.ok()) {
      call.status = connection.status();
      continue;
    }
    if (!requests[i]->SerializeToString(&call.message)) {
      call.status = absl::InternalError(
          "cannot serialize the request (larger than 2 GiB, or a required field is unset)");
      continue;
    }
    call.connection = *std::move(connection);
    call.head.path.assign(path);
    call.head.metadata = inherited;
    call.deadline = ctx_.deadline_;
  }
}

void Fanout::Send() {
  int count = 0;
  for (size_t i = 0; i < size_; ++i) count += calls_[i].wanted && calls_[i].connection != nullptr;
  if (count == 0) return waiter_.Notify(Waiter::kDone);
  pending_.store(count, std::memory_order_relaxed);  // before any Post(), which publishes it
  // A call may be over as soon as it is posted, and the connection pointer is only this thread's.
  for (size_t i = 0; i < size_; ++i) {
    if (calls_[i].wanted && calls_[i].connection != nullptr) calls_[i].connection->Post(&calls_[i].start);
  }
  for (size_t i = 0; i < size_; ++i) {
    ClientConnection* connection = calls_[i].wanted ? calls_[i].connection.get() : nullptr;
    const bool again = i > 0 && calls_[i - 1].wanted && connection == calls_[i - 1].connection.get();
    if (connection != nullptr && !again) connection->Kick(Connection::kPosted, nullptr);
  }
}

Deadline Fanout::GiveUpConnecting() {
  Deadline next = Deadline::Infinite();
  for (size_t i = 0; i < size_; ++i) {
    ClientConnection* connection = calls_[i].wanted ? calls_[i].connection.get() : nullptr;
    if (connection == nullptr) continue;
    if (connection->connect_deadline().Expired()) connection->Kick(Connection::kGiveUp, nullptr);
    if (connection->usable()) next = std::min(next, connection->connect_deadline());
  }
  return next;
}

void Fanout::Wait() {
  if (ctx_.wait_hint_.receiver != nullptr) ctx_.wait_hint_.receiver->Flush(ctx_.wait_hint_.thread_index);
  do {
    lane_.Wait(waiter_, std::min(ctx_.deadline_, GiveUpConnecting()), ctx_.wait_hint_.spin);
  } while (!waiter_.Has(Waiter::kDone | Waiter::kInterrupted) && !ctx_.deadline_.Expired());
  if (waiter_.Has(Waiter::kDone)) return;
  CancelOpenCalls();
  while (!waiter_.Has(Waiter::kDone)) {
    waiter_.Clear(Waiter::kInterrupted);
    lane_.Wait(waiter_, Deadline::Infinite(),
               nullptr);  // sure to end: a cancelled call ends in its connection's turn
  }
}

void Fanout::CancelOpenCalls() {
  for (size_t i = 0; i < size_; ++i) {
    Member& call = calls_[i];
    if (!call.wanted || call.connection == nullptr) continue;
    if (!AddPending()) break;
    call.connection->Post(&call.cancel);
  }
  for (size_t i = 0; i < size_; ++i) {
    ClientConnection* connection = calls_[i].wanted ? calls_[i].connection.get() : nullptr;
    if (connection != nullptr) connection->Kick(Connection::kPosted, nullptr);
  }
}

void Fanout::Run(std::span<Channel* const> channels, std::string_view path,
                 std::span<const MessageLite* const> requests) {
  Prepare(channels, path, requests);
  {
    MutexLock lock(ctx_.mu_);
    ctx_.waiting_ = this;
  }
  if (ctx_.cancelled()) Interrupt();
  Send();
  Wait();
  MutexLock lock(ctx_.mu_);
  ctx_.waiting_ = nullptr;
}

bool Fanout::TakeRetry() {
  if (retried_ || ctx_.cancelled() || ctx_.deadline_.Expired()) return false;
  bool any = false;
  for (size_t i = 0; i < size_; ++i) {
    Member& call = calls_[i];
    call.wanted = !call.status.ok() && call.unprocessed;
    any |= call.wanted;
  }
  if (any) waiter_.Clear(Waiter::kDone | Waiter::kInterrupted);
  retried_ = true;
  return any;
}

// Threads that call without being called spread over the lanes by their identity.
Context::Context(Deadline deadline)
    : deadline_(deadline),
      wait_hint_{.thread_index =
                     static_cast<uint32_t>(std::hash<std::thread::id>{}(std::this_thread::get_id()))} {}

void Context::Cancel() {
  if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
  MutexLock lock(mu_);
  if (waiting_ != nullptr) waiting_->Interrupt();
}

namespace internal {
namespace {

// Why a call that was cut short by its own side ended.
absl::Status Outcome(const Context& ctx, const Channel& channel, ClientCall& call) {
  if (!absl::IsCancelled(call.status) && !absl::IsDeadlineExceeded(call.status))
    return std::move(call.status);
  if (ctx.cancelled()) return absl::CancelledError("cancelled by the caller");
  if (ctx.deadline().Expired()) {
    return absl::DeadlineExceededError(Join("deadline exceeded while waiting for ", channel.target()));
  }
  return std::move(call.status);
}

absl::Status Parse(const std::string& bytes, MessageLite* reply) {
  if (reply->ParseFromString(bytes)) return absl::OkStatus();
  return absl::InternalError(Join("reply is no valid ", reply->GetTypeName()));
}

}  // namespace

void CallAll(Context& ctx, std::span<Channel* const> channels, std::string_view path,
             std::span<const MessageLite* const> requests, std::span<MessageLite* const> replies,
             std::span<absl::Status> statuses) {
  if (channels.empty()) return;
  absl::Status refused;
  if (ctx.cancelled()) refused = absl::CancelledError("cancelled by the caller");
  else if (ctx.deadline().Expired())
    refused = absl::DeadlineExceededError("deadline exceeded before the call");
  Client* const client = channels[0]->impl().client;
  for (Channel* channel : channels) {
    if (channel->impl().client != client)
      refused = absl::InvalidArgumentError("channels of one fan-out share a Client");
  }
  if (!refused.ok()) {
    for (absl::Status& status : statuses) status = refused;
    return;
  }
  Fanout fanout(ctx, client, channels.size());
  do {
    fanout.Run(channels, path, requests);
  } while (fanout.TakeRetry());  // once, for calls that no server has seen
  for (size_t i = 0; i < channels.size(); ++i) {
    ClientCall& call = fanout.call(i);
    statuses[i] = Outcome(ctx, *channels[i], call);
    if (statuses[i].ok()) statuses[i] = Parse(call.reply, replies[i]);
  }
}

}  // namespace internal

absl::Status Channel::Call(Context& ctx, std::string_view path, const MessageLite& request,
                           MessageLite* reply) {
  Channel* const self = this;
  const MessageLite* const in = &request;
  absl::Status status;
  internal::CallAll(ctx, {&self, 1}, path, {&in, 1}, {&reply, 1}, {&status, 1});
  return status;
}

}  // namespace curtail
