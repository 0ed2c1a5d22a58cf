// SPDX-License-Identifier: Apache-2.0
//
// connection.h - one connection to memcached, on which a handler waits as its threading model waits.
//
// On a fiber the wait is the fiber's: the socket is registered with the poller of the fiber's thread, which
// goes on with other requests. Elsewhere the thread sleeps in poll(2), which is a system call that blocks
// like those of a synchronous fan-out and is counted as one. Either way it ends at the deadline.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/router/codec.h"
#include "curtail/base/clock.h"
#include "curtail/exec/poller.h"

namespace curtail::router {

// Where a memcached listens. A value type.
struct Address {
  // "unix:PATH" or "HOST:PORT" ("[HOST]:PORT"). A name is looked up now, once, and all its addresses
  // are kept. Errors: INVALID_ARGUMENT.
  [[nodiscard]] static absl::StatusOr<Address> Parse(const std::string& text);

  struct Socket {
    sockaddr_storage address = {};
    socklen_t size = 0;
  };
  std::string text;
  std::vector<Socket> sockets;  // at least one, unless default-constructed
};

// A Connection is for one request at a time. If it has a poller, for fibers of that poller's thread only.
class Connection {
 public:
  // What became of it by an exchange.
  enum class State {
    kUsable,      // answered
    kBroken,      // memcached closed it or spoke nonsense, or the deadline passed before all was sent
    kUnanswered,  // all was sent, and the deadline passed before the answer: it may still be carried out
  };
  struct Outcome {
    absl::Status status;  // OK if and only if there is an answer
    State state;
    bool closed = false;  // by memcached: it has ended, or closed this one only
  };

  // Connects to one of the addresses, tried in their order. REQUIRES: there is one. `poller` null: for
  // threads. Errors: UNAVAILABLE with the reason of the last one, DEADLINE_EXCEEDED.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Connection>> Open(const Address& address,
                                                                        std::shared_ptr<Poller> poller,
                                                                        Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends head, body and tail in as few calls as go, and waits for the answer, whose views hold until the
  // next use. REQUIRES: usable.
  [[nodiscard]] Outcome Exchange(std::string_view head, std::string_view body, std::string_view tail,
                                 Deadline deadline, Answer* answer);
  // Of an unanswered one: whether memcached has answered meanwhile, or closed it, so that nothing that was
  // sent can still be carried out. Never blocks; on any thread.
  bool Resolved();

 private:
  struct Events;
  Connection(int fd, std::string peer, std::shared_ptr<Poller> poller);

  absl::Status Connect(const Address::Socket& to, Deadline deadline);
  Outcome SendAll(std::string_view head, std::string_view body, std::string_view tail, Deadline deadline);
  Outcome ReceiveAnswer(uint32_t ticket, Deadline deadline, Answer* answer);
  // Reads once; more than 0: bytes, 0: closed, -1: none now or an error (errno).
  ssize_t ReadSome();
  void Reserve(size_t bytes);
  // For Wait(): to be taken before looking at the socket.
  uint32_t Ticket() const;
  // Waits for POLL* `events`, or less; false at the deadline.
  bool Wait(short events, uint32_t ticket, Deadline deadline);
  Outcome Late(State state) const;
  Outcome Nonsense(std::string_view what) const;
  Outcome Closed(std::string_view what) const;

  // Immutable after construction.
  const int fd_;
  const std::string peer_;
  const std::shared_ptr<Poller> poller_;
  const std::shared_ptr<Events> events_;

  // Owned by the request that uses it.
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t filled_ = 0;
};

}  // namespace curtail::router
