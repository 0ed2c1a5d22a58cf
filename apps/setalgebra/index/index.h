// SPDX-License-Identifier: Apache-2.0
//
// index.h - the inverted index of one shard: which of its documents hold a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/data/data_spec.h"
#include "apps/setalgebra/data/words.h"
#include "apps/setalgebra/index/kernels.h"
#include "apps/setalgebra/index/postings.h"
#include "curtail/base/shard.h"

namespace curtail::setalgebra {

struct IndexOptions {
  size_t stop_words = 50;  // the most frequent words of the collection, which are not indexed
  int threads = 0;         // 0: one a CPU
  bool quiet = false;      // no progress on stderr
};

// An Index is immutable: any number of threads at once.
class Index {
 public:
  // Reads the collection twice: all of it to count words, so that every shard leaves out the same ones, then
  // its part. Errors: those of reading; INVALID_ARGUMENT when there are fewer documents than shards;
  // ABORTED when the collection has changed in between, as far as documents or words show it.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<const Index>> Load(const DataSpec& spec, Shard shard,
                                                                         const IndexOptions& options);
  // The second of the two readings; `counts` is what the first found.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<const Index>> LoadCounted(const DataSpec& spec,
                                                                                Shard shard,
                                                                                const IndexOptions& options,
                                                                                WordCounts counts);

  // Appends the documents of this shard that hold all `terms`, rising, and the positions of terms that are
  // stop words, which have no say; a query of stop words only finds nothing. Terms as NormalTerm() gives
  // them. Errors: INVALID_ARGUMENT unless there are 1 to kMaxTerms.
  [[nodiscard]] absl::Status Find(const Kernels& kernels, std::span<const std::string_view> terms,
                                  std::vector<uint32_t>* documents, std::vector<uint32_t>* stop_words) const;

  Shard shard() const { return shard_; }
  uint64_t first_document() const { return first_; }
  // Of this shard.
  uint64_t documents() const { return documents_; }
  // The same for all shards of one collection; see Fingerprint().
  uint64_t fingerprint() const { return fingerprint_; }
  const WordTable& stop_words() const { return stop_words_; }
  // Words of this shard, with their lists by the word's number.
  const WordTable& words() const { return words_; }
  const PostingStore& postings() const { return postings_; }

 private:
  Index() = default;

  // Immutable after Load().
  Shard shard_;
  uint64_t first_ = 0;
  uint64_t documents_ = 0;
  uint64_t fingerprint_ = 0;
  WordTable stop_words_;
  WordTable words_;
  PostingStore postings_;
};

}  // namespace curtail::setalgebra
