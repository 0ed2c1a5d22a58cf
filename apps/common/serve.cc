// SPDX-License-Identifier: Apache-2.0
#include "apps/common/serve.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <utility>

#include "curtail/exec/config.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server_main.h"

namespace curtail::apps {
namespace {

template <class Unit>
Nanos ToNanos(double value) {
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double, Unit>(value));
}

}  // namespace

absl::StatusOr<int> Serve(const ServeOptions& options, std::vector<std::unique_ptr<Service>> services) {
  const absl::StatusOr<Config> config = Config::Parse(options.config);
  if (!config.ok()) return config.status();
  ServerOptions server_options;
  server_options.listen = options.listen;
  server_options.config = *config;
  server_options.admin = options.admin;
  server_options.policy = options.policy;
  server_options.profile = options.profile;
  server_options.any_machine = options.any_machine;
  server_options.slo = ToNanos<std::milli>(options.slo_ms);
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(std::move(server_options), std::move(services));
  if (!server.ok()) return server.status();
  for (const std::string& address : (*server)->addresses()) std::printf("ready %s\n", address.c_str());
  std::fflush(stdout);
  return ServeUntilSignal(**server, ToNanos<std::ratio<1>>(options.drain_s));
}

int RunTier(std::string_view program, const ServeOptions& options, const std::vector<Tier>& tiers) {
  const auto tier =
      std::find_if(tiers.begin(), tiers.end(), [&](const Tier& t) { return t.service == options.service; });
  if (tier == tiers.end()) {
    return ExitCode(
        program, absl::InvalidArgumentError("nothing to do: say what to be with --service, or see --help"));
  }
  if (options.memory) {
    const absl::StatusOr<uint64_t> bytes = tier->memory();
    if (bytes.ok()) std::cout << "memory " << *bytes << "\n";
    return ExitCode(program, bytes.status());
  }
  BlockStopSignals();
  const absl::StatusOr<int> code = tier->serve();
  return code.ok() ? *code : ExitCode(program, code.status());
}

int ExitCode(std::string_view program, const absl::Status& status) {
  if (status.ok()) return 0;
  std::cerr << program << ": " << status.message() << "\n";
  return kBadConfiguration;
}

Peers::Peers(const std::vector<std::string>& addresses, int lanes, ChannelOptions options)
    : client_(ClientOptions{.lanes = lanes}) {
  for (const std::string& address : addresses) {
    channels_.push_back(std::make_unique<Channel>(&client_, address, options));
    pointers_.push_back(channels_.back().get());
  }
}

}  // namespace curtail::apps
