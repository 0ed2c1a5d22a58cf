// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/index/scan.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/data/words.h"

namespace curtail::setalgebra {
namespace {

// The words of the queries, and the queries of each word.
struct Wanted {
  explicit Wanted(const std::vector<std::vector<std::string>>& queries) {
    for (uint32_t query = 0; query < queries.size(); ++query) {
      const std::set<std::string> terms(queries[query].begin(), queries[query].end());
      needs.push_back(static_cast<uint32_t>(terms.size()));
      for (const std::string& term : terms) {
        const uint32_t word = words.Insert(term);
        if (word == askers.size()) askers.emplace_back();
        askers[word].push_back(query);
      }
    }
  }
  WordTable words;
  std::vector<std::vector<uint32_t>> askers;  // by word: queries
  std::vector<uint32_t> needs;                // by query: different words
};

// One thread's part of the scan.
class Scanner {
 public:
  explicit Scanner(const Wanted* wanted)
      : wanted_(wanted),
        answers_(wanted->needs.size()),
        hits_(wanted->needs.size()),
        seen_(wanted->words.size()) {}

  void Scan(uint32_t document, std::string_view text) {
    ++documents_;
    ForEachWord(text, [&](std::string_view word) {
      const uint32_t number = wanted_->words.Find(word);
      if (number == WordTable::kNone || seen_[number] == documents_) return;
      seen_[number] = documents_;
      for (const uint32_t query : wanted_->askers[number]) {
        if (hits_[query]++ == 0) hit_.push_back(query);
      }
    });
    for (const uint32_t query : hit_) {
      if (hits_[query] == wanted_->needs[query]) answers_[query].push_back(document);
      hits_[query] = 0;
    }
    hit_.clear();
  }
  const std::vector<std::vector<uint32_t>>& answers() const { return answers_; }

 private:
  const Wanted* wanted_;
  std::vector<std::vector<uint32_t>> answers_;
  std::vector<uint32_t> hits_;  // by query: words of it in this document
  std::vector<uint32_t> hit_;   // queries with hits
  std::vector<uint64_t> seen_;  // by word: the last document that held it
  uint64_t documents_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<uint32_t>>> ScanDocuments(
    const DataSpec& spec, const std::vector<std::vector<std::string>>& queries, int threads, bool quiet) {
  const Wanted wanted(queries);
  std::vector<Scanner> scanners(static_cast<size_t>(PassThreads(threads)), Scanner(&wanted));
  const PassOptions pass{.threads = threads, .quiet = quiet, .what = "answering by a scan"};
  const absl::Status read = ForBatches(spec, pass, [&](int thread, const Batch& batch) {
    for (size_t i = 0; i < batch.size(); ++i) {
      scanners[static_cast<size_t>(thread)].Scan(static_cast<uint32_t>(batch.first + i), batch.document(i));
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  std::vector<std::vector<uint32_t>> answers(queries.size());
  for (size_t query = 0; query < queries.size(); ++query) {
    for (const Scanner& scanner : scanners) {
      const std::vector<uint32_t>& part = scanner.answers()[query];
      answers[query].insert(answers[query].end(), part.begin(), part.end());
    }
    std::sort(answers[query].begin(), answers[query].end());
  }
  return answers;
}

}  // namespace curtail::setalgebra
