// SPDX-License-Identifier: Apache-2.0
//
// serve.h - loads what a service needs and serves it until a signal.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/hdsearch/hash_index.h"

namespace curtail::hdsearch {

struct ServeOptions {
  std::string data = "fashion-mnist";
  std::vector<std::string> listen = {"127.0.0.1:0"};
  std::string config = "SIB1";
  std::string admin;   // address of the admin interface, empty: none
  std::string policy;  // see ServerOptions::policy and those that follow there
  std::string profile;
  bool any_machine = false;
  double slo_ms = 10;
  double drain_s = 10;
  int threads = 0;  // while loading; 0: one a CPU
  bool quiet = false;

  std::string shard = "0/1";        // leaf
  std::vector<std::string> leaves;  // mid-tier: addresses in shard order
  int lanes = 1;                    // mid-tier: see ClientOptions::lanes
  IndexOptions index;               // mid-tier
};

// Both load, listen, print "ready ADDR" for each address, and serve until SIGTERM or SIGINT. REQUIRES:
// BlockStopSignals() was called. Return the exit code; errors are about data, flags or addresses.
[[nodiscard]] absl::StatusOr<int> ServeLeaf(const ServeOptions& options);
[[nodiscard]] absl::StatusOr<int> ServeMidTier(const ServeOptions& options);

}  // namespace curtail::hdsearch
