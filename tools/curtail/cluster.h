// SPDX-License-Identifier: Apache-2.0
//
// cluster.h - HDSearch on this machine: leaves, and one mid-tier a config, of which one runs at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "process.h"

namespace curtail::tool {

struct ClusterOptions {
  std::string hdsearch;  // path of the executable
  std::string data;
  std::vector<std::string> configs;  // of the mid-tiers
  int leaves = 4;
  std::string log_folder;
  Nanos start_timeout = std::chrono::seconds(60);
};

// A Cluster owns the processes; they end with it. Thread-compatible; see Process for the thread that starts
// it.
class Cluster {
 public:
  // Starts everything and returns when all are ready; every mid-tier is paused then. Errors: those of
  // Process, with the end of the child's log. `stop` ends the wait with CANCELLED.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const ClusterOptions& options,
                                                        const std::atomic<bool>& stop);
  // Asks all to end, then waits for each.
  ~Cluster();

  // Lets only the mid-tier of config `index` run.
  void Activate(size_t index);
  const std::string& address(size_t index) const { return mid_tiers_[index].address; }
  Process& mid_tier(size_t index) { return *mid_tiers_[index].process; }
  // ABORTED naming the first process that has ended, with the end of its log.
  absl::Status Check();

 private:
  struct Member {
    std::unique_ptr<Process> process;
    std::string address;
  };

  Cluster() = default;
  static absl::StatusOr<std::unique_ptr<Process>> Launch(const ClusterOptions& options, std::string name,
                                                         std::vector<std::string> flags);
  static absl::Status AwaitReady(const ClusterOptions& options, const std::atomic<bool>& stop,
                                 std::vector<Member>& members);

  std::vector<Member> leaves_;
  std::vector<Member> mid_tiers_;
};

// The hdsearch executable that belongs to this one: beside it, or where the build puts it. Errors: NOT_FOUND,
// listing the places looked at.
absl::StatusOr<std::string> FindHdSearch();

}  // namespace curtail::tool
