// SPDX-License-Identifier: Apache-2.0
//
// service_share.h - what the processes of one service did meanwhile, together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "curtail/base/histogram.h"
#include "tools/curtail/observe/os_source.h"

namespace curtail::tool {

// The name of the latencies among the counts that are denied.
inline constexpr char kWakeupLatency[] = "wakeup_latency";

// A ServiceShare has a number only if each process has it: a sum of some would pass for the sum of all.
// Thread-compatible.
class ServiceShare {
 public:
  // Adds a process, by its counts so far at the beginning and `seconds` later.
  void AddCounts(const OsCounts& before, const OsCounts& after, double seconds);
  // Its requests meanwhile; absent: the process does not count them.
  void AddRequests(std::optional<double> requests);
  // Its latencies from being woken to running, and the events of the scheduler that were lost.
  void AddWakeups(const Histogram& latencies, uint64_t events_lost);
  // Why it has no such latencies.
  void DenyWakeups(const std::string& why);

  int processes() const { return processes_; }
  double seconds() const { return seconds_; }  // of the last process; those of others are close
  const std::optional<double>& requests() const { return requests_; }
  const OsCounts& counts() const { return counts_; }
  const Histogram& wakeup_latency() const { return wakeup_latency_; }
  uint64_t events_lost() const { return events_lost_; }

 private:
  int processes_ = 0;
  double seconds_ = 0;
  bool some_count_no_requests_ = false;
  std::optional<double> requests_;
  OsCounts counts_;
  Histogram wakeup_latency_;
  uint64_t events_lost_ = 0;
};

}  // namespace curtail::tool
