// SPDX-License-Identifier: Apache-2.0
//
// serve.h - loads what a service needs and serves it until a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/serve.h"

namespace curtail::setalgebra {

struct ServeOptions : apps::ServeOptions {
  std::string data = "wordnet";  // leaf
  std::string shard = "0/1";     // leaf
  size_t stop_words = 50;        // leaf: so many words, the most frequent, are not indexed
  int threads = 0;               // leaf: while loading; 0: one a CPU

  std::vector<std::string> leaves;  // mid-tier: addresses in shard order
  int lanes = 1;                    // mid-tier: see ClientOptions::lanes
  double leaf_timeout_ms = 1000;    // mid-tier: see QueryPlannerOptions; 0: none
};

// Both load, listen, print "ready ADDR" for each address, and serve until SIGTERM or SIGINT. REQUIRES:
// BlockStopSignals() was called. Return the exit code; errors are about data, flags or addresses.
[[nodiscard]] absl::StatusOr<int> ServeLeaf(const ServeOptions& options);
[[nodiscard]] absl::StatusOr<int> ServeMidTier(const ServeOptions& options);

// What such a service will hold once it has loaded, in bytes: estimated from the size of the data, without
// reading them.
[[nodiscard]] absl::StatusOr<uint64_t> LeafMemory(const ServeOptions& options);
uint64_t MidTierMemory(const ServeOptions& options);

}  // namespace curtail::setalgebra
