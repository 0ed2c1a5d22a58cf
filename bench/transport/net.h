// SPDX-License-Identifier: Apache-2.0
//
// net.h - system calls that are counted.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "bench/common/net.h"

namespace curtail::bench {

// The end of a connection, which is no error.
bool IsEnd(const absl::Status& status);

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
