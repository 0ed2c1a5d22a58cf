// SPDX-License-Identifier: Apache-2.0
//
// ground_truth.h - the true k nearest images of queries, by brute force, and how much of it an answer found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/index/vector_store.h"

namespace curtail::hdsearch {

// Row i holds the ids of the k nearest images of query i, nearest first.
struct GroundTruth {
  size_t k = 0;
  std::vector<uint32_t> ids;
  size_t queries() const { return k == 0 ? 0 : ids.size() / k; }
  std::span<const uint32_t> Of(size_t query) const { return std::span(ids).subspan(query * k, k); }
};

// The first `count` rows of `spec` (all when it has fewer) as queries. Errors: those of reading.
[[nodiscard]] absl::StatusOr<std::vector<QueryVector>> LoadQueries(const DataSpec& spec, size_t count);

// Compares every query with every row, in blocks of rows, so that the corpus is read once and never held
// whole. REQUIRES: queries have the corpus's dimension, k <= its rows. Errors: those of reading.
[[nodiscard]] absl::StatusOr<GroundTruth> BruteForce(const DataSpec& corpus,
                                                     std::span<const QueryVector> queries, size_t k,
                                                     int threads, bool quiet);

// The part of `truth` that is among `found`, 0 to 1.
double Recall(std::span<const uint32_t> truth, std::span<const uint32_t> found);

// Where the answer for these inputs is kept between runs: below $XDG_CACHE_HOME or ~/.cache, empty when
// neither is set. The name covers everything the answer depends on, files' sizes and times among it.
std::string GroundTruthCachePath(const DataSpec& corpus, const DataSpec& queries, size_t count, size_t k);
// NOT_FOUND or DATA_LOSS when the file cannot serve; the caller computes then.
[[nodiscard]] absl::StatusOr<GroundTruth> ReadGroundTruth(const std::string& path, size_t count, size_t k);
// Writes a temporary file beside `path` and renames it: readers see all or nothing.
absl::Status WriteGroundTruth(const std::string& path, const GroundTruth& truth);

}  // namespace curtail::hdsearch
