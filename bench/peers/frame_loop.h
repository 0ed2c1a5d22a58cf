// SPDX-License-Identifier: Apache-2.0
//
// frame_loop.h - one epoll loop over connections that carry frames; what is sent in one turn leaves in one write.
//
// The raw-epoll servers and the generator for raw and Thrift stacks are handlers of this loop.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "bench/common/net.h"
#include "curtail/base/clock.h"
#include "frame.h"

namespace curtail::bench {

// A FrameLoop belongs to one thread.
class FrameLoop {
 public:
  using ConnectionId = int;
  // `frame` is whole, its length included, and valid until the function returns.
  using OnFrame = std::function<void(ConnectionId, std::string_view frame)>;

  explicit FrameLoop(OnFrame on_frame);
  FrameLoop(const FrameLoop&) = delete;
  FrameLoop& operator=(const FrameLoop&) = delete;

  // Accepts all that comes on `listener`, which outlives the loop.
  absl::Status AddListener(int listener);
  absl::StatusOr<ConnectionId> AddConnection(Fd fd);
  // How many connections the other side has closed, or broke the frames' form.
  size_t lost() const { return lost_; }

  // Queues a frame; it leaves at the end of this turn, or with the next Turn() when called outside of one.
  void Send(ConnectionId connection, std::string_view frame);

  // Waits until `deadline` for something to happen, handles all that did, writes what was queued.
  absl::Status Turn(Deadline deadline);

 private:
  struct Connection {
    Fd fd;
    std::string in;
    std::string out;
    size_t written = 0;           // of `out`
    bool queued = false;          // is in dirty_
    bool waits_to_write = false;  // EPOLLOUT is armed
  };

  void AcceptOne();
  void ReadFrom(ConnectionId id);
  // Hands on the whole frames; false when the connection has to go.
  bool Deliver(ConnectionId id, std::string* in);
  void Lose(ConnectionId id);
  void Flush(ConnectionId id);
  void WatchWrites(Connection& connection, bool watch);
  void FlushDirty();

  const OnFrame on_frame_;
  const Fd epoll_;
  int listener_ = -1;
  size_t lost_ = 0;
  std::unordered_map<ConnectionId, Connection> connections_;
  std::vector<ConnectionId> dirty_;
};

}  // namespace curtail::bench
