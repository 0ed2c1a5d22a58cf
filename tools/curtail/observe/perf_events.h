// SPDX-License-Identifier: Apache-2.0
//
// perf_events.h - what users of perf_event_open(2) share: threads, tracepoints, and why the machine denies something.
// Any thread.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/internal/unique_fd.h"

namespace curtail::tool {

// The threads of the process, ascending; none if it has ended.
std::vector<pid_t> ThreadsOf(pid_t process);

// CPUs of the machine, those that are off included.
size_t Cpus();

// For a tracepoint with the field `field`: that it is one of `threads`, which ascend.
std::string ThreadsFilter(std::string_view field, const std::vector<pid_t>& threads);

// Opens the event for one thread on all CPUs (`cpu` is -1), or for all threads on one CPU (`thread` is -1), with a
// filter unless that is empty. The result is empty, and errno set, if the kernel refuses.
internal::UniqueFd OpenPerfEvent(const perf_event_attr& attributes, pid_t thread, int cpu,
                                 const std::string& filter);

// A sentence on why the kernel refused an event with this errno in `call`.
std::string PerfDenial(int error, std::string_view call);

// "sched/sched_switch": its number and the places of its fields, from tracefs.
class Tracepoint {
 public:
  // Absent, with the reason in `why`, if tracefs does not show it.
  static std::optional<Tracepoint> Find(std::string_view name, std::string* why);

  uint64_t id() const { return id_; }
  // The offset in a record of a field of four bytes. Absent if there is none of that name.
  std::optional<size_t> OffsetOf(std::string_view field) const;

 private:
  uint64_t id_ = 0;
  std::string format_;
};

}  // namespace curtail::tool
