// SPDX-License-Identifier: Apache-2.0
//
// Generated documents. Each has a random sequence of its own, so that it does not depend on those before it.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "apps/setalgebra/data/data_spec.h"
#include "curtail/base/rng.h"

namespace curtail::setalgebra {
namespace {

// A word for a rank: short ones for the frequent, no two alike.
std::string WordOf(uint64_t rank) {
  constexpr std::string_view kConsonants = "bcdfghjklmnpqrstvwxz", kVowels = "aeiou";
  constexpr uint64_t kSyllables = kConsonants.size() * kVowels.size();
  std::string word;
  for (uint64_t left = rank + 1; left > 0; left = (left - 1) / kSyllables) {
    const uint64_t syllable = (left - 1) % kSyllables;
    word.push_back(kConsonants[syllable / kVowels.size()]);
    word.push_back(kVowels[syllable % kVowels.size()]);
  }
  return word;
}

class SyntheticReader final : public DocumentReader {
 public:
  explicit SyntheticReader(const SyntheticOptions& options) : options_(options) {
    double sum = 0;
    for (uint64_t rank = 0; rank < options.words; ++rank) {
      words_.push_back(WordOf(rank));
      sum += std::pow(static_cast<double>(rank + 1), -options.skew);
      sums_.push_back(sum);
    }
    for (size_t i = 0; i <= kBuckets; ++i) {
      const double at = static_cast<double>(i) / kBuckets * sums_.back();
      first_.push_back(
          static_cast<uint32_t>(std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin()));
    }
  }

  absl::StatusOr<bool> Next(std::string_view* document) override {
    if (next_ == options_.documents) return false;
    Rng random(options_.seed ^ ((next_ + 1) * 0x9e3779b97f4a7c15));
    const uint64_t length = 1 + random.Below(2 * options_.length - 1);
    text_.clear();
    for (uint64_t i = 0; i < length; ++i) {
      if (i > 0) text_.push_back(' ');
      text_ += words_[std::min(RankAt(random.Uniform01()), words_.size() - 1)];
    }
    ++next_;
    *document = text_;
    return true;
  }
  uint64_t done() const override { return next_; }
  uint64_t total() const override { return options_.documents; }
  const char* unit() const override { return "documents"; }

 private:
  // A power of two, so that the bounds of buckets are exact.
  static constexpr size_t kBuckets = 1 << 16;

  // How many words have a sum of at most `share` of all. A search among the words of one bucket, mostly one or two: among
  // all it would be most of the work of reading.
  size_t RankAt(double share) const {
    const auto bucket = static_cast<size_t>(share * kBuckets);
    const auto begin = sums_.begin() + first_[bucket], end = sums_.begin() + first_[bucket + 1];
    return static_cast<size_t>(std::upper_bound(begin, end, share * sums_.back()) - sums_.begin());
  }

  const SyntheticOptions options_;
  std::vector<std::string> words_;
  std::vector<double> sums_;     // of the probabilities of the words up to each, not normalised
  std::vector<uint32_t> first_;  // the rank at which each bucket of shares begins
  std::string text_;
  uint64_t next_ = 0;
};

}  // namespace

std::unique_ptr<DocumentReader> OpenSynthetic(const DataSpec& spec) {
  return std::make_unique<SyntheticReader>(spec.synthetic);
}

}  // namespace curtail::setalgebra
