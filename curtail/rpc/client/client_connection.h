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
#include "curtail/rpc/client/leaving_call.h"
#include "curtail/rpc/client/slot.h"
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
  bool committed = false;    // the head of its reply has come

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

// When a connection pings its server; off if `time` is zero.
struct Keepalive {
  Nanos time{0};
  Nanos timeout{0};
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(const wire::SessionOptions& options, UniqueFd fd, std::shared_ptr<Poller> poller,
                   bool connected, std::unique_ptr<TlsStream> tls, TimePoint give_up,
                   std::weak_ptr<Slot> slot, std::string target, std::shared_ptr<SharedBackend> shared,
                   Keepalive keepalive);

  // Posts the start of `call`. Follow with a kick, now or after more posts.
  void Begin(ClientCall& call) {
    if (shared_ != nullptr) shared_->outstanding.fetch_add(1, std::memory_order_relaxed);
    if (keepalive_.time > Nanos::zero() && look_at_.load(std::memory_order_relaxed) == kNever) [[unlikely]]
      LookAt(Now() + keepalive_.time);
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
  // When a thread that waits for its calls is to Look() at it: an attempt to connect may be given up, or the server be
  // silent for too long. Any thread.
  Deadline look_at() const {
    return standing_.load(std::memory_order_acquire)
               ? Deadline::At(TimePoint(Nanos(look_at_.load(std::memory_order_relaxed))))
               : Deadline::At(give_up_);
  }
  void Look();
  bool keeps_alive() const { return keepalive_.time > Nanos::zero(); }
  // Whether its server has ever answered a call. Any thread.
  bool greeted() const { return greeted_.load(std::memory_order_acquire); }

  // For event-driven use: whether calls were posted that no kick has followed. Owned by the polling thread.
  bool dirty = false;
  // ... and whether the client has seen to its connect_deadline().
  bool watched = false;

 private:
  static constexpr int64_t kNever = TimePoint::max().time_since_epoch().count();

  void LookAt(TimePoint when) { look_at_.store(when.time_since_epoch().count(), std::memory_order_relaxed); }
  void HandleOp(Op* op) override;
  void HandleClock(uint32_t bits) override;
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
  const Keepalive keepalive_;
  const std::shared_ptr<SharedBackend> shared_;  // null: the only server of its channel

  // Atomic. usable_ falls once (release, pairs with usable()); standing_ and greeted_ rise once; last_used_
  // is a hint.
  std::atomic<bool> usable_{true};
  std::atomic<bool> standing_;
  std::atomic<bool> greeted_{false};
  std::atomic<int64_t> last_used_{0};
  std::atomic<int64_t> look_at_{kNever};  // a hint, for keepalive

  // Owned by the strand's holder.
  uint64_t heard_ = 0;                  // session().inputs() at the last look
  TimePoint answer_by_;                 // of a PING, if nothing was heard since; else zero
  std::vector<ClientCall*> impatient_;  // streams begun before the transport stood
  absl::Status why_closed_;
  std::string goaway_why_;  // of a goodbye because of an error
};

}  // namespace curtail::internal
