// SPDX-License-Identifier: Apache-2.0
//
// host_command_line.h - the command line of a program of services: its flags, its commands, and what is wrong with it.
#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/host/host_flags.h"

namespace curtail::internal {

// Says what is wrong, and returns the exit code for it, 104.
int RefuseStart(std::string_view program, const absl::Status& status);

// Thread-compatible; `program` outlives it.
class HostCommandLine {
 public:
  explicit HostCommandLine(const HostProgram& program);

  // Those of a service, and with `words` what is no flag.
  void AddHostFlags(HostFlags* f, bool words);
  void AddCommands();
  // The exit code if the program ends here.
  std::optional<int> Parse(int argc, char** argv);
  // The one that was given; null: the program serves.
  const HostCommand* command() const;

 private:
  // "; did you mean \"--listen\"?" for "--listn"; empty when no flag is near.
  std::string FlagMeant(std::string_view word) const;

  const HostProgram& program_;
  CLI::App app_;
  std::deque<Flags> flags_;
  std::vector<std::pair<CLI::App*, const HostCommand*>> commands_;
};

}  // namespace curtail::internal
