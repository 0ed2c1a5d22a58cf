// SPDX-License-Identifier: Apache-2.0
//
// serve.h - starts a service of the router and serves it until a signal; and fills a router with records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/common/serve.h"
#include "apps/router/workload.h"

namespace curtail::router {

struct ServeOptions : apps::ServeOptions {
  std::string memcached = "127.0.0.1:11211";  // leaf: HOST:PORT or unix:PATH
  int connections = 64;                       // leaf: to memcached, at most; fiber models: from each thread

  std::vector<std::string>
      leaves;        // mid-tier: addresses, the replicas of shard 0 first, then those of shard 1, ...
  int replicas = 1;  // mid-tier: of each shard
  int lanes = 1;     // mid-tier: see ClientOptions::lanes
  double get_timeout_ms = 250;     // mid-tier: see ReplicaOptions::get_timeout
  double write_timeout_ms = 1000;  // mid-tier: see ReplicaOptions::write_timeout
  double probe_ms = 500;           // mid-tier: see ReplicaOptions::probe_interval
};

// Bytes that a service holds once it serves, by estimate: it loads nothing, memcached holds the data.
uint64_t LeafMemory(const ServeOptions& options);
uint64_t MidTierMemory(const ServeOptions& options);

// Both listen, print "ready ADDR" for each address, and serve until SIGTERM or SIGINT. REQUIRES:
// BlockStopSignals() was called. Return the exit code; errors are about flags or addresses. A leaf starts
// whether its memcached runs or not.
[[nodiscard]] absl::StatusOr<int> ServeLeaf(const ServeOptions& options);
[[nodiscard]] absl::StatusOr<int> ServeMidTier(const ServeOptions& options);

struct FillOptions {
  std::string target;  // a mid-tier
  WorkloadOptions workload;
  size_t in_flight = 64;
  double timeout_s = 10;  // of one set
  bool quiet = false;
};

// Sets every record of the workload through the mid-tier, `in_flight` at once. Errors: of the first set that
// failed, after those in flight have ended; or when a replica did not take a record.
[[nodiscard]] absl::Status Fill(const FillOptions& options);

}  // namespace curtail::router
