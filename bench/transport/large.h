// SPDX-License-Identifier: Apache-2.0
//
// large.h - two tiers and large messages: what it costs to hand the kernel a reply.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "generator.h"
#include "net.h"

namespace curtail::bench {

// How a server sends a reply that is made of frames: a header of 9 bytes, a body of at most 16 KiB.
enum class Reply {
  kSend,         // as if it lay in one piece already: the floor
  kCopyAndSend,  // copied into one piece
  kWritev,       // from where it lies
  kZeroCopy,     // kSend with MSG_ZEROCOPY, and its notification awaited
};

// Answers requests, a thread a connection, until the process is killed. A request begins with its size.
[[noreturn]] void RunLargeServer(Reply reply, const Listener& listener, Counters* counters);

// One request of `bytes` after the other for `duration`.
absl::StatusOr<Sample> RunLarge(const std::string& address, uint32_t bytes, Nanos duration);

}  // namespace curtail::bench
