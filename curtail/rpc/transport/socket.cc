// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr int kBacklog = 4096;

absl::Status BadAddress(std::string_view text) {
  return absl::InvalidArgumentError(
      Join("address \"", text, "\": write HOST:PORT, [IPV6]:PORT or unix:PATH, for example 127.0.0.1:8080"));
}

absl::StatusOr<std::vector<Address>> UnixAddress(std::string_view path) {
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.empty() || path.size() >= sizeof un->sun_path) {
    return absl::InvalidArgumentError(
        Join("unix socket path \"", path, "\": must have 1 to ", sizeof un->sun_path - 1, " characters"));
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return std::vector<Address>{address};
}

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

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

absl::StatusOr<std::vector<Address>> Address::ResolveAll(std::string_view text) {
  if (text.starts_with("unix:")) return UnixAddress(text.substr(5));
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return BadAddress(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return BadAddress(text);
  }
  uint16_t number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, wrong] = std::from_chars(port.data(), end, number);
  if (host.empty() || wrong != std::errc() || stop != end) {
    return BadAddress(text);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(std::string(host).c_str(), std::string(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(Join("cannot resolve \"", host, "\": ", gai_strerror(error)));
  }
  std::vector<Address> addresses;
  // IPv4 first: "localhost" is both, and most servers there listen on 127.0.0.1 only.
  for (const bool ipv4 : {true, false}) {
    for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
      if ((info->ai_family == AF_INET) != ipv4) continue;
      addresses.emplace_back();
      std::memcpy(&addresses.back().storage, info->ai_addr, info->ai_addrlen);
      addresses.back().size = info->ai_addrlen;
    }
  }
  freeaddrinfo(found);
  return addresses;
}

absl::StatusOr<Address> Address::Resolve(std::string_view text) {
  absl::StatusOr<std::vector<Address>> all = ResolveAll(text);
  if (!all.ok()) return all.status();
  return all->front();
}

std::string Address::ToString() const {
  if (family() == AF_UNIX) {
    return Join("unix:", reinterpret_cast<const sockaddr_un*>(&storage)->sun_path);
  }
  char host[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    return Join(host, ":", ntohs(in->sin_port));
  }
  if (family() == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
    return Join("[", host, "]:", ntohs(in->sin6_port));
  }
  return "?";
}

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

std::string BoundAddress(int fd) {
  Address address;
  address.size = sizeof address.storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address.ToString();
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

void SetTcpOptions(int fd) {
  constexpr unsigned kVanishedMs = 20'000;
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) return;  // a Unix socket
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kVanishedMs, sizeof kVanishedMs);
}

}  // namespace curtail::internal
