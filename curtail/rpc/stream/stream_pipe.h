// SPDX-License-Identifier: Apache-2.0
//
// stream_pipe.h - the messages of one stream, between the strand of its connection and the threads that read and
// write them. Either end; the protocol is at the top of stream_pipe.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/stream/held_messages.h"
#include "curtail/rpc/stream/message_queue.h"
#include "curtail/rpc/stream/stream_end.h"
#include "curtail/rpc/transport/connection.h"
#include "curtail/wire/session.h"

namespace curtail::internal {

// One thread, or fiber, may read while another writes.
class StreamPipe : public StreamEnd {
 public:
  // No more messages are written: SendEnd() follows when all have gone. Never waits.
  void EndWrites();

 protected:
  // `held`, unless it is null, counts the bytes that pipes hold.
  StreamPipe(Context& ctx, Lane* lane, std::atomic<int64_t>* held = nullptr)
      : StreamEnd(ctx, lane), in_(held), out_(held) {}
  ~StreamPipe() = default;

  // ----- The strand's holder calls these; `session` and `id` are of the stream. -----
  void OnMessage(std::string&& message, wire::Session& session, wire::StreamId id);
  // The peer sends no more.
  void OnPeerEnd();
  // The stream is over. `whole`: the messages that have come may still be read.
  void OnOver(absl::Status status, bool whole);
  // The turn that PostTurn() asked for; or (not `posted`) the session has room again.
  void Carry(wire::Session& session, wire::StreamId id, bool posted);

  // Where messages leave.
  struct Outlet {
    Connection& connection;
    HeldMessages& held;
  };
  virtual Outlet outlet() = 0;
  // Queues a call of Carry() on the connection, whose turn comes with the next kick. Any thread; the mutex is held.
  virtual void PostTurn() = 0;
  // The strand's holder: what goes out behind the last message. The mutex is held.
  virtual void SendEnd(wire::Session& session, wire::StreamId id) = 0;
  // Ahead of what goes out, if there is a head to be sent. The mutex is held.
  virtual void SendHead(wire::Session&, wire::StreamId) {}

  // StreamEnd; reads and writes.
  bool Try(StreamStep& step) override CURTAIL_REQUIRES(mu_);
  void Settle(const StreamStep& step) override;
  void BeforeSleep() override;

  // Carry() is to look at what has changed. True: the caller owes a kick, without the mutex. See P3.
  bool Post() CURTAIL_REQUIRES(mu_) {
    if (over_ || pending_) return false;
    if (!std::exchange(posted_, true)) PostTurn();
    return true;
  }
  // Has the connection act on what was posted.
  void Kick();
  // The connection does so later; or false.
  static bool Hold(const Outlet& out, TimePoint now);
  // Drops what has come and what comes. `credit`: the peer may send it all the same.
  void Discard(bool credit) CURTAIL_REQUIRES(mu_);

  bool over_ CURTAIL_GUARDED_BY(mu_) = false;    // the session knows the stream no more
  bool posted_ CURTAIL_GUARDED_BY(mu_) = false;  // Carry() is on its way
  // Client: it waits for a connection. What is written stays in its queue until then, when the owner posts.
  bool pending_ CURTAIL_GUARDED_BY(mu_) = false;

 private:
  // The debt of a step (StreamStep::owed): a kick; or that a message leaves by P7, for which (kFirst) nothing was posted
  // before, or (kFull) there is enough.
  enum Owed : uint8_t { kKick = 1, kMessage = 2, kFirst = 4, kFull = 8 };

  bool TryRead(StreamStep& step) CURTAIL_REQUIRES(mu_);
  bool TryWrite(StreamStep& step) CURTAIL_REQUIRES(mu_);
  void Send(wire::Session& session, wire::StreamId id) CURTAIL_REQUIRES(mu_);

  MessageQueue in_ CURTAIL_GUARDED_BY(mu_);
  bool peer_ended_ CURTAIL_GUARDED_BY(mu_) = false;
  bool held_ CURTAIL_GUARDED_BY(mu_) = false;      // the session gives the peer no credit
  bool resume_ CURTAIL_GUARDED_BY(mu_) = false;    // ... which the next Carry() ends
  bool discards_ CURTAIL_GUARDED_BY(mu_) = false;  // what comes is not read
  MessageQueue out_ CURTAIL_GUARDED_BY(mu_);
  bool writes_ended_ CURTAIL_GUARDED_BY(mu_) = false;
  bool end_sent_ CURTAIL_GUARDED_BY(mu_) = false;
  std::string scratch_ CURTAIL_GUARDED_BY(mu_);  // a short message on its way to the session
};

}  // namespace curtail::internal
