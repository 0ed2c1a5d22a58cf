// SPDX-License-Identifier: Apache-2.0
//
// net.h - TCP over loopback: blocking calls, Nagle's algorithm off.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace curtail::bench {

// A Fd owns a file descriptor. Moves, does not copy.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// The text of errno, after `what`.
absl::Status ErrnoStatus(absl::string_view what);

struct Listener {
  Fd fd;
  std::string address;  // "127.0.0.1:port"
};
// Listens on a free port of 127.0.0.1.
absl::StatusOr<Listener> Listen();
// Connects to "127.0.0.1:port".
absl::StatusOr<Fd> Connect(const std::string& address);
// Begins to connect; the descriptor does not block, and can be written once the connection is there.
absl::StatusOr<Fd> BeginToConnect(const std::string& address);
// The next connection of a listener.
absl::StatusOr<Fd> Accept(int listener);

// Moves exactly `size` bytes. UNAVAILABLE when the peer has closed.
absl::Status WriteFull(int fd, const void* data, size_t size);

// Raises this process's limit of open descriptors as far as it may. Returns the limit.
size_t RaiseDescriptorLimit();

}  // namespace curtail::bench
