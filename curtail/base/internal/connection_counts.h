// SPDX-License-Identifier: Apache-2.0
//
// connection_counts.h - the connections of this process to other services, by the target of their channel, and to stores.
//
// They are those of all clients: a server that shows them need not know which clients its handlers use.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/mutex.h"

namespace curtail::internal {

// Of one target. Thread-safe.
struct TargetConnections {
  // Atomic, relaxed: counts that order nothing.
  std::atomic<uint64_t> attempts{0};  // to connect
  std::atomic<uint64_t> failures{0};  // of these
  std::atomic<uint64_t> stood{0};     // that succeeded
  std::atomic<uint64_t> closed{0};    // ... and have ended
  std::atomic<bool> answered{false};  // a call was answered, whatever the answer; of services only
  // Of stores only.
  std::atomic<uint64_t> lost{0};    // ... while a request waited for an answer
  std::atomic<bool> silent{false};  // the last attempt failed, or the last request got no answer in its time
};

// A ConnectionCounts has counts for the first kMost - 1 targets, and one for all others together: it stays as small
// whatever targets a process invents. Thread-safe.
class ConnectionCounts {
 public:
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostName = 128;  // bytes of a target; more are cut off

  // Those of this process: to other services, and to stores, whose target is "KIND ADDRESS".
  static ConnectionCounts& OfProcess();
  static ConnectionCounts& ToStores();

  // Lives as long as this does.
  TargetConnections* For(std::string_view target);

  struct Row {
    std::string target;  // "other" for all others
    uint64_t open = 0, attempts = 0, failures = 0, lost = 0;
    bool silent = false;
  };
  // Those that there are, in the order in which they came; all others last.
  std::vector<Row> Read() const;

 private:
  static constexpr size_t kOther = kMost - 1;

  std::array<TargetConnections, kMost> counts_;
  mutable Mutex mu_;
  std::vector<std::string> names_ CURTAIL_GUARDED_BY(mu_);
  bool others_ CURTAIL_GUARDED_BY(mu_) = false;  // there are some
};

}  // namespace curtail::internal
