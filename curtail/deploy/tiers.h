// SPDX-License-Identifier: Apache-2.0
//
// tiers.h - an application to be measured: what is behind its mid-tier, and mid-tiers over that.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/deployment.h"
#include "curtail/deploy/process/process.h"
#include "curtail/exec/internal/thread_stats.h"

namespace curtail::deploy {

// A folder for the logs and sockets of the processes, removed with the object unless kept.
// Thread-compatible.
class LogFolder {
 public:
  LogFolder();
  ~LogFolder();
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  const std::string& path() const { return path_; }  // empty when it could not be made
  void Keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

// Under which config or policy a mid-tier serves.
struct MidTierSetup {
  std::string config = "auto";  // at the start
  // The rest empty: that config for good.
  std::string policy;
  std::string profile;  // a file
  bool any_machine = false;
  Nanos slo{0};                      // zero: the server's default
  std::optional<double> cpu_weight;  // absent: the server's default
  std::string admin;                 // address; empty: none
  std::string fence;                 // its mode; empty: the topology's
  // A program and its flags to run it under, such as valgrind; empty: none.
  std::vector<std::string> wrapper;
};

// A MidTier is a process that serves. Where several stand side by side, all but the one under load
// are paused, so that a poller does not take a CPU from it. Ends with the object.
// Thread-compatible.
class MidTier {
 public:
  MidTier(std::unique_ptr<Process> process, std::string address, std::string admin)
      : process_(std::move(process)), address_(std::move(address)), admin_(std::move(admin)) {}

  const std::string& address() const { return address_; }
  const std::string& admin() const { return admin_; }  // empty: none
  void Resume() { process_->Resume(); }
  void Pause() { process_->Pause(); }
  Nanos Cpu() const { return process_->Cpu(); }
  absl::StatusOr<ThreadStats> Sample() const { return ReadThreadStats(std::to_string(process_->pid())); }
  // ABORTED when the process has ended, with the end of its log.
  absl::Status Check();
  // Asks it to end and waits. Errors: ABORTED when it had ended before, or had to be killed after
  // `grace`.
  absl::Status End(Nanos grace);

 private:
  const std::unique_ptr<Process> process_;
  const std::string address_;
  const std::string admin_;
};

// All of an application but its mid-tier. All processes end with their objects, and at the latest
// with the thread that made them. Thread-compatible.
class Tiers {
 public:
  // Starts them and waits until they serve. `topology`, `logs` and `stop` outlive the object.
  // Errors: as Deployment.
  static absl::StatusOr<std::unique_ptr<Tiers>> Start(const Topology& topology, const LogFolder& logs,
                                                      const std::atomic<bool>& stop);

  // Starts a mid-tier and waits until it serves; the first one also runs what the topology wants
  // prepared. With `admin` it gets an admin interface, whatever the setup says. Errors:
  // UNIMPLEMENTED when it ended by itself before it served, which is how a server refuses a config;
  // ABORTED when a signal ended it; DEADLINE_EXCEEDED; CANCELLED.
  absl::StatusOr<std::unique_ptr<MidTier>> StartMidTier(MidTierSetup setup, bool admin = false);
  // ABORTED when one of them has ended.
  absl::Status CheckLeaves() { return behind_->Check(); }

 private:
  Tiers(const Topology& topology, const LogFolder& logs, const std::atomic<bool>& stop)
      : topology_(topology), logs_(logs), stop_(stop) {}
  absl::StatusOr<std::unique_ptr<Process>> Launch(std::string name, const MidTierSetup& setup) const;

  const Topology& topology_;
  const LogFolder& logs_;
  const std::atomic<bool>& stop_;
  int mid_tiers_ = 0;  // started so far
  bool prepared_ = false;
  std::unique_ptr<Deployment> behind_;
};

}  // namespace curtail::deploy
