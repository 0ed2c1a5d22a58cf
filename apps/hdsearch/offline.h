// SPDX-License-Identifier: Apache-2.0
//
// offline.h - what one does with a corpus without serving it: measure the index, write files.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "apps/hdsearch/index/hash_index.h"

namespace curtail::hdsearch {

struct RecallOptions {
  std::string data = "fashion-mnist";
  std::string queries;  // empty: the queries that belong to the data
  size_t count = 1000;
  size_t k = 10;
  int threads = 0;  // 0: one a CPU
  IndexOptions index;
};

// Compares the index's candidates with brute force and prints recall, candidates and lookup time on stdout.
absl::Status PrintRecall(const RecallOptions& options);

// Streams the rows of any data spec to `path`, whose ending picks the format: .fvecs (float32) or .npy (as
// the rows are). The file appears complete or not at all. Errors: INVALID_ARGUMENT (ending), those of
// reading, those of apps::OutputFile.
absl::Status WriteRows(const std::string& data, const std::string& path);

}  // namespace curtail::hdsearch
