// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/leaf_service.h"

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/setalgebra/data/data_spec.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {

LeafService::LeafService(std::unique_ptr<const Index> index)
    : Leaf::Service(/*never_waits=*/true), index_(std::move(index)), kernels_(BestKernels()) {}

absl::Status LeafService::Intersect(Context& /*ctx*/, const IntersectRequest& request,
                                    IntersectReply* reply) {
  const size_t count = static_cast<size_t>(request.terms_size());
  if (count > kMaxTerms) {
    return absl::InvalidArgumentError(Join(count, " terms; want 1 to ", kMaxTerms));
  }
  std::array<std::string_view, kMaxTerms> terms;
  for (size_t i = 0; i < count; ++i) terms[i] = request.terms(static_cast<int>(i));
  std::vector<uint32_t> documents, stop_words;
  absl::Status found = index_->Find(kernels_, std::span(terms).first(count), &documents, &stop_words);
  if (!found.ok()) return found;
  reply->mutable_documents()->Add(documents.begin(), documents.end());
  reply->mutable_stop_words()->Add(stop_words.begin(), stop_words.end());
  reply->set_shard(index_->shard().index);
  reply->set_shards(index_->shard().count);
  reply->set_collection(index_->fingerprint());
  return absl::OkStatus();
}

namespace {

// A process that serves and holds no data; and what loading leaves behind in the allocator.
constexpr uint64_t kServerBytes = uint64_t{12} << 20, kLoaderBytes = uint64_t{3} << 20;

struct LeafOptions {
  std::string data = "wordnet";
  size_t stop_words = 50;
  int threads = 0;
};

// Different words in so many bytes of text, by Heaps' law; its constants fit WordNet and generated English of 1 GB.
double VocabularyOf(double text_bytes) { return 10 * std::pow(text_bytes / 6, 0.55); }

// Estimated from the size of the data, without reading them.
absl::StatusOr<uint64_t> LeafMemory(const LeafOptions& options, const Shard& shard) {
  const absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  const absl::StatusOr<uint64_t> text = EstimateTextBytes(*data);
  if (!text.ok()) return text.status();
  const double part = static_cast<double>(*text) / shard.count;
  // A posting for ten bytes of text, 2.5 bytes each; 40 bytes a word.
  return kServerBytes + kLoaderBytes + static_cast<uint64_t>(part / 10 * 2.5 + VocabularyOf(part) * 40);
}

}  // namespace

HostedService HostedLeaf() {
  auto options = std::make_shared<LeafOptions>();
  return {
      .name = "leaf",
      .flags =
          [options](Flags& flags) {
            flags.Add("--data", &options->data, "leaf: the collection; the same for all leaves");
            flags.Add("--stop-words", &options->stop_words,
                      "leaf: so many words, the most frequent, are not indexed; the same for all leaves");
            flags.Add("--threads", &options->threads, "leaf: threads while loading, 0: one a CPU", {0, 1024});
          },
      .make = [options](Env& env) -> MadeService {
        const absl::StatusOr<DataSpec> data = DataSpec::Parse(options->data);
        if (!data.ok()) return data.status();
        auto index = Index::Load(*data, env.shard(), {options->stop_words, options->threads, env.quiet()});
        if (!index.ok()) return index.status();
        return std::make_unique<LeafService>(*std::move(index));
      },
      .memory = [options](Env& env) { return LeafMemory(*options, env.shard()); }};
}

}  // namespace curtail::setalgebra
