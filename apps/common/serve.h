// SPDX-License-Identifier: Apache-2.0
//
// serve.h - what every service of the applications has in common: its options, its server, and its connections to
// others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/service.h"

namespace curtail::apps {

inline constexpr int kBadConfiguration = 104;

struct ServeOptions {
  std::string service;  // which tier to be
  bool memory = false;  // print how much the service will hold, instead
  std::vector<std::string> listen = {"127.0.0.1:0"};
  std::string config = "SIB1";
  std::string admin;   // address of the admin interface, empty: none
  std::string policy;  // see ServerOptions::policy and those that follow there
  std::string profile;
  bool any_machine = false;
  double slo_ms = 10;
  double drain_s = 10;
  bool quiet = false;  // no progress on stderr while loading
};

// Starts a server, prints "ready ADDR" for each address, and serves until SIGTERM or SIGINT; then drains. REQUIRES:
// BlockStopSignals() was called before any thread was started. Returns the exit code. Errors: those of Config::Parse
// and Server::Start.
[[nodiscard]] absl::StatusOr<int> Serve(const ServeOptions& options,
                                        std::vector<std::unique_ptr<Service>> services);

// What a program can be started as.
struct Tier {
  std::string service;  // its name
  std::function<absl::StatusOr<int>()> serve;
  std::function<absl::StatusOr<uint64_t>()>
      memory;  // bytes that it will hold, found without loading its data
};

// Serves as the tier of `tiers` that options.service names, or prints "memory BYTES" of it; either without threads
// started before. Returns the exit code: kBadConfiguration, after a line on stderr, for a tier that fails or that is
// not there.
int RunTier(std::string_view program, const ServeOptions& options, const std::vector<Tier>& tiers);

// 0, or kBadConfiguration after one line "PROGRAM: why" on stderr.
int ExitCode(std::string_view program, const absl::Status& status);

// The connections of a mid-tier to its leaves, or of any service to others. Immutable; outlives the server that uses
// them.
class Peers {
 public:
  // `lanes`: see ClientOptions::lanes.
  explicit Peers(const std::vector<std::string>& addresses, int lanes = 1, ChannelOptions options = {});
  // In the order of the addresses.
  const std::vector<Channel*>& channels() const { return pointers_; }

 private:
  Client client_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Channel*> pointers_;
};

}  // namespace curtail::apps
