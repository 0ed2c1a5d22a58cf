// SPDX-License-Identifier: Apache-2.0
//
// socket.h - addresses and sockets: what the kernel needs, with errors a person can act on.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::internal {

// A UniqueFd owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// An Address is a socket address in the form the kernel takes.
struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  // "HOST:PORT", "[HOST]:PORT" or "unix:PATH". Names other than numeric ones are looked up, which may block.
  // Errors: INVALID_ARGUMENT with the form expected; UNAVAILABLE when the name is not known.
  // Returns all addresses of a name, at least one.
  static absl::StatusOr<std::vector<Address>> ResolveAll(std::string_view text);
  // ... the first of them.
  static absl::StatusOr<Address> Resolve(std::string_view text);
  std::string ToString() const;
  int family() const { return storage.ss_family; }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// A listening, non-blocking socket. Takes over a Unix socket that nobody serves any more, but no other file.
// Errors: ALREADY_EXISTS when the port or path is in use, PERMISSION_DENIED, INVALID_ARGUMENT.
absl::StatusOr<UniqueFd> Listen(const Address& address);
// The address a listening socket is bound to (with the real port).
std::string BoundAddress(int fd);

// A socket whose connection has at least begun; `*connected` says whether it is complete already.
absl::StatusOr<UniqueFd> StartConnect(const Address& address, bool* connected);
// The error a connection attempt ended with, 0 for success.
int ConnectError(int fd);

// For TCP: no Nagle delay, and a peer that has vanished is noticed after 20 s. Does nothing to other sockets.
void SetTcpOptions(int fd);

}  // namespace curtail::internal
