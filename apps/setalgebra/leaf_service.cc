// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/leaf_service.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace curtail::setalgebra
