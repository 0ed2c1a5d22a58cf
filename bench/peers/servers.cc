// SPDX-License-Identifier: Apache-2.0
#include "servers.h"

#include <filesystem>
#include <system_error>

namespace curtail::bench {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(20);
constexpr Nanos kWrappedStartTimeout = std::chrono::seconds(120);

// What runs `stack` in `role`, behind `wrapper`.
Command CommandFor(const StackInfo& stack, const std::string& role, const std::string& leaf_config,
                   const std::vector<std::string>& wrapper) {
  const bool own = stack.program.empty();
  Command command;
  command.file = own ? "/proc/self/exe" : stack.program;
  command.argv = {own ? "peers" : stack.program};
  if (!wrapper.empty()) {
    std::error_code error;
    command.argv = wrapper;
    command.argv.push_back(own ? std::filesystem::read_symlink("/proc/self/exe", error).string()
                               : stack.program);
    command.file = wrapper[0];
  }
  command.argv.insert(command.argv.end(), {"--stack", stack.name, "--role", role});
  if (own) command.argv.insert(command.argv.end(), {"--leaf-config", leaf_config});
  return command;
}

}  // namespace

absl::StatusOr<Servers> StartServers(const StackInfo& stack, const Setup& setup,
                                     const std::string& leaf_config,
                                     const std::vector<std::string>& mid_wrapper) {
  Servers servers;
  for (int i = 0; i < setup.leaves; ++i) {
    absl::StatusOr<std::unique_ptr<Child>> leaf = Child::Launch(CommandFor(stack, "leaf", leaf_config, {}));
    if (!leaf.ok()) return leaf.status();
    servers.leaves.push_back(std::move(*leaf));
  }
  Command command = CommandFor(stack, "mid", leaf_config, mid_wrapper);
  for (const auto& leaf : servers.leaves) {
    if (absl::Status up = leaf->AwaitAddress(kStartTimeout); !up.ok()) return up;
    command.argv.insert(command.argv.end(), {"--leaf", leaf->address()});
  }
  absl::StatusOr<std::unique_ptr<Child>> mid = Child::Launch(std::move(command));
  if (!mid.ok()) return mid.status();
  servers.mid = std::move(*mid);
  const absl::Status up =
      servers.mid->AwaitAddress(mid_wrapper.empty() ? kStartTimeout : kWrappedStartTimeout);
  if (!up.ok()) return up;
  return servers;
}

}  // namespace curtail::bench
