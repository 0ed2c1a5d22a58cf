// SPDX-License-Identifier: Apache-2.0
//
// refusal.h - counts what overload control refuses, and words the answers (docs/design/overload.md).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/exec/priority.h"
#include "curtail/rpc/server_stats.h"

namespace curtail {

class Context;

namespace internal {

// Why a request, or a call that it makes, was refused.
enum class Refusal : uint8_t {
  kOverdue,        // it waited too long in a queue that stood
  kLessImportant,  // the server admits only more important ones
  kCameTooLate,    // its deadline had passed when it had come
  kQueuedTooLong,  // its deadline passed while it was queued
  kCallTooLate,    // its deadline had passed before the call
  kNoCredit,       // its client has no credit for it
  kCallNoCredit,   // the call got no credit in time
};
inline constexpr size_t kRefusals = 7;

// A RefusalCounters counts for each reason. Thread-safe.
class RefusalCounters {
 public:
  void Count(Refusal reason, uint64_t times = 1) {
    counts_[static_cast<size_t>(reason)].fetch_add(times, std::memory_order_relaxed);
  }
  // Those that happened, in order.
  std::vector<RefusalCount> Sample() const;

 private:
  // Atomic, relaxed: they order nothing.
  std::array<std::atomic<uint64_t>, kRefusals> counts_{};
};

// Tells the client of `context`, in trailing metadata, to try again no sooner than in `wait`: 1 ms at least, 10 s at
// most.
void AskToRetryAfter(Nanos wait, Context* context);

// The answer to a request that has `waited` too long.
absl::Status OverdueError(Nanos waited, Context* context);
// The answer to a request that is less important than those that the server admits.
absl::Status LessImportantError(Priority priority, Context* context);
// The answer to a request beyond its client's credits.
absl::Status NoCreditError(Nanos target, Context* context);
// The end of so many `calls` that a request does not make because its deadline has passed. Its server counts them.
absl::Status LateCallError(const Context& context, size_t calls = 1);

}  // namespace internal
}  // namespace curtail
