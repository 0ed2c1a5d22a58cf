// SPDX-License-Identifier: Apache-2.0
//
// collection.h - passes over all documents of a collection, spread over threads, and what one pass counts.
//
// Only for start-up and offline tools. One thread at a time reads the next batch of documents, all work on
// theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/setalgebra/data/data_spec.h"
#include "apps/setalgebra/data/words.h"

namespace curtail::setalgebra {

// Some documents of a collection that follow each other.
struct Batch {
  size_t number = 0;   // of the batch, from 0
  uint64_t first = 0;  // number of its first document
  std::string text;    // of all of them
  std::vector<size_t> ends;

  size_t size() const { return ends.size(); }
  std::string_view document(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

struct PassOptions {
  int threads = 0;                // 0: one a CPU
  bool quiet = false;             // no progress on stderr
  std::string what;               // what the progress says is being done
  uint64_t begin = 0;             // documents before this one are skipped,
  uint64_t end = UINT64_MAX;      // this one and those behind it not read
  uint64_t most = kMaxDocuments;  // more are an error
};

// How many threads a pass will use.
int PassThreads(int threads);

// Calls body(thread, batch) for all documents of a range, batches in order but several at once, `thread` from
// 0 to PassThreads() - 1. Returns the first error of `body` or of reading; RESOURCE_EXHAUSTED for more than
// `most`.
[[nodiscard]] absl::Status ForBatches(
    const DataSpec& spec, const PassOptions& options,
    const std::function<absl::Status(int thread, const Batch& batch)>& body);

// How often each word occurs in a collection.
struct WordCounts {
  WordTable words;
  std::vector<uint64_t> counts;  // by the word's number
  uint64_t documents = 0;
  uint64_t content = 0;  // differs, as good as surely, when a document is another or at another place
};

// Counts the words of the whole collection. Errors: those of reading; INVALID_ARGUMENT when it holds no
// document.
[[nodiscard]] absl::StatusOr<WordCounts> CountWords(const DataSpec& spec, int threads, bool quiet);

// The numbers of the n words that occur most often, equally frequent ones by their bytes; fewer when there
// are not so many. All processes that count the same collection get the same. These are stop words by collection
// frequency, as in Manning, Raghavan and Schuetze, "Introduction to Information Retrieval", section 2.2.2,
// and muTune.
std::vector<uint32_t> MostFrequent(const WordCounts& counts, size_t n);

// A number that differs, as good as surely, between collections, the order and the boundaries of their
// documents included, and between numbers of stop words.
uint64_t Fingerprint(const WordCounts& counts, size_t stop_words);

}  // namespace curtail::setalgebra
