// SPDX-License-Identifier: Apache-2.0
//
// workload.h - {user, item} pairs for the load generator, judged by an independent computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/kit/load/requests.h"
#include "apps/recommend/data/data_spec.h"
#include "apps/recommend/model/factorization.h"
#include "curtail/load/message/workload.h"

namespace curtail::recommend {

struct WorkloadOptions {
  std::string data = kDefaultData;  // the same as the leaves'
  size_t count = 10000;             // different requests at most
  uint64_t seed = 1;                // of which pairs they are
  size_t leaves = 4;                // how many the servers have; their answers depend on it
  // Replies to the first so many requests are judged; 0 judges none and trains nothing.
  size_t judged = 1000;
  TrainOptions train;  // the same as the leaves'
  size_t neighbors = kDefaultNeighbors;
  bool allow_partial = false;  // let the servers answer without all leaves
  int threads = 0;             // for the models and the judging; 0: one a CPU
  bool quiet = false;
};

// A workload of Recommend.Predict: request i asks for pair i modulo their number, a user and an item drawn
// each in proportion to how many ratings they have. The score is 1 if the reply equals, within 1e-4, the mean
// of the leaves' models as brute force computes it, else 0. Training the models for that takes about as long
// as a leaf's start, for each leaf. Errors: INVALID_ARGUMENT (a bad spec, count or leaves), those of reading.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options);

// The application as the tools load it; see apps/kit/load/requests.h.
apps::AppRequests Requests();

}  // namespace curtail::recommend
