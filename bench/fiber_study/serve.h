// SPDX-License-Identifier: Apache-2.0
//
// serve.h - what the processes of the study do, and how this program starts itself as one of them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/process.h"
#include "variant.h"

namespace curtail::study {

// A process of the study, as its flags describe it.
struct Role {
  std::string part;                    // one of kParts, or kComposer
  std::string variant;                 // of the composer; of a part its config
  std::vector<std::string> addresses;  // of the parts, for the composer
};
inline constexpr char kComposer[] = "compose";

// The flags that make this program play a role.
inline constexpr char kRoleFlag[] = "--role";
inline constexpr char kVariantFlag[] = "--variant";
inline constexpr char kPartFlag[] = "--part";

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

 private:
  Tier(std::unique_ptr<deploy::Process> process, std::string address)
      : process_(std::move(process)), address_(std::move(address)) {}

  const std::unique_ptr<deploy::Process> process_;
  const std::string address_;
};

}  // namespace curtail::study
