// SPDX-License-Identifier: Apache-2.0
//
// mid.h - the mid-tier's one interface, behind which the ways of using the kernel lie, and its process.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net.h"
#include "router.h"

namespace curtail::bench {

// By connection number; blocking, and owned by somebody else.
using Sockets = std::array<int, kConnections>;

// A Mid serves one caller with four leaves of its own, in one thread.
class Mid {
 public:
  virtual ~Mid() = default;
  // Until a peer closes, which is OUT_OF_RANGE; anything else is an error.
  virtual absl::Status Serve(const Sockets& sockets, Kernel kernel) = 0;
};

// Readiness by epoll.
struct EpollOptions {
  bool edge_triggered = true;
  int busy_poll_us = 0;          // SO_BUSY_POLL of each socket, 0 for none
  bool sends_in_a_ring = false;  // the sends of a turn in one io_uring_enter
  bool yield = false;            // give way once before a wait for replies, so that several are there
};

// Completion by io_uring.
struct UringOptions {
  bool defer_taskrun = true;  // with SINGLE_ISSUER; otherwise COOP_TASKRUN
  bool registered_files = true;
  bool wait_for_all = true;  // one request under way: wake up once, when all its replies are in
  bool poll_first = false;   // IORING_RECVSEND_POLL_FIRST
  bool multishot = false;    // one receive operation a connection, into provided buffers
  bool readiness = false;    // only the wait is the ring's: multishot poll, then recv()
};

// `last_first`: waits for the reply to the last request first, when the others are probably in, too.
std::unique_ptr<Mid> MakeBlockingMid(bool last_first);
std::unique_ptr<Mid> MakeEpollMid(const EpollOptions& options);
std::unique_ptr<Mid> MakeUringMid(const UringOptions& options);
// For a server in a process of its own: says why it failed, and ends the process.
[[noreturn]] void Die(const absl::Status& status);

// True if io_uring was compiled in and this kernel lets us have it.
absl::Status UringAvailable();

// Threads of one server process, each with counters of its own; the last takes the rest.
inline constexpr size_t kCounterSlots = 128;

// Runs a mid-tier with a thread a connection on `listener` until the process is killed.
[[noreturn]] void RunMid(const std::string& variant, const Listener& listener,
                         const std::vector<std::string>& leaves, Counters* counters);
// Runs a leaf that returns what it gets, one level-triggered epoll loop, until the process is killed.
[[noreturn]] void RunLeaf(const Listener& listener);

}  // namespace curtail::bench
