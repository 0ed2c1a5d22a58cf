// SPDX-License-Identifier: Apache-2.0
#include "servers.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"

namespace curtail::bench {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(20);
constexpr Nanos kWrappedStartTimeout = std::chrono::seconds(120);

// The command that runs `stack` in `role`, behind `wrapper`.
std::vector<std::string> CommandFor(const StackInfo& stack, const std::string& role,
                                    const std::string& leaf_config, std::vector<std::string> wrapper) {
  const bool own = stack.program.empty();
  std::error_code error;
  std::vector<std::string> command = std::move(wrapper);
  command.push_back(own ? std::filesystem::read_symlink("/proc/self/exe", error).string() : stack.program);
  command.insert(command.end(), {"--stack", stack.name, "--role", role});
  if (own) command.insert(command.end(), {"--leaf-config", leaf_config});
  return command;
}

absl::StatusOr<ServerProcess> Launch(std::string name, std::vector<std::string> command) {
  auto process =
      deploy::Process::Spawn({.name = std::move(name), .argv = std::move(command), .counted = true});
  if (!process.ok()) return process.status();
  return ServerProcess{*std::move(process), {}};
}

// A server prints its address once it serves.
absl::Status AwaitAddress(ServerProcess& server, Nanos timeout) {
  absl::StatusOr<std::string> address = server.process->AwaitLine("", Deadline::In(timeout), nullptr);
  if (address.ok()) server.address = *std::move(address);
  return address.status();
}

}  // namespace

absl::StatusOr<Servers> StartServers(const StackInfo& stack, const Setup& setup,
                                     const std::string& leaf_config,
                                     const std::vector<std::string>& mid_wrapper) {
  Servers servers;
  for (int i = 0; i < setup.leaves; ++i) {
    absl::StatusOr<ServerProcess> leaf =
        Launch(absl::StrCat("leaf ", i), CommandFor(stack, "leaf", leaf_config, {}));
    if (!leaf.ok()) return leaf.status();
    servers.leaves.push_back(*std::move(leaf));
  }
  std::vector<std::string> command = CommandFor(stack, "mid", leaf_config, mid_wrapper);
  for (ServerProcess& leaf : servers.leaves) {
    if (absl::Status up = AwaitAddress(leaf, kStartTimeout); !up.ok()) return up;
    command.insert(command.end(), {"--leaf", leaf.address});
  }
  absl::StatusOr<ServerProcess> mid = Launch("mid-tier", std::move(command));
  if (!mid.ok()) return mid.status();
  servers.mid = *std::move(mid);
  const absl::Status up =
      AwaitAddress(servers.mid, mid_wrapper.empty() ? kStartTimeout : kWrappedStartTimeout);
  if (!up.ok()) return up;
  return servers;
}

}  // namespace curtail::bench
