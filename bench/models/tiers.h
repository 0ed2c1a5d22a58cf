// SPDX-License-Identifier: Apache-2.0
//
// tiers.h - the processes of a service under test: its leaves, and mid-tiers of which one runs at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/exec/thread_stats.h"
#include "process.h"
#include "service.h"

namespace curtail::models {

// A folder for the logs of the processes, removed with the object unless kept. Thread-compatible.
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

// A MidTier is a process with one config. It is paused except between Resume() and Pause(), so that a
// poller does not take a CPU while another config is measured. Thread-compatible.
class MidTier {
 public:
  MidTier(std::unique_ptr<tool::Process> process, std::string address)
      : process_(std::move(process)), address_(std::move(address)) {}

  const std::string& address() const { return address_; }
  void Resume() { process_->Resume(); }
  void Pause() { process_->Pause(); }
  absl::StatusOr<ThreadStats> Sample() const { return ReadThreadStats(std::to_string(process_->pid())); }
  // ABORTED when the process has ended, with the end of its log.
  absl::Status Check();

 private:
  const std::unique_ptr<tool::Process> process_;
  const std::string address_;
};

// The leaves of a service, and what starts mid-tiers over them. All processes end with their objects, and
// at the latest with the thread that made them. Thread-compatible.
class Tiers {
 public:
  // Starts the leaves and waits until they serve. `service`, `logs` and `stop` outlive the object. Errors:
  // those of Process; CANCELLED when `stop` was set.
  static absl::StatusOr<std::unique_ptr<Tiers>> Start(const TestedService& service, int leaves,
                                                      const LogFolder& logs, const std::atomic<bool>& stop);

  // Starts a mid-tier, paused. Errors: UNIMPLEMENTED when it ended by itself before it served, which is how a
  // server refuses a config; ABORTED when a signal ended it; DEADLINE_EXCEEDED; CANCELLED.
  absl::StatusOr<std::unique_ptr<MidTier>> StartMidTier(const std::string& config);
  // ABORTED when a leaf has ended.
  absl::Status CheckLeaves();

 private:
  Tiers(const TestedService& service, const LogFolder& logs, const std::atomic<bool>& stop)
      : service_(service), logs_(logs), stop_(stop) {}
  absl::StatusOr<std::unique_ptr<tool::Process>> Launch(std::string name,
                                                        std::vector<std::string> argv) const;
  absl::StatusOr<std::string> AwaitAddress(tool::Process& process) const;

  const TestedService& service_;
  const LogFolder& logs_;
  const std::atomic<bool>& stop_;
  std::vector<std::unique_ptr<tool::Process>> leaves_;
  std::vector<std::string> addresses_;
};

}  // namespace curtail::models
