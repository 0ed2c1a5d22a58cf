// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/workload.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "apps/setalgebra/data/collection.h"
#include "apps/setalgebra/index/postings.h"
#include "apps/setalgebra/index/scan.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "setalgebra.curtail.h"
#include "setalgebra.pb.h"

namespace curtail::setalgebra {
namespace {

using Terms = std::vector<std::string>;

constexpr size_t kMaxCount = 10'000'000;  // a few GB of requests

// A reply with one wrong document scores as one without any right one: 0.
class QueryWorkload final : public Workload {
 public:
  QueryWorkload(std::vector<std::string> requests, std::vector<std::vector<uint32_t>> answers)
      : requests_(std::move(requests)), answers_(std::move(answers)) {}

  std::string_view method() const override { return SetAlgebra::kQuery.path; }
  std::string Request(uint64_t index) const override { return requests_[index % requests_.size()]; }
  uint64_t distinct() const override { return requests_.size(); }

  double Score(uint64_t index, std::string_view reply) const override {
    const size_t query = index % requests_.size();
    if (query >= answers_.size()) return std::numeric_limits<double>::quiet_NaN();
    QueryReply parsed;
    if (!parsed.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) return 0;
    const auto& found = parsed.documents();
    return std::equal(found.begin(), found.end(), answers_[query].begin(), answers_[query].end()) ? 1 : 0;
  }
  std::string_view score_name() const override { return answers_.empty() ? "" : "exact"; }

 private:
  // Immutable after construction.
  const std::vector<std::string> requests_;           // serialized
  const std::vector<std::vector<uint32_t>> answers_;  // to the first of them
};

// Only UTF-8 can be sent.
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : 0u; };
    const unsigned first = byte(i);
    const size_t more = first < 0x80                    ? 0
                        : first >= 0xc2 && first < 0xe0 ? 1
                        : first >= 0xe0 && first < 0xf0 ? 2
                        : first >= 0xf0 && first < 0xf5 ? 3
                                                        : 4;
    if (more == 4) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    const unsigned second = byte(i + 1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) {
      return false;
    }
    i += 1 + more;
  }
  return true;
}

// The words that queries are made of, each as likely as it is frequent.
class Vocabulary {
 public:
  Vocabulary(WordCounts counts, size_t stop_words)
      : counts_(std::move(counts)), usable_(counts_.words.size()) {
    for (uint32_t i = 0; i < usable_.size(); ++i) usable_[i] = IsUtf8(counts_.words.word(i));
    for (const uint32_t stop : MostFrequent(counts_, stop_words)) usable_[stop] = false;
    // By frequency, so that the order does not depend on which thread counted what.
    for (const uint32_t word : MostFrequent(counts_, usable_.size())) {
      if (!usable_[word]) continue;
      total_ += counts_.counts[word];
      order_.push_back(word);
      sums_.push_back(total_);
    }
  }
  size_t size() const { return order_.size(); }
  uint64_t documents() const { return counts_.documents; }
  std::string Draw(Rng& random) const {
    const auto at = std::upper_bound(sums_.begin(), sums_.end(), random.Below(total_));
    return std::string(counts_.words.word(order_[static_cast<size_t>(at - sums_.begin())]));
  }
  bool Usable(std::string_view word) const {
    const uint32_t number = counts_.words.Find(word);
    return number != WordTable::kNone && usable_[number];
  }

 private:
  const WordCounts counts_;
  std::vector<bool> usable_;
  std::vector<uint32_t> order_;
  std::vector<uint64_t> sums_;  // of the counts up to each word of `order_`
  uint64_t total_ = 0;
};

// Takes up to `wanted` different words out of those that draw() gives; fewer when they do not differ.
template <class Draw>
Terms DrawTerms(size_t wanted, Draw draw) {
  Terms terms;
  for (size_t tries = 0; terms.size() < wanted && tries < 4 * wanted + 16; ++tries) {
    std::string word = draw();
    if (std::find(terms.begin(), terms.end(), word) == terms.end()) terms.push_back(std::move(word));
  }
  return terms;
}

