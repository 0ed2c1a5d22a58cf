// SPDX-License-Identifier: Apache-2.0
//
// raw_threads.cc - a thread a connection, blocking sockets: the simplest server there is, and the limit for a
// thread that waits for its replies. Each connection of the mid-tier has a connection of its own to every
// leaf, made with its first request.

#include <sys/socket.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "bench/common/net.h"
#include "bench/peers/frame.h"
#include "bench/peers/stack.h"

namespace curtail::bench {
namespace {

// Accepts for ever; `serve` runs on a thread of its own, which ends with the connection.
absl::Status ServeConnections(const Ready& ready, const std::function<void(Fd)>& serve) {
  absl::StatusOr<Listener> listener = Listen();
  if (!listener.ok()) return listener.status();
  ready(listener->address);
  while (true) {
    absl::StatusOr<Fd> fd = Accept(listener->fd.get());
    if (!fd.ok()) return fd.status();
    std::thread([serve, fd = std::move(*fd)]() mutable { serve(std::move(fd)); }).detach();
  }
}

// One side of a conversation in which one frame at a time is under way: a frame that comes in one piece costs one
// read.
class FrameSocket {
 public:
  explicit FrameSocket(Fd fd) : fd_(std::move(fd)), buffer_(kFirstBytes, 0) {}

  // The next frame, valid until the next call; empty when the connection has ended.
  std::string_view Read() {
    size_t have = 0;
    size_t want = kFrameHeaderBytes;
    while (have < want) {
      const ssize_t n = recv(fd_.get(), buffer_.data() + have, buffer_.size() - have, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return {};
      have += static_cast<size_t>(n);
      if (have < kFrameHeaderBytes) continue;
      want = FrameBytes(buffer_.data());
      if (want > kMaxFrameBytes) return {};
      if (want > buffer_.size()) buffer_.resize(want);
    }
    return have == want ? std::string_view(buffer_).substr(0, want) : std::string_view();
  }
  bool Write(std::string_view frame) { return WriteFull(fd_.get(), frame.data(), frame.size()).ok(); }

 private:
  static constexpr size_t kFirstBytes = 4096;
  Fd fd_;
  std::string buffer_;
};

void EchoUntilClosed(Fd fd) {
  FrameSocket caller(std::move(fd));
  while (true) {
    const std::string_view frame = caller.Read();
    if (frame.empty() || !caller.Write(frame)) return;
  }
}

bool ConnectAll(const std::vector<std::string>& addresses, std::vector<FrameSocket>* leaves) {
  for (const std::string& address : addresses) {
    absl::StatusOr<Fd> leaf = Connect(address);
    if (!leaf.ok()) return false;
    leaves->emplace_back(std::move(*leaf));
  }
  return true;
}

void FanOutUntilClosed(Fd fd, const std::vector<std::string>& addresses) {
  FrameSocket caller(std::move(fd));
  std::vector<FrameSocket> leaves;
  leaves.reserve(addresses.size());
  while (true) {
    const std::string_view request = caller.Read();
    if (request.empty() || (leaves.empty() && !ConnectAll(addresses, &leaves))) return;
    for (FrameSocket& leaf : leaves) {
      if (!leaf.Write(request)) return;
    }
    std::string_view reply;
    for (FrameSocket& leaf : leaves) {
      reply = leaf.Read();
      if (reply.empty()) return;
    }
    if (!caller.Write(reply)) return;
  }
}

class RawThreads final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    return ServeConnections(ready, [](Fd caller) { EchoUntilClosed(std::move(caller)); });
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    return ServeConnections(ready, [leaves](Fd caller) { FanOutUntilClosed(std::move(caller), leaves); });
  }
};

}  // namespace

std::unique_ptr<Stack> MakeRawThreads() { return std::make_unique<RawThreads>(); }

}  // namespace curtail::bench
