// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/address.h"

#include <netdb.h>
#include <sys/un.h>

#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

absl::Status BadStoreAddress(const std::string& text, std::string_view why) {
  return absl::InvalidArgumentError(
      Join("address \"", text, "\" ", why, "; want HOST:PORT, as 127.0.0.1:11211, or unix:PATH"));
}

absl::StatusOr<StoreAddress> UnixStoreAddress(const std::string& text) {
  const std::string path = text.substr(5);
  sockaddr_un socket_address = {.sun_family = AF_UNIX};
  if (path.empty()) return BadStoreAddress(text, "has no path");
  if (path.size() >= sizeof socket_address.sun_path) return BadStoreAddress(text, "has too long a path");
  std::memcpy(socket_address.sun_path, path.data(), path.size());
  StoreAddress::Socket socket{.size = sizeof socket_address};
  std::memcpy(&socket.address, &socket_address, sizeof socket_address);
  return StoreAddress{.text = text, .sockets = {socket}};
}

}  // namespace

absl::StatusOr<StoreAddress> StoreAddress::Parse(const std::string& text) {
  if (text.starts_with("unix:")) return UnixStoreAddress(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return BadStoreAddress(text, "has no port");
  std::string host = text.substr(0, colon);
  const std::string port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return BadStoreAddress(text, "has no host");
  if (port.empty() || port.find_first_not_of("0123456789") != std::string::npos || port.size() > 5 ||
      std::stoi(port) < 1 || std::stoi(port) > 65535) {
    return BadStoreAddress(text, "has no port from 1 to 65535");
  }
  const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return BadStoreAddress(text, Join("names no host (", gai_strerror(error), ")"));
  }
  StoreAddress address{.text = text};
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    Socket& socket = address.sockets.emplace_back();
    socket.size = next->ai_addrlen;
    std::memcpy(&socket.address, next->ai_addr, next->ai_addrlen);
  }
  freeaddrinfo(found);
  return address;
}

}  // namespace curtail
