// SPDX-License-Identifier: Apache-2.0
//
// client_connection.h - the client's end of a connection, and a call on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/client/backoff.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/leaving_call.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail::internal {

class ClientCall;

// A request is longer than its context allows (Context::SetMaxRequestBytes).
absl::Status TooLong(size_t bytes, size_t limit);

// The things a connection is asked to do with a call.
struct ClientOp final : Op {
  enum class Kind { kStart, kCancel, kTurn };
  ClientOp(Kind k, ClientCall* c) : kind(k), call(c) {}
  const Kind kind;
  ClientCall* const call;
};

// A call of many messages hears of them; all on the strand.
class ClientStreamEvents {
 public:
  // The transport stands, so that what is written goes out at once. Once, unless the call ends before.
  virtual void OnStanding() = 0;
  // The initial metadata of the reply has come; it does not change any more.
  virtual void OnHead() = 0;
  virtual void OnMessage(std::string&& message, wire::Session& session, wire::StreamId id) = 0;
  // Its kTurn operation was posted, or (not `posted`) the session has room for messages again.
  virtual void OnTurn(wire::Session& session, wire::StreamId id, bool posted) = 0;

 protected:
  ~ClientStreamEvents() = default;
};

// A ClientCall is one call on one connection. Its starter fills in the request and posts `start`; the
// connection fills in the result and calls Finished(). If it was posted, `cancel` is answered by
// CancelHandled(), after Finished().
class ClientCall {
 public:
  ClientCall() = default;
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  // Attempts at one call that its server may refuse unseen. A server that refuses more than that will refuse the next.
  static constexpr int kMaxAttempts = 5;

  // Makes the object ready for another call.
  void Reset();
  // Makes it ready for another attempt at the same call.
  void ResetOutcome();

  // Gives it what is left until `deadline` at `now`, before which it is sent.
  void SetTimeout(Deadline deadline, TimePoint now) {
    if (!deadline.infinite()) head.timeout = std::max(deadline.when() - now, Nanos(1));
  }

  // Set by the starter.
  wire::RequestHead head;
  std::string message;
  ClientOp start{ClientOp::Kind::kStart, this};
  ClientOp cancel{ClientOp::Kind::kCancel, this};
  ClientStreamEvents* stream = nullptr;  // null: unary
  // The starter's own: the interceptors of its channel.
  LeavingCall leaving;

  // Set by the connection; the starter's from Finished() on.
  absl::Status status;
  std::string reply;
  ReplyMetadata metadata;
  bool unprocessed = false;  // the server has certainly not seen it: safe to send again

 protected:
  ~ClientCall() = default;
  // The call is over. The connection touches it no more, except for CancelHandled().
  virtual void Finished() = 0;
  virtual void CancelHandled() = 0;

 private:
  friend class ClientConnection;
  // Owned by the strand's holder.
  wire::StreamId id_ = 0;
  bool open_ = false;
  bool replied_ = false;
  bool cancelling_ = false;
};

class ClientConnection;

// A SharedBackend is one of several servers of a channel, as its connections see it: they count its calls and tell of
// failures. Thread-safe.
class SharedBackend : public Backend {
 public:
  using Backend::Backend;
  virtual ~SharedBackend() = default;
  // A connection is gone, or its server said goodbye: it is time to look the addresses up again. Never blocks.
  virtual void Lost() = 0;
  // A connection could not be made. Never blocks.
  virtual void Unreachable() = 0;
  // It is in backoff until `until`, at least.
  void Down(TimePoint until);
};

// A copy that shares no memory with `status`: threads that keep statuses for each other keep such ones, because
// ThreadSanitizer does not see how Abseil counts their owners.
inline absl::Status Apart(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

// A Slot is a place for one connection of a subchannel; it outlives the connections that fill it and times their
// attempts.
struct Slot {
  // Empties it, and kicks the connection that it held with `bits`.
  void Release(uint32_t bits);
  // An attempt to connect has failed. Returns the error. `shared` may be null.
  absl::Status Failed(const absl::Status& why, SharedBackend* shared) CURTAIL_REQUIRES(mu);

  Mutex mu;
  std::shared_ptr<ClientConnection> connection CURTAIL_GUARDED_BY(mu);
  TimePoint next_attempt CURTAIL_GUARDED_BY(mu);
  Backoff backoff CURTAIL_GUARDED_BY(mu);
  absl::Status last_error CURTAIL_GUARDED_BY(mu);
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(const wire::SessionOptions& options, UniqueFd fd, std::shared_ptr<Poller> poller,
                   bool connected, std::unique_ptr<TlsStream> tls, TimePoint give_up,
                   std::weak_ptr<Slot> slot, std::string target, std::shared_ptr<SharedBackend> shared);

  // Posts the start of `call`. Follow with a kick, now or after more posts.
  void Begin(ClientCall& call) {
    if (shared_ != nullptr) shared_->outstanding.fetch_add(1, std::memory_order_relaxed);
    Post(&call.start);
  }

  // Whether new calls may be posted with some hope. Any thread.
  bool usable() const { return usable_.load(std::memory_order_acquire); }
  // When a call was last posted. Any thread; approximate.
  TimePoint last_used() const { return TimePoint(Nanos(last_used_.load(std::memory_order_relaxed))); }
  void Touch(TimePoint now) { last_used_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
  // When an attempt to connect (TLS handshake included) that is still under way is to be given up; infinite once
  // the connection stands. Any thread.
  Deadline connect_deadline() const {
    return standing_.load(std::memory_order_acquire) ? Deadline::Infinite() : Deadline::At(give_up_);
  }
  // Whether its server has ever answered a call. Any thread.
  bool greeted() const { return greeted_.load(std::memory_order_acquire); }

  // For event-driven use: whether calls were posted that no kick has followed. Owned by the polling thread.
  bool dirty = false;
  // ... and whether the client has seen to its connect_deadline().
  bool watched = false;

 private:
  void HandleOp(Op* op) override;
  void HandleGoodbye(uint32_t bits) override;
  void OnConnected() override;
  void OnClosed(const absl::Status& why, bool connected) override;
  void OnResponseHead(wire::StreamId id, void* tag, wire::Metadata&& metadata) override;
  void OnMessage(wire::StreamId id, void* tag, std::string&& message) override;
  void OnWritable(wire::StreamId id, void* tag) override;
  void OnCallUnprocessed(wire::StreamId id, void* tag, std::string&& message) override;
  void OnCallEnd(wire::StreamId id, void* tag, absl::Status&& status, wire::Metadata&& trailing) override;
  void OnGoaway(wire::StreamId last, std::string_view why) override;
  void Start(ClientCall& call);
  // The end of a call that Begin() began; the last touch of it.
  void Finish(ClientCall& call) {
    if (shared_ != nullptr) shared_->outstanding.fetch_sub(1, std::memory_order_relaxed);
    call.Finished();
  }

  // Immutable after construction.
  const TimePoint give_up_;
  const std::weak_ptr<Slot> slot_;
  const std::string target_;
  const std::shared_ptr<SharedBackend> shared_;  // null: the only server of its channel

  // Atomic. usable_ falls once (release, pairs with usable()); standing_ and greeted_ rise once; last_used_
  // is a hint.
  std::atomic<bool> usable_{true};
  std::atomic<bool> standing_;
  std::atomic<bool> greeted_{false};
  std::atomic<int64_t> last_used_{0};

  // Owned by the strand's holder.
  std::vector<ClientCall*> impatient_;  // streams begun before the transport stood
  absl::Status why_closed_;
  std::string goaway_why_;  // of a goodbye because of an error
};

}  // namespace curtail::internal
