// SPDX-License-Identifier: Apache-2.0
//
// client_call.h - a call on a connection, as its starter and the connection see it.
#pragma once

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/client/connection/outgoing_interception.h"
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
  void ResetOutcome() {
    status = absl::OkStatus();
    head.timeout.reset();
    EmptyForReuse(reply);
    metadata.Clear();
    arrived = TimePoint();
    unprocessed = committed = no_credit = open_ = replied_ = cancelling_ = has_credit_ = false;
    id_ = 0;
  }

  // Gives it what is left until `deadline` at `now`, before which it is sent.
  void SetTimeout(Deadline deadline, TimePoint now) {
    due = deadline.when();
    if (!deadline.infinite()) head.timeout = std::max(deadline.when() - now, Nanos(1));
  }

  // Set by the starter. Immutable while the call is in flight: other threads may copy the head for another attempt.
  wire::RequestHead head;
  // Set by the starter.
  std::string message;
  ClientOp start{ClientOp::Kind::kStart, this};
  ClientOp cancel{ClientOp::Kind::kCancel, this};
  ClientStreamEvents* stream = nullptr;  // null: unary
  bool whole_request = false;            // of a stream: `message` is all that it sends
  bool watch = false;                    // it is the connection's own, and counts for nothing
  TimePoint due = TimePoint::max();      // when its time is over
  TimePoint waits_since, leaves_by;      // with credits: since when, and until when it waits for one
  // The starter's own: the interceptors of its channel.
  OutgoingInterception leaving;

  // Set by the connection; the starter's from Finished() on.
  absl::Status status;
  std::string reply;
  ReplyMetadata metadata;
  bool unprocessed = false;  // the server has certainly not seen it: safe to send again
  bool committed = false;    // the head of its reply has come
  bool no_credit = false;    // it waited for a credit, and was not made
  TimePoint arrived;         // when the kernel had the reply; zero: not known

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
  bool has_credit_ = false;
};

}  // namespace curtail::internal
