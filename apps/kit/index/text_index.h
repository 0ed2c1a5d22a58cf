// SPDX-License-Identifier: Apache-2.0
//
// text_index.h - the words of texts in a folder of Xapian's: which texts hold all words of a query.
//
// A word is what Xapian takes for one, in any script, folded (words.h), of at most 240 bytes: no stemming, as texts are in
// any language. A query has no syntax; its text is cut into words as a document's is, and one with a longer word finds nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::apps {

// A TextIndex is thread-safe. Its calls read and write files, and Apply() waits for the disk: for threads that may block.
// Errors of all calls: DATA_LOSS (the folder is damaged), UNAVAILABLE (the disk, or another process that has the folder).
class TextIndex {
 public:
  struct Change {
    uint64_t id = 0;
    std::string_view text;
    bool remove = false;
    std::vector<std::string_view> tags = {};  // of at most 240 bytes each
    uint64_t number = 0;                      // such as a year
  };
  struct Query {
    std::string_view text;
    bool newest = false;  // by id, instead of score
    uint64_t before = 0;  // with `newest`: ids below it only; 0: all
    uint32_t limit = 0;
    std::string_view tag = {};                  // texts with this tag only; empty: all
    uint64_t least = 0, greatest = UINT64_MAX;  // texts with a number between them only
  };
  struct Hit {
    uint64_t id = 0;
    double score = 0;
  };
  static constexpr size_t kMostWords = 16;

  // Makes the folder if it is not there. `sync`: what was applied survives a loss of power.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<TextIndex>> Open(const std::string& folder, bool sync);
  ~TextIndex();
  TextIndex(const TextIndex&) = delete;
  TextIndex& operator=(const TextIndex&) = delete;

  // All of them or none. Queries that begin afterwards see them. Later changes of a text replace earlier ones.
  [[nodiscard]] absl::Status Apply(std::span<const Change> changes);
  // Sets `hits` to the best texts that hold all words, the best first, of equal scores the newer. Further errors:
  // INVALID_ARGUMENT unless the text has 1 to kMostWords different words. Without a word, but with a tag or a bound of the numbers, it
  // finds the newest of all texts that have those.
  [[nodiscard]] absl::Status Find(const Query& query, std::vector<Hit>* hits) const;

 private:
  struct Impl;
  absl::Status FindAll(Query query, std::vector<Hit>* hits) const;
  explicit TextIndex(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::apps
