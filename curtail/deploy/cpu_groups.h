// SPDX-License-Identifier: Apache-2.0
//
// cpu_groups.h - groups of processes with a limit on their CPU time, by the kernel's cgroups.
//
// Version 1 and 2 are used as they are found: with version 1 the controller "cpu" at its usual
// place, with version 2 the nearest group around this process that hands "cpu" on to its children.
// Root may make groups, and whoever a part of the tree was delegated to, as systemd does for users.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail::deploy {

// A group may use its share of this time; then its threads wait for the next. It is the kernel's
// default, and Kubernetes'.
inline constexpr Nanos kCpuPeriod = std::chrono::milliseconds(100);
// The kernel grants no less, and no parts of it.
inline constexpr double kLeastCpu = 0.01;

// Since the group was made.
struct CpuGroupUse {
  uint64_t periods = 0;    // in which the group had work and a limit
  uint64_t throttled = 0;  // ... and had to wait, as its time was used up
};

// Removed with the object. REQUIRES: its processes have ended by then.
class CpuGroup {
 public:
  CpuGroup(std::string folder, bool version2) : folder_(std::move(folder)), version2_(version2) {}
  ~CpuGroup();
  CpuGroup(const CpuGroup&) = delete;
  CpuGroup& operator=(const CpuGroup&) = delete;

  // A process whose id is written there joins the group, with all that it starts from then on.
  std::string procs() const { return folder_ + "/cgroup.procs"; }
  // The CPUs that its processes may use together, in steps of kLeastCpu; 0: no limit. Takes effect
  // at once. Errors: INTERNAL, what the system said.
  absl::Status Limit(double cpus);
  absl::StatusOr<CpuGroupUse> Use() const;

 private:
  const std::string folder_;
  const bool version2_;
};

class CpuGroups {
 public:
  // Where groups can be made, below `mount`; `own` says which groups this process is in. What
  // processes of this kind that were killed have left there is removed. Errors:
  // FAILED_PRECONDITION, which says why this machine lets this user make none.
  static absl::StatusOr<CpuGroups> Find(const std::string& mount = "/sys/fs/cgroup",
                                        const std::string& own = "/proc/self/cgroup");

  // A group without a limit; `name` is unique within this process. Errors: INTERNAL.
  absl::StatusOr<std::unique_ptr<CpuGroup>> Make(const std::string& name) const;

 private:
  CpuGroups(std::string parent, bool version2) : parent_(std::move(parent)), version2_(version2) {}
  std::string parent_;
  bool version2_;
};

}  // namespace curtail::deploy