// The usable words of some documents, by the document's number.
absl::StatusOr<std::map<uint64_t, Terms>> ReadDocuments(const DataSpec& spec, const WorkloadOptions& options,
                                                        const Vocabulary& vocabulary,
                                                        const std::vector<uint64_t>& wanted) {
  std::map<uint64_t, Terms> documents;
  for (const uint64_t document : wanted) documents[document];  // so that threads only fill them
  const PassOptions pass{.threads = options.threads, .quiet = options.quiet, .what = "drawing queries"};
  const absl::Status read = ForBatches(spec, pass, [&](int, const Batch& batch) {
    const uint64_t end = batch.first + batch.size();
    for (auto it = documents.lower_bound(batch.first); it != documents.end() && it->first < end; ++it) {
      ForEachWord(batch.document(it->first - batch.first), [&](std::string_view word) {
        if (vocabulary.Usable(word)) it->second.emplace_back(word);
      });
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return documents;
}

absl::StatusOr<std::vector<Terms>> DrawQueries(const DataSpec& spec, const WorkloadOptions& options,
                                               const Vocabulary& vocabulary) {
  Rng random(options.seed);
  std::vector<uint64_t> from(options.count, UINT64_MAX);  // by query: the document its words are drawn from
  std::vector<uint64_t> wanted;
  for (uint64_t& document : from) {
    if (random.Uniform01() >= options.together) continue;
    document = random.Below(vocabulary.documents());
    wanted.push_back(document);
  }
  const auto documents = ReadDocuments(spec, options, vocabulary, wanted);
  if (!documents.ok()) return documents.status();
  std::vector<Terms> queries;
  for (const uint64_t document : from) {
    const size_t size = 1 + random.Below(options.max_terms);
    const auto found = documents->find(document);
    const Terms* const words = found == documents->end() || found->second.empty() ? nullptr : &found->second;
    queries.push_back(DrawTerms(size, [&] {
      return words == nullptr ? vocabulary.Draw(random) : (*words)[random.Below(words->size())];
    }));
  }
  return queries;
}

absl::Status Check(const WorkloadOptions& options) {
  if (options.max_terms < 1 || options.max_terms > kMaxTerms) {
    return absl::InvalidArgumentError(Join("max_terms is ", options.max_terms, "; want 1 to ", kMaxTerms));
  }
  if (options.count < 1 || options.count > kMaxCount) {
    return absl::InvalidArgumentError(
        Join("count is ", options.count, "; want 1 to ", kMaxCount, " queries"));
  }
  if (!(options.together >= 0 && options.together <= 1)) {
    return absl::InvalidArgumentError("together is not a number from 0 to 1");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(options.data);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<WordCounts> counts = CountWords(*spec, options.threads, options.quiet);
  if (!counts.ok()) return counts.status();
  const Vocabulary vocabulary(*std::move(counts), options.stop_words);
  if (vocabulary.size() == 0) {
    return absl::InvalidArgumentError(Join("'", options.data, "' holds no word besides the ",
                                           options.stop_words, " stop words; lower stop_words"));
  }
  absl::StatusOr<std::vector<Terms>> queries = DrawQueries(*spec, options, vocabulary);
  if (!queries.ok()) return queries.status();
  std::vector<std::vector<uint32_t>> answers;
  if (options.judged > 0) {
    const size_t judged = std::min(options.judged, queries->size());
    const std::vector<Terms> first(queries->begin(), queries->begin() + static_cast<std::ptrdiff_t>(judged));
    auto scanned = ScanDocuments(*spec, first, options.threads, options.quiet);
    if (!scanned.ok()) return scanned.status();
    answers = *std::move(scanned);
  }
  std::vector<std::string> requests;
  for (const Terms& terms : *queries) {
    QueryRequest request;
    for (const std::string& term : terms) request.add_terms(term);
    request.set_allow_partial(options.allow_partial);
    requests.push_back(request.SerializeAsString());
  }
  return std::make_unique<QueryWorkload>(std::move(requests), std::move(answers));
}

apps::AppRequests Requests() {
  return {
      .service = "curtail.setalgebra.SetAlgebra", .options = {}, .make = [](const apps::RequestOptions& o) {
        WorkloadOptions options;
        options.data = o.data;
        options.count = o.count;
        options.judged = o.judged;
        options.quiet = o.quiet;
        return MakeWorkload(options);
      }};
}

}  // namespace curtail::setalgebra
