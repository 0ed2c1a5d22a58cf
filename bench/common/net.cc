// SPDX-License-Identifier: Apache-2.0
#include "bench/common/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

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

// A socket of `type`, connected, or about to be if it does not block.
absl::StatusOr<Fd> Dial(const std::string& address, int type) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("no address with a port: ", address));
  }
  Fd fd(socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return ErrnoStatus("socket");
  const sockaddr_in peer = Loopback(static_cast<uint16_t>(port));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0 && errno != EINPROGRESS)
    return ErrnoStatus("connect");
  NoDelay(fd.get());
  return fd;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ErrnoStatus(absl::string_view what) { return absl::ErrnoToStatus(errno, what); }

absl::StatusOr<Listener> Listen() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return ErrnoStatus("socket");
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, length) != 0) return ErrnoStatus("bind");
  if (listen(fd.get(), 4096) != 0) return ErrnoStatus("listen");
  if (getsockname(fd.get(), generic, &length) != 0) return ErrnoStatus("getsockname");
  return Listener{std::move(fd), absl::StrCat("127.0.0.1:", ntohs(address.sin_port))};
}

absl::StatusOr<Fd> Connect(const std::string& address) { return Dial(address, SOCK_STREAM); }

absl::StatusOr<Fd> BeginToConnect(const std::string& address) {
  return Dial(address, SOCK_STREAM | SOCK_NONBLOCK);
}

absl::StatusOr<Fd> Accept(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus("accept");
  NoDelay(fd.get());
  return fd;
}

absl::Status WriteFull(int fd, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return ErrnoStatus("send");
    if (n > 0) at += n, size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

size_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit all{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &all) == 0 ? all.rlim_cur : limit.rlim_cur;
}

}  // namespace curtail::bench
