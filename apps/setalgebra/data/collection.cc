// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/data/collection.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "apps/kit/parallel.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 20;
constexpr size_t kBatchDocuments = 16384;

// A Source gives the batches of a pass, each to the thread that asks next. Thread-safe.
class Source {
 public:
  Source(std::unique_ptr<DocumentReader> reader, const PassOptions& options)
      : options_(options),
        reader_(std::move(reader)),
        progress_(options.what, static_cast<size_t>(reader_->total()), options.quiet, reader_->unit()) {}

  // False behind the last batch, and after anybody's failure.
  absl::StatusOr<bool> Next(Batch* batch) {
    const MutexLock lock(mu_);
    if (over_) return false;
    const absl::StatusOr<bool> more = Fill(batch);
    over_ = !more.ok() || !*more;
    const uint64_t done = reader_->done();
    progress_.Add(static_cast<size_t>(done - done_));
    done_ = done;
    return more;
  }
  // The other threads' next batch is none.
  void Stop() {
    const MutexLock lock(mu_);
    over_ = true;
  }

 private:
  absl::StatusOr<bool> Fill(Batch* batch) CURTAIL_REQUIRES(mu_) {
    batch->text.clear(), batch->ends.clear();
    std::string_view document;
    while (next_ < options_.end && batch->text.size() < kBatchBytes && batch->size() < kBatchDocuments) {
      const absl::StatusOr<bool> more = reader_->Next(&document);
      if (!more.ok()) return more.status();
      if (!*more) break;
      if (next_ == options_.most) {
        return absl::ResourceExhaustedError(Join("more than ", options_.most, " documents"));
      }
      if (next_++ < options_.begin) continue;
      if (batch->ends.empty()) batch->first = next_ - 1;
      batch->text.append(document);
      batch->ends.push_back(batch->text.size());
    }
    batch->number = batches_++;
    return !batch->ends.empty();
  }

  const PassOptions options_;
  Mutex mu_;
  const std::unique_ptr<DocumentReader> reader_ CURTAIL_PT_GUARDED_BY(mu_);
  apps::Progress progress_;
  uint64_t done_ CURTAIL_GUARDED_BY(mu_) = 0;
  uint64_t next_ CURTAIL_GUARDED_BY(mu_) = 0;
  size_t batches_ CURTAIL_GUARDED_BY(mu_) = 0;
  bool over_ CURTAIL_GUARDED_BY(mu_) = false;
};

struct Tally {
  WordTable words;
  std::vector<uint64_t> counts;
  uint64_t documents = 0;
  uint64_t content = 0;

  void Add(std::string_view word, uint64_t times) {
    const uint32_t number = words.Insert(word);
    if (number == counts.size()) counts.push_back(0);
    counts[number] += times;
  }
};

uint64_t HashNumbers(uint64_t a, uint64_t b) {
  const uint64_t both[] = {a, b};
  return HashWord({reinterpret_cast<const char*>(both), sizeof both});
}

}  // namespace

int PassThreads(int threads) { return apps::Threads(threads); }

absl::Status ForBatches(const DataSpec& spec, const PassOptions& options,
                        const std::function<absl::Status(int, const Batch&)>& body) {
  absl::StatusOr<std::unique_ptr<DocumentReader>> reader = OpenDocuments(spec);
  if (!reader.ok()) return reader.status();
  Source source(*std::move(reader), options);
  const int threads = PassThreads(options.threads);
  return apps::ForRanges(0, static_cast<size_t>(threads), threads, [&](size_t thread, size_t) {
    Batch batch;
    for (;;) {
      const absl::StatusOr<bool> more = source.Next(&batch);
      if (!more.ok() || !*more) return more.status();
      absl::Status status = body(static_cast<int>(thread), batch);
      if (!status.ok()) return source.Stop(), status;
    }
  });
}

absl::StatusOr<WordCounts> CountWords(const DataSpec& spec, int threads, bool quiet) {
  std::vector<Tally> tallies(static_cast<size_t>(PassThreads(threads)));
  const PassOptions options{.threads = threads, .quiet = quiet, .what = "counting words"};
  const absl::Status read = ForBatches(spec, options, [&](int thread, const Batch& batch) {
    Tally& tally = tallies[static_cast<size_t>(thread)];
    tally.documents += batch.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      ForEachWord(batch.document(i), [&](std::string_view word) { tally.Add(word, 1); });
      tally.content += HashNumbers(HashWord(batch.document(i)), batch.first + i);
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  Tally& all = tallies[0];
  for (size_t other = 1; other < tallies.size(); ++other) {
    Tally tally = std::move(tallies[other]);
    for (uint32_t i = 0; i < tally.counts.size(); ++i) all.Add(tally.words.word(i), tally.counts[i]);
    all.documents += tally.documents;
    all.content += tally.content;
  }
  if (all.documents == 0) {
    return absl::InvalidArgumentError(Join("data '", spec.text, "' hold no documents"));
  }
  return WordCounts{std::move(all.words), std::move(all.counts), all.documents, all.content};
}

std::vector<uint32_t> MostFrequent(const WordCounts& counts, size_t n) {
  std::vector<uint32_t> numbers(counts.counts.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  n = std::min(n, numbers.size());
  const auto before = [&](uint32_t a, uint32_t b) {
    if (counts.counts[a] != counts.counts[b]) return counts.counts[a] > counts.counts[b];
    return counts.words.word(a) < counts.words.word(b);
  };
  std::partial_sort(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(n), numbers.end(), before);
  numbers.resize(n);
  return numbers;
}

uint64_t Fingerprint(const WordCounts& counts, size_t stop_words) {
  // A sum, as the words' order depends on which thread counted what.
  uint64_t sum = counts.documents * 0x9e3779b97f4a7c15 + stop_words + counts.content;
  for (uint32_t i = 0; i < counts.counts.size(); ++i) {
    sum += HashNumbers(HashWord(counts.words.word(i)), counts.counts[i]);
  }
  return sum;
}

}  // namespace curtail::setalgebra
