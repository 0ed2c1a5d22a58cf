// SPDX-License-Identifier: Apache-2.0
//
// raw_epoll.cc - one thread, one epoll loop, requests pipelined on few connections: the limit for
// event-driven servers.

#include <algorithm>

#include "message_loop.h"
#include "net.h"
#include "stack.h"

namespace curtail::bench {
namespace {

// A request the mid-tier waits to complete; its index is the id of its leaf calls.
struct Pending {
  MessageLoop::ConnectionId caller = 0;
  uint32_t caller_message = 0;
  size_t replies_missing = 0;
};

// The mid-tier: remembers who asked, and answers with the last reply.
class Mid {
 public:
  absl::Status Serve(const std::vector<std::string>& leaves, const Ready& ready) {
    absl::StatusOr<Listener> listener = Listen();
    if (!listener.ok()) return listener.status();
    if (absl::Status added = loop_.AddListener(listener->fd.get()); !added.ok()) return added;
    for (const std::string& leaf : leaves) {
      absl::StatusOr<Fd> fd = Connect(leaf);
      if (!fd.ok()) return fd.status();
      absl::StatusOr<MessageLoop::ConnectionId> id = loop_.AddConnection(std::move(*fd));
      if (!id.ok()) return id.status();
      leaves_.push_back(*id);
    }
    ready(listener->address);
    while (true) {
      if (absl::Status turned = loop_.Turn(Deadline::Infinite()); !turned.ok()) return turned;
    }
  }

 private:
  void OnMessage(MessageLoop::ConnectionId from, const Message& message) {
    if (std::find(leaves_.begin(), leaves_.end(), from) != leaves_.end()) {
      OnReply(message);
    } else {
      OnRequest(from, message);
    }
  }

  void OnRequest(MessageLoop::ConnectionId from, const Message& request) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(pending_.size()));
      pending_.emplace_back();
    }
    Message call = request;
    call.id = free_.back();
    free_.pop_back();
    pending_[call.id] = {from, request.id, leaves_.size()};
    for (MessageLoop::ConnectionId leaf : leaves_) loop_.Send(leaf, call);
  }

  void OnReply(const Message& reply) {
    Pending& pending = pending_[reply.id];
    if (--pending.replies_missing > 0) return;
    Message answer = reply;
    answer.id = pending.caller_message;
    loop_.Send(pending.caller, answer);
    free_.push_back(reply.id);
  }

  MessageLoop loop_{
      [this](MessageLoop::ConnectionId from, const Message& message) { OnMessage(from, message); }};
  std::vector<MessageLoop::ConnectionId> leaves_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> free_;
};

class RawEpoll final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    MessageLoop* self = nullptr;
    MessageLoop loop(
        [&self](MessageLoop::ConnectionId from, const Message& message) { self->Send(from, message); });
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
