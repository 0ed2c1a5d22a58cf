// SPDX-License-Identifier: Apache-2.0
//
// sender.h - how an epoll mid-tier writes what a turn left to be sent.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "mid.h"
#include "router.h"

namespace curtail::bench {

// A Sender belongs to one thread.
class Sender {
 public:
  virtual ~Sender() = default;
  // Sends everything that router.out() holds, and empties it.
  virtual absl::Status SendAll(const Sockets& sockets, Router& router, Kernel& kernel) = 0;
};

// One io_uring_enter for all connections. REQUIRES: UringAvailable().
absl::StatusOr<std::unique_ptr<Sender>> MakeRingSender(const Sockets& sockets);

}  // namespace curtail::bench
