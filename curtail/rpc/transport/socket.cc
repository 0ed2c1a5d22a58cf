// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iterator>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http_host.h"

namespace curtail::internal {
namespace {

constexpr int kBacklog = 4096;

// Removes a Unix socket that no server has open; leaves everything else alone. Never blocks.
void RemoveStaleSocket(const Address& address) {
  const char* path = reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path;
  struct stat info;
  if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe && connect(probe.get(), address.raw(), address.size) != 0 && errno == ECONNREFUSED) unlink(path);
}

absl::Status BindError(int error, const Address& address) {
  const std::string name = address.ToString();
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          Join(name, " is in use by another process; choose another address, or port 0 for any free port"));
    case EACCES:
      return absl::PermissionDeniedError(Join("may not listen on ", name, "; ports below 1024 need root"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(Join(name, " is not an address of this machine"));
    default:
      return absl::InvalidArgumentError(Join("cannot listen on ", name, ": ", std::strerror(error)));
  }
}

}  // namespace

absl::StatusOr<UniqueFd> Listen(const Address& address) {
  UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return absl::ErrnoToStatus(errno, "cannot create a socket");
  if (address.family() == AF_UNIX) {
    RemoveStaleSocket(address);
  } else {
    const int on = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (bind(fd.get(), address.raw(), address.size) != 0 || listen(fd.get(), kBacklog) != 0) {
    return BindError(errno, address);
  }
  return fd;
}

std::vector<std::string> OwnNames(const std::string& address) {
  std::vector<std::string> names;
  if (Address::NeedsLookup(address)) names.push_back(wire::HostName(address));
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0')
    names.push_back(wire::HostName(name.data()));
  return names;
}

std::string BoundAddress(int fd) {
  Address address;
  address.size = sizeof address.storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address.ToString();
}

size_t RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  rlimit all = limit;
  all.rlim_cur = all.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &all) == 0 ? all.rlim_cur : limit.rlim_cur;
}

absl::StatusOr<UniqueFd> StartConnect(const Address& address, bool* connected) {
  UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return absl::UnavailableError(Join("cannot create a socket: ", std::strerror(errno)));
  SetTcpOptions(fd.get());
  *connected = connect(fd.get(), address.raw(), address.size) == 0;
  // EAGAIN: the backlog of a Unix socket is full, which is a refusal like any other.
  if (!*connected && errno != EINPROGRESS) {
    return absl::UnavailableError(Join("cannot connect to ", address.ToString(), ": ", std::strerror(errno)));
  }
  return fd;
}

int ConnectError(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

bool StampArrivals(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 || family == AF_UNIX) return false;
  const int on = 1;
  return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0;
}

ssize_t ReceiveStamped(int fd, std::span<char> first, std::span<char> second, TimePoint* arrived) {
  iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(fd, &message, 0);
  *arrived = TimePoint();
  if (n <= 0) return n;
  const cmsghdr* const note = CMSG_FIRSTHDR(&message);
  if (note == nullptr || note->cmsg_level != SOL_SOCKET || note->cmsg_type != SCM_TIMESTAMPNS) return n;
  timespec then;
  std::memcpy(&then, CMSG_DATA(note), sizeof then);
  // The kernel notes the time of day, so its age counts.
  timespec time_of_day;
  clock_gettime(CLOCK_REALTIME, &time_of_day);
  const auto since_epoch = [](const timespec& t) {
    return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
  };
  *arrived = Now() - std::max(since_epoch(time_of_day) - since_epoch(then), Nanos::zero());
  return n;
}

void SetTcpOptions(int fd) {
  constexpr unsigned kVanishedMs = 20'000;
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) return;  // a Unix socket
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kVanishedMs, sizeof kVanishedMs);
}

}  // namespace curtail::internal
