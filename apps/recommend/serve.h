// SPDX-License-Identifier: Apache-2.0
//
// serve.h - loads or trains what a service needs and serves it until a signal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/common/serve.h"
#include "apps/recommend/data_spec.h"
#include "apps/recommend/factorization.h"

namespace curtail::recommend {

struct ServeOptions : apps::ServeOptions {
  std::string data = kDefaultData;       // leaf
  std::string model;                     // leaf: a file of `recommend train`, instead of training
  std::string shard = "0/1";             // leaf
  TrainOptions train;                    // leaf
  size_t neighbors = kDefaultNeighbors;  // leaf
  int threads = 0;                       // leaf, while loading; 0: one a CPU

  std::vector<std::string> leaves;  // mid-tier: addresses
  double leaf_timeout_ms = 1000;    // mid-tier
  int lanes = 1;                    // mid-tier: see ClientOptions::lanes
};

// Both load, listen, print "ready ADDR" for each address, and serve until SIGTERM or SIGINT. REQUIRES:
// BlockStopSignals() was called. Return the exit code; errors are about data, flags or addresses.
[[nodiscard]] absl::StatusOr<int> ServeLeaf(const ServeOptions& options);
[[nodiscard]] absl::StatusOr<int> ServeMidTier(const ServeOptions& options);

// Bytes that the leaf of these options will hold once it serves, estimated from the size of its data or model
// without reading it. Errors: those of the data's spec, of its file and of Check().
[[nodiscard]] absl::StatusOr<size_t> LeafMemory(const ServeOptions& options);
// The same for a mid-tier.
size_t MidTierMemory(const ServeOptions& options);

}  // namespace curtail::recommend
