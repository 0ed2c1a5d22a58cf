// SPDX-License-Identifier: Apache-2.0
//
// run_folder.h - where `curtail up` keeps what belongs to a running application, and how the other commands find it.
//
// $XDG_RUNTIME_DIR/curtail/APP, or /tmp/curtail-UID/APP: logs, sockets, state.json and a lock file. The lock is held for
// as long as the application is up, by the process that looks after it, and goes with that process however it ends: a
// state without a held lock is a thing of the past.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::tool {

// How a process is, for `curtail ps`; not kept in the file.
struct ProcessLook {
  std::string health;  // "serving", "not serving", "no answer", "-" where that cannot be asked
  std::string config;  // in force
  double cpu_s = 0;
  double resident_mib = 0;
};

// One process, or instance that runs elsewhere, of an application that is up.
struct ProcessState {
  std::string name;     // "leaf-0"
  std::string service;  // "leaf"
  std::string variant;  // that the service runs as; empty: its own program
  std::string state;    // see StateName()
  pid_t pid = 0;        // 0: none now
  std::string protocol;
  std::string address;
  std::string admin;                  // empty: none
  std::string http_admin;             // of curl --unix-socket; empty: none
  std::string under;                  // the config or policy it was started under; empty: its default
  std::string log;                    // path; empty: none
  std::vector<std::string> failover;  // argv that makes another replica the primary; empty: none
  bool scales = false;                // `curtail scale` may change how many there are of its service
  int restarts = 0;
  std::string problem;          // why it ended last
  int64_t problem_unix_ms = 0;  // when
  int64_t since_unix_ms = 0;    // of its state
  std::optional<ProcessLook> look;
};

struct UpState {
  std::string application;
  pid_t pid = 0;      // of the process that looks after it
  std::string entry;  // what clients call; empty: not ready yet
  int64_t started_unix_ms = 0;
  std::map<std::string, std::string>
      settings;  // that make the application's topology what is up, see Topology::Set()
  std::vector<ProcessState> processes;
};

std::string ToJson(const UpState& state);
// Errors: INVALID_ARGUMENT for anything that ToJson() does not write.
absl::StatusOr<UpState> ParseUpState(std::string_view json);

// A RunFolder is held by the process that looks after an application. Thread-compatible.
class RunFolder {
 public:
  // Makes the folder, private to the user, takes the lock and removes what the last run left. Errors: ALREADY_EXISTS when
  // the application is up; PERMISSION_DENIED and others of the file system.
  static absl::StatusOr<std::unique_ptr<RunFolder>> Take(const std::string& application);
  // Gives the lock back; logs stay.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  // Says that this process is the keeper; anew after a fork.
  absl::Status WritePid() const;
  // Replaces the state in one step, so that readers see the old or the new one.
  absl::Status Write(const UpState& state) const;
  // How many instances of which services AskToScale() wants, since the last call.
  std::map<std::string, int> TakeScaleRequests() const;

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  const std::string path_;
  const int lock_;
};

// Of the user's applications, whether up or not.
std::string RunFolderOf(std::string_view application);
// A note for users where XDG_RUNTIME_DIR cannot hold that folder, so that another one does; else empty.
std::string OtherRunFolder();
std::vector<std::string> ApplicationsUp();
// "hdsearch is up", "bank, shop are up" or "no application is up".
std::string WhatIsUp();
// NOT_FOUND: that it is not up, or that there is no such application; also what is up, how to start it, and which name
// was probably meant.
absl::Status NotUp(std::string_view application);
// The error of a command that takes whole applications, for "APP/SERVICE"; empty for other words.
std::string NotAnApplication(std::string_view command, std::string_view target);
// True if it has been up here, or is: its logs lie in its folder. Then its name is no mistake.
bool WasUp(const std::string& application);
// Errors: NotUp(); NOT_FOUND when it has only begun to start; INTERNAL.
absl::StatusOr<UpState> ReadUpState(const std::string& application);
// True if a process holds the lock.
bool IsUp(const std::string& application);
// Asks the process that looks after an application for so many instances of a service. Errors: INTERNAL.
absl::Status AskToScale(const std::string& application, const std::string& service, int count);
// The process that holds it, as it wrote into the lock file. Errors: NOT_FOUND.
absl::StatusOr<pid_t> KeeperOf(const std::string& application);

}  // namespace curtail::tool
