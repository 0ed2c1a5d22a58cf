// SPDX-License-Identifier: Apache-2.0
//
// workload.h - word queries for the load generator, judged against a scan of the documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/kit/load/requests.h"
#include "curtail/load/message/workload.h"

namespace curtail::setalgebra {

struct WorkloadOptions {
  std::string data = "wordnet";
  size_t stop_words = 50;  // as the leaves leave out
  size_t count = 10000;    // different queries
  size_t max_terms = 10;   // a query has 1 to so many, each number as likely; 1 to 10
  // The part of the queries whose words are drawn from one random document, so that some document holds them
  // all. The words of the others are drawn each by itself, as muTune's were; most of those find nothing.
  double together = 0.5;
  uint64_t seed = 1;
  // Replies to the first so many queries are judged; 0 judges none.
  size_t judged = 1000;
  bool allow_partial = false;
  int threads = 0;  // 0: one a CPU
  bool quiet = false;
};

// A workload of SetAlgebra.Query whose words are drawn by how often they occur in the collection; request i
// sends query i modulo their number. Its score is 1 for a reply with exactly the documents that a scan of the
// whole collection finds, else 0. Reads the collection three times, which takes seconds. Errors:
// INVALID_ARGUMENT (options, or a collection of stop words only), those of reading.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options);

// The application as the tools load it; see apps/kit/load/requests.h.
apps::AppRequests Requests();

}  // namespace curtail::setalgebra
