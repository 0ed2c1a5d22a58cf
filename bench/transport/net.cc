// SPDX-License-Identifier: Apache-2.0
#include "net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace curtail::bench {
namespace {

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ErrnoStatus(const char* what) { return absl::ErrnoToStatus(errno, what); }

bool IsEnd(const absl::Status& status) { return absl::IsOutOfRange(status); }

absl::StatusOr<Listener> Listen() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return ErrnoStatus("socket");
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, length) != 0) return ErrnoStatus("bind");
  if (listen(fd.get(), 1024) != 0) return ErrnoStatus("listen");
  if (getsockname(fd.get(), generic, &length) != 0) return ErrnoStatus("getsockname");
  return Listener{std::move(fd), ntohs(address.sin_port)};
}

absl::StatusOr<Fd> Connect(uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return ErrnoStatus("socket");
  const sockaddr_in peer = Loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0)
    return ErrnoStatus("connect");
  NoDelay(fd.get());
  return fd;
}

absl::StatusOr<Fd> Accept(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus("accept");
  NoDelay(fd.get());
  return fd;
}

void SetNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

ssize_t Kernel::Send(int fd, const void* data, size_t size, int flags) {
  counters_.Called();
  return send(fd, data, size, flags | MSG_NOSIGNAL);
}

ssize_t Kernel::Recv(int fd, void* data, size_t size, int flags) {
  counters_.Called();
  return recv(fd, data, size, flags);
}

void Kernel::Yield() {
  counters_.Called();
  sched_yield();
}

int Kernel::EpollWait(int epoll, epoll_event* events, int max) {
  counters_.Called();
  return epoll_wait(epoll, events, max, -1);
}

absl::Status Kernel::SendAll(int fd, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = Send(fd, at, size);
    if (n < 0 && errno != EINTR) return ErrnoStatus("send");
    if (n > 0) at += n, size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status Kernel::RecvAll(int fd, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = Recv(fd, at, size);
    if (n == 0) return absl::OutOfRangeError("closed by the peer");
    if (n < 0 && errno == ECONNRESET) return absl::OutOfRangeError("reset by the peer");
    if (n < 0 && errno != EINTR) return ErrnoStatus("recv");
    if (n > 0) at += n, size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace curtail::bench
