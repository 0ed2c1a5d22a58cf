// SPDX-License-Identifier: Apache-2.0
//
// stream_world.h - the surroundings of a stream under the model scheduler: a connection, its session, and the peer.
//
// The connection is the real one, with its strand and its turns. Its session is a stand-in of two windows that are
// counted in messages. The peer is the program: its threads send, take, end and reset.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/stream/held_messages.h"
#include "curtail/rpc/transport/connection.h"
#include "curtail/wire/session.h"

namespace curtail::model {

inline constexpr size_t kSmall = 10;
inline constexpr size_t kLong = 70u << 10;    // one alone fills what a writer may have queued
inline constexpr size_t kHuge = 270u << 10;   // one alone is more than a reader may leave unread
inline constexpr wire::StreamId kStream = 1;  // the only one

// Message number `n` of a direction.
inline std::string Numbered(int n, size_t bytes) {
  std::string message(bytes, '.');
  message[0] = static_cast<char>('0' + n);
  return message;
}

// A Link is a connection with one stream, and the peer of that.
class Link final : public internal::Connection {
 public:
  // One end of the stream, which the session knows.
  class User {
   public:
    virtual void Come(std::string&& message, wire::Session& session) = 0;
    virtual void PeerEnded() = 0;
    virtual void Room(wire::Session& session) = 0;
    virtual void Over(absl::Status status) = 0;

   protected:
    ~User() = default;
  };
  // An operation of such an end.
  struct Work : internal::Op {
    virtual void Do(wire::Session& session) = 0;

   protected:
    ~Work() = default;
  };

  // `window`: the messages that the peer may send ahead. Without `poller` the peer's threads handle the events.
  Link(wire::Role role, int window, std::shared_ptr<Poller> poller = nullptr);
  void Open(User* user) { user_ = user; }

  // The peer. Any thread.
  void Send(size_t bytes);  // waits for the window
  void EndMessages() { Arrive({Act::kEnd}); }
  void Take(int messages) { Arrive({Act::kTake, static_cast<size_t>(messages)}); }
  void Reset() { Arrive({Act::kReset}); }
  void WaitUntilTaken(int messages);
  void WaitForEnd();
  bool opened() const { return user_ != nullptr; }
  int taken() const { return taken_; }
  bool ended() const { return ended_; }

 private:
  friend class wire::Session;
  struct Act {
    enum Kind { kMessage, kEnd, kTake, kReset } kind;
    size_t size = 0;
  };

  Link(wire::Role role, int window, int socket, bool polled, std::shared_ptr<Poller> poller);
  static Link& Of(wire::Events* events) { return static_cast<Link&>(*events); }
  void Arrive(Act act);
  // The session.
  void Receive();
  void Queue(std::string&& message);
  void QueueEnd();
  void Pull();
  void SetReading(bool reading);
  void End(absl::Status status);

  // Connection.
  void HandleOp(internal::Op* op) override { static_cast<Work*>(op)->Do(session()); }
  void HandleGoodbye(uint32_t) override {}
  void OnClosed(const absl::Status&, bool) override {}
  void OnMessage(wire::StreamId, void*, std::string&&) override {}
  void OnCallEnd(wire::StreamId, void*, absl::Status&&, wire::Metadata&&) override {}

  const int socket_;
  const wire::Role role_;
  const bool polled_;
  User* user_ = nullptr;

  // On their way from the peer.
  std::deque<Act> acts_;
  int sent_ = 0;      // by the peer
  int window_;        // ... may send so many more
  int withheld_ = 0;  // ... and these when the reader goes on
  bool reading_ = true;
  // On their way to the peer.
  std::deque<std::string> queue_;
  size_t queued_ = 0;
  int room_ = 0;   // the peer takes so many more
  int taken_ = 0;  // by the peer
  bool end_queued_ = false;
  bool ended_ = false;  // ... as the peer has seen
  bool over_ = false;
};

// The context, the connection and the held messages of one stream.
struct World {
  // Without `holds`, no message waits for others.
  World(wire::Role role, int window, Deadline deadline = Deadline::Infinite(), bool holds = false,
        std::shared_ptr<Poller> poller = nullptr);

  Context ctx;
  internal::HeldMessages held;
  const std::shared_ptr<Link> link;
  int released = 0;
};

}  // namespace curtail::model
