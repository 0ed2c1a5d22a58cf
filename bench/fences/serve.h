// SPDX-License-Identifier: Apache-2.0
//
// serve.h - the processes of the study, and how this program starts itself as one of them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/process.h"

namespace curtail::fences {

// The parts that a process of the study may play.
inline constexpr char kLeafA[] = "leaf-a";
inline constexpr char kLeafB[] = "leaf-b";
inline constexpr char kShared[] = "shared";  // over both leaves
inline constexpr char kUpper[] = "upper";    // over a shared one
inline constexpr char kFront[] = "front";    // over the four applications

// A process of the study, as its flags describe it.
struct Role {
  std::string part;
  std::string variant;
  std::vector<std::string> addresses;  // of those that it calls
  int service_time_ms = 2;             // of a leaf
  std::vector<int> cpus = {};          // on which it runs; empty: all. No flag of the process
};

// The flags that make this program play a role.
inline constexpr char kRoleFlag[] = "--role";
inline constexpr char kVariantFlag[] = "--variant";
inline constexpr char kPeerFlag[] = "--peer";
inline constexpr char kServiceTimeFlag[] = "--service-time-ms";

// Serves until SIGTERM. Returns the exit code.
int Serve(const Role& role);

// A Tier is a process that serves a role. It ends with the object, and with the thread that made it.
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

}  // namespace curtail::fences
