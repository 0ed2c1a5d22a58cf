// SPDX-License-Identifier: Apache-2.0
//
// net.h - TCP over loopback, and system calls that are counted.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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

 private:
  int fd_ = -1;
};

// What errno says, after `what`.
absl::Status ErrnoStatus(const char* what);
// The end of a connection, which is no error.
bool IsEnd(const absl::Status& status);

struct Listener {
  Fd fd;
  uint16_t port = 0;
};
absl::StatusOr<Listener> Listen();
// Connected sockets block, with Nagle's algorithm off.
absl::StatusOr<Fd> Connect(uint16_t port);
absl::StatusOr<Fd> Accept(int listener);
void SetNonBlocking(int fd);

// Counters that one thread of a server writes and the benchmark reads, in memory that both share.
struct alignas(64) Counters {
  std::atomic<uint64_t> system_calls{0};
  std::atomic<uint64_t> zero_copies_copied{0};  // of MSG_ZEROCOPY, that the kernel copied after all

  // Only one thread writes, so this is no read-modify-write instruction.
  void Called() {
    system_calls.store(system_calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

// System calls that are counted. A Kernel belongs to one thread.
class Kernel {
 public:
  explicit Kernel(Counters& counters) : counters_(counters) {}

  ssize_t Send(int fd, const void* data, size_t size, int flags = 0);
  ssize_t Recv(int fd, void* data, size_t size, int flags = 0);
  void Yield();
  int EpollWait(int epoll, epoll_event* events, int max);
  // Move exactly `size` bytes. OUT_OF_RANGE when the peer has closed. For sockets that block.
  absl::Status SendAll(int fd, const void* data, size_t size);
  absl::Status RecvAll(int fd, void* data, size_t size);

  Counters& counters() { return counters_; }

 private:
  Counters& counters_;
};

}  // namespace curtail::bench
