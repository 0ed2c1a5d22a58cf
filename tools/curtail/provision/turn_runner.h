// SPDX-License-Identifier: Apache-2.0
//
// turn_runner.h - carries out the turns of a provisioner at an application that is up: shares, load, and what it showed.
//
// Shares change while the services serve: CPU time by their cgroups, threads by their admin interfaces. Between turns CPU
// time has no limit, so that what a turn left behind is soon done, and reading metrics takes nothing from a turn.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/deploy/deployment.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/report/threshold.h"
#include "curtail/term/console.h"
#include "tools/curtail/load/load_setup.h"
#include "tools/curtail/observe/vitals.h"
#include "tools/curtail/provision/provisioner.h"

namespace curtail::tool {

struct TurnPlan {
  std::string application;
  RunOptions options;  // of every turn
  WorkloadMaker workloads;
  uint64_t seed = 1;
  std::vector<Threshold> qos;
  Nanos within{0};   // the bound of a request's latency in it
  Nanos length{0};   // of a turn; longer where the load is low
  bool cpu = false;  // the instances have groups
};

// Thread-compatible. What it is made with outlives it.
class TurnRunner {
 public:
  TurnRunner(TurnPlan plan, deploy::Deployment& deployment, Console& console, const std::atomic<bool>& stop)
      : plan_(std::move(plan)), deployment_(deployment), console_(console), stop_(stop) {}

  // Errors: CANCELLED when `stop` was set; ABORTED when a process has ended; those of a run, of admin calls and of groups.
  absl::StatusOr<TurnResult> Run(const ProvisionTurn& turn, const std::string& label);
  // Puts shares in force for good.
  absl::Status Apply(const Allocation& shares);

  // Of the latest turn: the CPUs that all services used, and the p99.
  double cpus() const { return cpus_; }
  Nanos p99() const { return p99_; }

 private:
  struct Throttling {
    TimePoint at;
    std::map<std::string, deploy::CpuGroupUse> groups;  // by instance
  };
  absl::Status LiftLimits();
  absl::Status SetConfigs(const Allocation& shares);
  absl::StatusOr<Throttling> ReadGroups() const;
  // By service, that of the instance that was throttled most.
  std::map<std::string, double> Throttled(const Throttling& from, const Throttling& to) const;

  const TurnPlan plan_;
  deploy::Deployment& deployment_;
  Console& console_;
  const std::atomic<bool>& stop_;
  std::map<std::string, std::unique_ptr<deploy::AdminClient>> admins_;  // by instance
  std::map<std::string, std::string> configs_;                          // in force, by service
  double cpus_ = 0;
  Nanos p99_{0};
};

}  // namespace curtail::tool
