// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kAbstract = "unix-abstract:";

absl::Status BadAddress(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      Join("address \"", text, "\" ", why,
           "; write HOST:PORT, [IPV6]:PORT or unix:PATH, for example 127.0.0.1:8080"));
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The error for `text`, which has no colon.
absl::Status NoPort(std::string_view text) {
  if (!IsNumber(text)) return BadAddress(text, "has no port");
  return absl::InvalidArgumentError(Join("address \"", text, "\" has no host; write 127.0.0.1:", text));
}

// The error for `port`, which is not from 0 to 65535.
absl::Status BadPort(std::string_view text, std::string_view port) {
  if (!IsNumber(port))
    return BadAddress(text, port.empty() ? "has no port" : "has a port that is not a number");
  return absl::InvalidArgumentError(Join("address \"", text, "\": port ", port, " is above 65535"));
}

// The kernel's own names begin with a NUL and end where the address does.
absl::StatusOr<std::vector<Address>> AbstractAddress(std::string_view text) {
  const std::string_view name = text.substr(kAbstract.size());
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (name.empty()) return BadAddress(text, "has no name");
  if (name.size() >= sizeof un->sun_path) {
    return BadAddress(text, Join("has too long a name, of more than ", sizeof un->sun_path - 1, " bytes"));
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return std::vector<Address>{address};
}

// The host of "HOST:PORT" or "[HOST]:PORT".
std::string_view HostOf(std::string_view text) {
  std::string_view host = text.substr(0, text.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

absl::StatusOr<std::vector<Address>> UnixAddress(std::string_view text) {
  const std::string_view path = text.substr(kUnix.size());
  Address address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.empty()) return BadAddress(text, "has no path");
  if (path.size() >= sizeof un->sun_path) {
    return BadAddress(text, Join("has too long a path, of more than ", sizeof un->sun_path - 1, " bytes"));
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return std::vector<Address>{address};
}

}  // namespace

absl::StatusOr<std::vector<Address>> Address::ResolveAll(std::string_view text) {
  if (text.starts_with(kUnix)) return UnixAddress(text);
  if (text.starts_with(kAbstract)) return AbstractAddress(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return NoPort(text);
  const std::string_view host = HostOf(text);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() == colon && host.find(':') != std::string_view::npos) {
    return BadAddress(text, "has an IPv6 host without brackets");
  }
  uint16_t number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, wrong] = std::from_chars(port.data(), end, number);
  if (host.empty()) return BadAddress(text, "has no host");
  if (wrong != std::errc() || stop != end) return BadPort(text, port);
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

bool Address::NeedsLookup(std::string_view text) {
  if (text.starts_with(kUnix) || text.starts_with(kAbstract)) return false;
  const std::string host(HostOf(text));
  const std::string without_scope = host.substr(0, host.find('%'));
  char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) != 1 &&
         inet_pton(AF_INET6, without_scope.c_str(), bytes) != 1;
}

std::string Address::ToString() const {
  if (family() == AF_UNIX) {
    const auto* un = reinterpret_cast<const sockaddr_un*>(&storage);
    constexpr size_t kBefore = offsetof(sockaddr_un, sun_path) + 1;
    if (un->sun_path[0] == '\0' && size > kBefore) {
      return Join(kAbstract, std::string_view(un->sun_path + 1, size - kBefore));
    }
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

int Address::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return 0;
}

}  // namespace curtail
