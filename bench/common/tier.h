// SPDX-License-Identifier: Apache-2.0
//
// tier.h - a study's program starts itself as the processes of the study, each with a role.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/process/process.h"
#include "curtail/rpc/server.h"

namespace CLI {
class App;
}

namespace curtail::bench {

// The part of a process in a study, as its flags describe it.
struct Role {
  std::string part;                         // empty: it is the study
  std::string variant;                      // or a config
  std::vector<std::string> addresses = {};  // of the processes that it calls
  int service_time_ms = 2;                  // of a leaf
  std::vector<int> cpus = {};               // on which it runs; empty: all. Not a flag
};
// The flags that make a program play a role; not for users.
void AddRoleFlags(CLI::App& app, Role* role);

// Serves until SIGTERM, or says on stderr why not. Returns the exit code. REQUIRES: BlockStopSignals().
int ServeRole(ServerOptions options, std::vector<std::unique_ptr<Service>> services);
// Says on stderr why a role cannot be played. Returns the exit code.
int RefuseRole(const absl::Status& status);

// A Tier is a process of this program that serves a role. It ends with the object, and with the thread that made it.
class Tier {
 public:
  // `log_folder` takes its standard error. Errors: ABORTED when it ended by itself, with its message;
  // DEADLINE_EXCEEDED; CANCELLED when `stop` was set.
  static absl::StatusOr<std::unique_ptr<Tier>> Start(const Role& role, const std::string& log_folder,
                                                     const std::atomic<bool>& stop);
  const std::string& address() const { return address_; }
  Nanos Cpu() const { return process_->Cpu(); }

 private:
  Tier(std::unique_ptr<deploy::Process> process, std::string address)
      : process_(std::move(process)), address_(std::move(address)) {}

  const std::unique_ptr<deploy::Process> process_;
  const std::string address_;
};

}  // namespace curtail::bench
