// SPDX-License-Identifier: Apache-2.0
//
// serve.h - loads what a service needs and serves it until a signal.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/serve.h"
#include "apps/hdsearch/hash_index.h"

namespace curtail::hdsearch {

struct ServeOptions : apps::ServeOptions {
  std::string data = "fashion-mnist";
  int threads = 0;  // while loading; 0: one a CPU

  std::string shard = "0/1";        // leaf
  std::vector<std::string> leaves;  // mid-tier: addresses in shard order
  int lanes = 1;                    // mid-tier: see ClientOptions::lanes
  IndexOptions index;               // mid-tier
};

// Both load, listen, print "ready ADDR" for each address, and serve until SIGTERM or SIGINT. REQUIRES:
// BlockStopSignals() was called. Return the exit code; errors are about data, flags or addresses.
[[nodiscard]] absl::StatusOr<int> ServeLeaf(const ServeOptions& options);
[[nodiscard]] absl::StatusOr<int> ServeMidTier(const ServeOptions& options);

// The bytes that a leaf or mid-tier with these flags holds once it has loaded, beside some MiB of every program. Reads
// the header of the data only. Errors: those of the data and the shard.
[[nodiscard]] absl::StatusOr<size_t> LeafMemory(const ServeOptions& options);
[[nodiscard]] absl::StatusOr<size_t> MidTierMemory(const ServeOptions& options);

}  // namespace curtail::hdsearch
