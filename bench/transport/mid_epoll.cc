// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A turn is what a turn of curtail's in-line models is: wait, receive on each connection that is
// readable, then one send for each connection that has output. The interest set and the rule that a short
// read has emptied the socket are those of curtail/exec/poller.cc and curtail/rpc/transport/connection.cc.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "mid.h"
#include "sender.h"

namespace curtail::bench {
namespace {

constexpr int kBlockedTimeoutMs = 10'000;

// One send a connection.
class PlainSender final : public Sender {
 public:
  absl::Status SendAll(const Sockets& sockets, Router& router, Kernel& kernel) override {
    for (size_t i = 0; i < kConnections; ++i) {
      std::string& out = router.out(i);
      if (absl::Status sent = SendOne(sockets[i], out, kernel); !sent.ok()) return sent;
      out.clear();
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status SendOne(int fd, const std::string& out, Kernel& kernel) {
    for (size_t at = 0; at < out.size();) {
      const ssize_t n = kernel.Send(fd, out.data() + at, out.size() - at, MSG_DONTWAIT);
      if (n >= 0) {
        at += static_cast<size_t>(n);
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return ErrnoStatus("send");
      // Not with messages this small; but a server that lost bytes would be no server.
      pollfd writable{.fd = fd, .events = POLLOUT};
      if (poll(&writable, 1, kBlockedTimeoutMs) <= 0)
        return absl::DeadlineExceededError("a peer takes no bytes");
    }
    return absl::OkStatus();
  }
};

class EpollMid final : public Mid {
 public:
  explicit EpollMid(const EpollOptions& options) : options_(options) {}

  absl::Status Serve(const Sockets& sockets, Kernel kernel) override {
    if (absl::Status watched = Watch(sockets); !watched.ok()) return watched;
    std::array<epoll_event, 64> events;
    while (true) {
      if (options_.yield && router_.missing_replies() > 0) kernel.Yield();
      const int n = kernel.EpollWait(epoll_.get(), events.data(), events.size());
      if (n < 0 && errno != EINTR) return ErrnoStatus("epoll_wait");
      for (int i = 0; i < n; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        if ((event.events & ~static_cast<uint32_t>(EPOLLOUT)) == 0) continue;
        const size_t connection = event.data.u32;
        absl::Status received = Receive(sockets[connection], connection, kernel);
        if (!received.ok()) return received;
      }
      if (absl::Status sent = sender_->SendAll(sockets, router_, kernel); !sent.ok()) return sent;
    }
  }

 private:
  absl::Status Watch(const Sockets& sockets) {
    if (options_.sends_in_a_ring) {
      absl::StatusOr<std::unique_ptr<Sender>> sender = MakeRingSender(sockets);
      if (!sender.ok()) return sender.status();
      sender_ = std::move(*sender);
    }
    const uint32_t edge = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    for (size_t i = 0; i < kConnections; ++i) {
      const int busy = options_.busy_poll_us;
      if (busy > 0 && setsockopt(sockets[i], SOL_SOCKET, SO_BUSY_POLL, &busy, sizeof(busy)) != 0) {
        return ErrnoStatus("SO_BUSY_POLL");
      }
      epoll_event event{.events = options_.edge_triggered ? edge : uint32_t{EPOLLIN},
                        .data = {.u32 = static_cast<uint32_t>(i)}};
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sockets[i], &event) != 0) return ErrnoStatus("epoll_ctl");
    }
    return absl::OkStatus();
  }

  absl::Status Receive(int fd, size_t connection, Kernel& kernel) {
    static thread_local std::array<char, 64 << 10> buffer;
    while (true) {
      const ssize_t n = kernel.Recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) return absl::OutOfRangeError("closed by the peer");
      if (n < 0 && errno == EAGAIN) return absl::OkStatus();
      if (n < 0 && errno != EINTR) return ErrnoStatus("recv");
      if (n < 0) continue;
      absl::Status routed = router_.Receive(connection, buffer.data(), static_cast<size_t>(n));
      if (!routed.ok() || static_cast<size_t>(n) < buffer.size()) return routed;
    }
  }

  const EpollOptions options_;
  const Fd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  Router router_;
  std::unique_ptr<Sender> sender_ = std::make_unique<PlainSender>();
};

}  // namespace

std::unique_ptr<Mid> MakeEpollMid(const EpollOptions& options) { return std::make_unique<EpollMid>(options); }

}  // namespace curtail::bench
