// SPDX-License-Identifier: Apache-2.0
//
// postings.h - posting lists: for each word the documents that hold it, as 16-bit numbers.
//
// A list is cut into chunks of 65536 documents, as Roaring bitmaps are (Chambi, Lemire, Kaser and Godin,
// "Better bitmap performance with Roaring bitmaps", 2016). A chunk with up to 4096 documents is a sorted
// array of the low 16 bits of their numbers, a fuller one a bitmap of 8 KiB. All lists lie one after the
// other in one array of 16-bit units:
//
//   chunks - 1, then for each chunk: high 16 bits, documents - 1; then the chunks themselves
//
// A list of any length costs at most 2 bytes a document, and 2 and 4 for each of its chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/setalgebra/index/kernels.h"

namespace curtail::setalgebra {

inline constexpr uint32_t kChunkDocuments = 65536;
// A longer chunk is a bitmap.
inline constexpr uint32_t kMaxArray = 4096;
inline constexpr uint32_t kBitmapUnits = kChunkDocuments / 16;

// One chunk of a list. `units` is an array of `size` numbers, or a bitmap: number n is bit n % 16 of unit n /
// 16.
struct Chunk {
  const uint16_t* units = nullptr;
  uint32_t size = 0;
  uint16_t high = 0;
  bool dense() const { return size > kMaxArray; }
};

// A PostingList goes through the chunks of a list. Value type; refers to the store.
class PostingList {
 public:
  PostingList() = default;  // an empty one
  explicit PostingList(const uint16_t* begin);

  bool at_end() const { return left_ == 0; }
  // REQUIRES for both: !at_end().
  Chunk chunk() const;
  void Next();
  // Documents in this chunk and those behind it.
  uint64_t size() const;

 private:
  const uint16_t* head_ = nullptr;   // of the chunk: high bits, documents - 1
  const uint16_t* units_ = nullptr;  // of the chunk
  uint32_t left_ = 0;                // chunks, this one among them
};

// Documents with their words, in the documents' order, as they are collected to build a store.
struct ForwardLists {
  std::vector<uint32_t> words;  // no word twice in a document
  std::vector<uint32_t> ends;   // of the documents' words
};

// A PostingStore holds the lists of words 0 to words() - 1. Immutable: any number of threads at once.
class PostingStore {
 public:
  PostingStore() = default;
  // The documents of `parts` count from 0 throughout. Errors: RESOURCE_EXHAUSTED above 2^32 units.
  [[nodiscard]] static absl::StatusOr<PostingStore> Build(size_t words, std::span<const ForwardLists> parts);

  size_t words() const { return begins_.size(); }
  PostingList list(uint32_t word) const { return PostingList(units_.data() + begins_[word]); }
  uint64_t postings() const { return postings_; }
  // Of memory, all included.
  size_t bytes() const {
    return units_.capacity() * sizeof(uint16_t) + begins_.capacity() * sizeof(uint32_t);
  }

 private:
  std::vector<uint16_t> units_;
  std::vector<uint32_t> begins_;  // where a word's list begins in `units_`
  uint64_t postings_ = 0;
};

// The most lists that can be intersected at once.
inline constexpr size_t kMaxTerms = 10;

// Appends base + n for each document n that is in all lists, rising; the shortest lists come first. `lists`
// is put in another order. REQUIRES: 1 to kMaxTerms lists. About 16 KiB of stack.
void IntersectLists(const Kernels& kernels, std::span<PostingList> lists, uint32_t base,
                    std::vector<uint32_t>* documents);

}  // namespace curtail::setalgebra
