// SPDX-License-Identifier: Apache-2.0
//
// subject.h - a running server whose config is changed and which is measured: an application started for this, or a
// server that somebody else runs and that has an admin interface.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/profile.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/deploy/tiers.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/workload.h"
#include "curtail/term/console.h"
#include "tools/curtail/load/load_flags.h"

namespace curtail::tool {

// The part that `curtail train` and `verify` have in common.
struct SubjectFlags {
  // The target, its TLS, and the requests, as for `curtail load`: the name of an application alone has it started.
  LoadFlags load;
  std::string admin;  // of a server that runs already
  std::string fence;  // the mode of an application that is started; empty: the topology's
  apps::ApplicationOptions application;
};

// Requests in closed loop.
struct DriveOptions {
  int outstanding = 1;
  Nanos warmup{0};
  Nanos length{0};
  uint64_t requests = 0;            // at most; 0: as many as there is time for
  RunObserver* observer = nullptr;  // may be null
};

// A Subject serves under one config after the other. Thread-compatible. Processes that it started end with it; a server
// that ran already gets back the config that it had.
class Subject {
 public:
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // Starts the application, or gets ready to call the server. Errors: INVALID_ARGUMENT and NOT_FOUND for flags, data and
  // programs; those of Tiers.
  static absl::StatusOr<std::unique_ptr<Subject>> Make(const SubjectFlags& flags, Console& console,
                                                       const std::atomic<bool>& stop);
  // A mid-tier of `application` that runs over `tiers`, both of which outlive it.
  static absl::StatusOr<std::unique_ptr<Subject>> Over(const apps::Application& application,
                                                       deploy::Tiers& tiers, const std::atomic<bool>& stop);

  // Puts a config in force. Errors: INVALID_ARGUMENT when the server cannot run under it.
  absl::Status SwitchTo(const Config& config);
  // Runs one cell of a training: switches, sends at `load_per_s`, warm-up first. Errors: CANCELLED when stopped, what kept
  // the run from starting, ABORTED when a process has ended or the server refuses every request, FAILED_PRECONDITION
  // when no request was due.
  absl::StatusOr<ProfileCell> Measure(const Config& config, double load_per_s, Nanos warmup, Nanos length,
                                      uint64_t seed);

  // Puts a config in force, if one is given, and returns the one in force. Errors: as SwitchTo(), and for a text that is
  // none.
  absl::StatusOr<Config> SetConfig(const std::string& config);
  // Sends requests of `workload`, which are of the same server, under the config in force. Errors: as Measure().
  absl::StatusOr<LoadResult> Drive(const Workload& workload, const DriveOptions& drive);

  // The requests that are sent to it.
  const std::shared_ptr<const Workload>& workload() const { return workload_; }
  deploy::AdminClient& admin() { return *admin_; }
  // For the profile: the full name of its service; what is sent to it.
  const std::string& service() const { return service_; }
  const std::string& description() const { return description_; }
  // Cells in which the generator itself was late, so far.
  int disturbed() const { return disturbed_; }
  // Of all replies that the workload judged, so far.
  const ScoreSummary& score() const { return score_; }
  // The processes' files are not removed with them.
  void KeepLogs();
  std::string log_folder() const { return logs_ == nullptr ? "" : logs_->path(); }

 private:
  explicit Subject(const std::atomic<bool>& stop) : stop_(stop) {}
  absl::Status StartApplication(const SubjectFlags& flags, Console& console);
  absl::Status StartMidTier(const apps::Application& application, deploy::Tiers& tiers,
                            deploy::MidTierSetup setup);
  absl::Status Reach(const SubjectFlags& flags, Console& console);
  absl::Status Check();
  // The CPU that the server's process has used so far; absent where it does not say.
  std::optional<Nanos> Cpu() const;
  // Waits until no call is open, for a few seconds at most: what a saturated cell left behind.
  void Settle();

  const std::atomic<bool>& stop_;
  // Of an application that was started; else null.
  std::unique_ptr<deploy::LogFolder> logs_;
  std::unique_ptr<apps::Application> application_;
  std::unique_ptr<deploy::Tiers> own_tiers_;
  deploy::Tiers* tiers_ = nullptr;
  std::unique_ptr<deploy::MidTier> mid_tier_;

  std::shared_ptr<const Workload> workload_;
  std::string service_;
  std::string description_;
  RunOptions options_;
  std::unique_ptr<deploy::AdminClient> admin_;
  std::string config_before_;  // of a server that ran already; empty: of one that was started
  int disturbed_ = 0;
  ScoreSummary score_;
};

// True if the target can be one, before anything is planned or started: an address, or an application that there is.
// Errors: NOT_FOUND.
absl::Status CheckTarget(const SubjectFlags& flags);

// Prints why `curtail COMMAND` failed, and where the logs are; returns the exit code. `subject` may be null.
int FailWith(Console& console, const absl::Status& status, std::string_view command, Subject* subject);

}  // namespace curtail::tool
