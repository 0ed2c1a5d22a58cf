// SPDX-License-Identifier: Apache-2.0
//
// raw_epoll.cc - one thread, one epoll loop, requests pipelined on few connections: the limit for
// event-driven servers.

#include <algorithm>

#include "bench/common/net.h"
#include "bench/peers/frame_loop.h"
#include "bench/peers/stack.h"

namespace curtail::bench {
namespace {

// A request the mid-tier waits to complete; its index is the id of its leaf calls.
struct Pending {
  FrameLoop::ConnectionId caller = 0;
  uint32_t caller_frame = 0;
  size_t replies_missing = 0;
};

// The mid-tier: remembers the client of each request, and answers it with the last reply.
class Mid {
 public:
  absl::Status Serve(const std::vector<std::string>& leaves, const Ready& ready) {
    absl::StatusOr<Listener> listener = Listen();
    if (!listener.ok()) return listener.status();
    if (absl::Status added = loop_.AddListener(listener->fd.get()); !added.ok()) return added;
    for (const std::string& leaf : leaves) {
      absl::StatusOr<Fd> fd = Connect(leaf);
      if (!fd.ok()) return fd.status();
      absl::StatusOr<FrameLoop::ConnectionId> id = loop_.AddConnection(std::move(*fd));
      if (!id.ok()) return id.status();
      leaves_.push_back(*id);
    }
    ready(listener->address);
    while (true) {
      if (absl::Status turned = loop_.Turn(Deadline::Infinite()); !turned.ok()) return turned;
    }
  }

 private:
  void OnFrame(FrameLoop::ConnectionId from, std::string_view frame) {
    if (std::find(leaves_.begin(), leaves_.end(), from) != leaves_.end()) {
      OnReply(frame);
    } else {
      OnRequest(from, frame);
    }
  }

  void OnRequest(FrameLoop::ConnectionId from, std::string_view request) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(pending_.size()));
      pending_.emplace_back();
    }
    const uint32_t id = free_.back();
    free_.pop_back();
    pending_[id] = {from, FrameId(request), leaves_.size()};
    copy_ = request;
    SetFrameId(&copy_, id);
    for (FrameLoop::ConnectionId leaf : leaves_) loop_.Send(leaf, copy_);
  }

  void OnReply(std::string_view reply) {
    const uint32_t id = FrameId(reply);
    Pending& pending = pending_[id];
    if (--pending.replies_missing > 0) return;
    copy_ = reply;
    SetFrameId(&copy_, pending.caller_frame);
    loop_.Send(pending.caller, copy_);
    free_.push_back(id);
  }

  FrameLoop loop_{[this](FrameLoop::ConnectionId from, std::string_view frame) { OnFrame(from, frame); }};
  std::vector<FrameLoop::ConnectionId> leaves_;
  std::string copy_;  // of the frame in hand, with another id
  std::vector<Pending> pending_;
  std::vector<uint32_t> free_;
};

class RawEpoll final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    FrameLoop* self = nullptr;
    FrameLoop loop(
        [&self](FrameLoop::ConnectionId from, std::string_view frame) { self->Send(from, frame); });
    self = &loop;
    absl::StatusOr<Listener> listener = Listen();
    if (!listener.ok()) return listener.status();
    if (absl::Status added = loop.AddListener(listener->fd.get()); !added.ok()) return added;
    ready(listener->address);
    while (true) {
      if (absl::Status turned = loop.Turn(Deadline::Infinite()); !turned.ok()) return turned;
    }
  }

  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    return Mid().Serve(leaves, ready);
  }
};

}  // namespace

std::unique_ptr<Stack> MakeRawEpoll() { return std::make_unique<RawEpoll>(); }

}  // namespace curtail::bench
