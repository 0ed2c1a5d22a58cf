// SPDX-License-Identifier: Apache-2.0
#include "net.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>

namespace curtail::bench {
bool IsEnd(const absl::Status& status) { return absl::IsOutOfRange(status); }

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
