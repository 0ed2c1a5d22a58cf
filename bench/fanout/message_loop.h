// SPDX-License-Identifier: Apache-2.0
//
// message_loop.h - one epoll loop over connections that carry Messages; what is sent in one turn leaves in
// one write.
//
// The raw-epoll servers and the generator for the raw stacks are handlers of this loop.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "message.h"
#include "net.h"

namespace curtail::bench {

// A MessageLoop belongs to one thread.
class MessageLoop {
 public:
  using ConnectionId = int;
  using OnMessage = std::function<void(ConnectionId, const Message&)>;

  explicit MessageLoop(OnMessage on_message);
  MessageLoop(const MessageLoop&) = delete;
  MessageLoop& operator=(const MessageLoop&) = delete;

  // Accepts all that comes on `listener`, which outlives the loop.
  absl::Status AddListener(int listener);
  absl::StatusOr<ConnectionId> AddConnection(Fd fd);

  // Queues a message; it leaves at the end of this turn, or with the next Turn() when called outside of one.
  void Send(ConnectionId connection, const Message& message);

  // Waits until `deadline` for something to happen, handles all that did, writes what was queued.
  absl::Status Turn(Deadline deadline);

 private:
  struct Connection {
    Fd fd;
    std::string in;
    std::string out;
    bool queued = false;          // is in dirty_
    bool waits_to_write = false;  // EPOLLOUT is armed
  };

  void AcceptOne();
  void ReadFrom(ConnectionId id);
  void Flush(ConnectionId id);
  void WatchWrites(Connection& connection, bool watch);
  void FlushDirty();

  const OnMessage on_message_;
  const Fd epoll_;
  int listener_ = -1;
  std::unordered_map<ConnectionId, Connection> connections_;
  std::vector<ConnectionId> dirty_;
};

}  // namespace curtail::bench
