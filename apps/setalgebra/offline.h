// SPDX-License-Identifier: Apache-2.0
//
// offline.h - the tools around the services: writing collections, asking them without servers, and their
// numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace curtail::setalgebra {

struct OfflineOptions {
  std::string data = "wordnet";
  size_t stop_words = 50;
  int threads = 0;  // 0: one a CPU
  bool quiet = false;
};

// Writes every document of `data` as one line to `path`, line ends inside as blanks. A regular file takes
// its name only when it is complete.
[[nodiscard]] absl::Status WriteDocuments(const OfflineOptions& options, const std::string& path);
// Prints the number of documents that hold all terms, and the first `show` of them with their text.
[[nodiscard]] absl::Status PrintQuery(const OfflineOptions& options, const std::vector<std::string>& terms,
                                      size_t show);
// Prints how large the index of each of `shards` shards is, how long it took to build, and the stop words.
[[nodiscard]] absl::Status PrintStats(const OfflineOptions& options, size_t shards);

}  // namespace curtail::setalgebra
