// SPDX-License-Identifier: Apache-2.0
//
// limit_counters.h - counts the limits of a server that its clients reach, and tells the operator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/rpc/server.h"
#include "curtail/wire/limit.h"

namespace curtail::internal {

// The limits beside those of a session. Their numbers follow those of wire::Limit.
enum class ServerLimit : uint8_t {
  kHandshake = wire::kLimits,  // time for TLS and for HTTP/2's first frames
  kHeaderTime,                 // time for one header block, or another frame
  kStalledWrite,               // time without a byte that the client took
  kIdle,                       // time without a call
  kDeadline,                   // a call's own: the server ended it
  kBudget,                     // bytes held for all connections together
  kParsed,                     // what a request takes once it is parsed
  kQueue,                      // requests that wait, and their bytes
  kQueueShare,                 // ... of one connection
  kConnections,                // connections at once
  kDescriptors,                // of the process
  kPriority,                   // a priority that cannot be read: the default holds
  kRefused,                    // no limit: calls that an interceptor refused
};
inline constexpr size_t kAllLimits = wire::kLimits + 13;

// A LimitCounters counts for each limit, and logs a line (log.h) once in ten seconds at most for each but kRefused.
// Thread-safe.
class LimitCounters {
 public:
  void Reached(wire::Limit limit, std::string_view peer) { Count(static_cast<size_t>(limit), peer); }
  void Reached(ServerLimit limit, std::string_view peer) { Count(static_cast<size_t>(limit), peer); }
  void Refused() {
    counters_[static_cast<size_t>(ServerLimit::kRefused)].times.fetch_add(1, std::memory_order_relaxed);
  }
  // Those that were reached, in order.
  std::vector<LimitCount> Sample() const;

 private:
  struct Counter {
    // Atomic, relaxed: they order nothing. The time of the last line is in ns; 0: there was none.
    std::atomic<uint64_t> times{0};
    std::atomic<int64_t> told{0};
  };

  void Count(size_t limit, std::string_view peer);

  std::array<Counter, kAllLimits> counters_;
};

}  // namespace curtail::internal
