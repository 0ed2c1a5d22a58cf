// SPDX-License-Identifier: Apache-2.0
//
// workload.h - image queries for the load generator, judged by recall.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/kit/load/requests.h"
#include "curtail/load/message/workload.h"

namespace curtail::hdsearch {

struct WorkloadOptions {
  std::string data = "fashion-mnist";
  std::string queries;   // a data spec; empty: the queries that belong to the data
  size_t count = 10000;  // different queries at most
  size_t k = 10;
  // Replies to the first so many queries are judged; 0 judges none and reads no corpus.
  size_t judged = 1000;
  int threads = 0;    // for the ground truth; 0: one a CPU
  bool cache = true;  // keep the ground truth below $XDG_CACHE_HOME or ~/.cache
  bool quiet = false;
};

// A workload of Search.Query over vectors; request i sends query i modulo their number, and its score is
// recall@k against brute force. The ground truth comes from the cache or is computed here, which takes
// seconds. Errors: INVALID_ARGUMENT (specs that do not fit each other, k), those of reading.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options);

// The application as the tools load it; see apps/kit/load/requests.h.
apps::AppRequests Requests();

}  // namespace curtail::hdsearch
