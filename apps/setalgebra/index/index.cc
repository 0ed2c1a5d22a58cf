// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The first pass counts all words of the collection, which also numbers them. The second reads this
// shard's documents; its threads share the numbers, which change no more, and turn each batch of documents
// into lists of numbers. When all are there the numbers are replaced by those of the words that this shard
// holds, and the lists are turned round (PostingStore::Build).
#include "apps/setalgebra/index/index.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

absl::Status Changed(const DataSpec& spec) {
  return absl::AbortedError(Join("'", spec.text, "' changed while it was read; start again"));
}

// The words of a batch's documents, without repetition and without stop words. Adds to *unknown how many were
// not there in the first pass.
ForwardLists ListsOf(const Batch& batch, const WordTable& words, const std::vector<bool>& is_stop,
                     size_t* unknown) {
  ForwardLists lists;
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(lists.words.size());
    ForEachWord(batch.document(i), [&](std::string_view word) {
      const uint32_t number = words.Find(word);
      if (number == WordTable::kNone) {
        ++*unknown;
      } else if (!is_stop[number]) {
        lists.words.push_back(number);
      }
    });
    std::sort(lists.words.begin() + begin, lists.words.end());
    lists.words.erase(std::unique(lists.words.begin() + begin, lists.words.end()), lists.words.end());
    lists.ends.push_back(static_cast<uint32_t>(lists.words.size()));
  }
  lists.words.shrink_to_fit();
  return lists;
}

// Reads the documents from `begin` to `end` as lists of words, in order. `last`: there are none behind them.
absl::StatusOr<std::vector<ForwardLists>> ReadLists(const DataSpec& spec, const IndexOptions& options,
                                                    uint64_t begin, uint64_t end, bool last,
                                                    const WordTable& words,
                                                    const std::vector<bool>& is_stop) {
  Mutex mu;
  std::vector<ForwardLists> parts;
  uint64_t documents = 0;
  const PassOptions pass{options.threads, options.quiet, "indexing", begin, last ? UINT64_MAX : end};
  const absl::Status read = ForBatches(spec, pass, [&](int, const Batch& batch) {
    size_t unknown = 0;
    ForwardLists lists = ListsOf(batch, words, is_stop, &unknown);
    if (unknown > 0) return Changed(spec);
    const MutexLock lock(mu);
    documents += batch.size();
    if (parts.size() <= batch.number) parts.resize(batch.number + 1);
    parts[batch.number] = std::move(lists);
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  if (documents != end - begin) return Changed(spec);
  return parts;
}

// Numbers the words that occur in `parts` anew, densely, and returns them.
WordTable Renumber(const WordTable& words, std::vector<ForwardLists>* parts) {
  std::vector<uint32_t> numbers(words.size(), WordTable::kNone);
  for (const ForwardLists& lists : *parts) {
    for (const uint32_t word : lists.words) numbers[word] = 0;
  }
  WordTable kept;
  for (uint32_t word = 0; word < numbers.size(); ++word) {
    if (numbers[word] == 0) numbers[word] = kept.Insert(words.word(word));
  }
  for (ForwardLists& lists : *parts) {
    for (uint32_t& word : lists.words) word = numbers[word];
  }
  kept.ShrinkToFit();
  return kept;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Index>> Index::Load(const DataSpec& spec, Shard shard,
                                                         const IndexOptions& options) {
  absl::StatusOr<WordCounts> counts = CountWords(spec, options.threads, options.quiet);
  if (!counts.ok()) return counts.status();
  return LoadCounted(spec, shard, options, *std::move(counts));
}

absl::StatusOr<std::unique_ptr<const Index>> Index::LoadCounted(const DataSpec& spec, Shard shard,
                                                                const IndexOptions& options,
                                                                WordCounts counts) {
  if (counts.documents < shard.count) {
    return absl::InvalidArgumentError(Join("'", spec.text, "' has ", counts.documents, " documents for ",
                                           shard.count, " shards; use fewer shards"));
  }
  std::unique_ptr<Index> index(new Index);
  index->shard_ = shard;
  index->first_ = shard.Begin(counts.documents);
  index->documents_ = shard.End(counts.documents) - index->first_;
  index->fingerprint_ = Fingerprint(counts, options.stop_words);
  std::vector<bool> is_stop(counts.words.size());
  for (const uint32_t word : MostFrequent(counts, options.stop_words)) {
    is_stop[word] = true;
    index->stop_words_.Insert(counts.words.word(word));
  }
  const bool last = shard.index + 1 == shard.count;
  auto parts =
      ReadLists(spec, options, index->first_, index->first_ + index->documents_, last, counts.words, is_stop);
  if (!parts.ok()) return parts.status();
  index->words_ = Renumber(counts.words, &*parts);
  counts = {};
  absl::StatusOr<PostingStore> store = PostingStore::Build(index->words_.size(), *parts);
  if (!store.ok()) return store.status();
  index->postings_ = *std::move(store);
  *parts = {};
  malloc_trim(0);  // what loading took besides
  return index;
}

absl::Status Index::Find(const Kernels& kernels, std::span<const std::string_view> terms,
                         std::vector<uint32_t>* documents, std::vector<uint32_t>* stop_words) const {
  if (terms.empty() || terms.size() > kMaxTerms) {
    return absl::InvalidArgumentError(Join(terms.size(), " terms; want 1 to ", kMaxTerms));
  }
  std::array<PostingList, kMaxTerms> lists;
  size_t have = 0;
  bool missing = false;
  for (uint32_t i = 0; i < terms.size(); ++i) {
    const uint32_t word = words_.Find(terms[i]);
    if (word != WordTable::kNone) {
      lists[have++] = postings_.list(word);
    } else if (stop_words_.Find(terms[i]) != WordTable::kNone) {
      stop_words->push_back(i);
    } else {
      missing = true;
    }
  }
  if (missing || have == 0) return absl::OkStatus();
  IntersectLists(kernels, std::span(lists).first(have), static_cast<uint32_t>(first_), documents);
  return absl::OkStatus();
}

}  // namespace curtail::setalgebra
