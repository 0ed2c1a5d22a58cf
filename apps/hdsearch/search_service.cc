// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/search_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/messages.h"
#include "apps/hdsearch/top_k.h"

namespace curtail::hdsearch {
namespace {

absl::Status Named(const absl::Status& status, const Channel& leaf) {
  return absl::Status(status.code(), absl::StrCat("leaf ", leaf.target(), ": ", status.message()));
}

}  // namespace

SearchService::SearchService(std::unique_ptr<const HashIndex> index, std::vector<Channel*> leaves)
    : index_(std::move(index)), leaves_(std::move(leaves)) {}

absl::StatusOr<QueryVector> SearchService::VectorOf(Context& ctx, const QueryRequest& request) const {
  if (request.has_vector()) return FromProto(request.vector(), index_->dimension());
  if (!request.has_image_id())
    return absl::InvalidArgumentError("the request has neither vector nor image_id");
  if (request.image_id() >= index_->shape().rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "image_id ", request.image_id(), "; the corpus has images 0 to ", index_->shape().rows - 1));
  }
  GetRequest get;
  get.set_image_id(request.image_id());
  Channel* const leaf = leaves_[LeafOf(request.image_id())];
  auto replies = ctx.FanOut(std::span<Channel* const>(&leaf, 1), Leaf::kGet, std::vector<GetRequest>{get});
  if (!replies[0].ok()) return Named(replies[0].status(), *leaf);
  return FromProto(replies[0]->vector(), index_->dimension());
}

absl::Status SearchService::Query(Context& ctx, const QueryRequest& request, QueryReply* reply) {
  if (request.k() == 0 || request.k() > index_->shape().rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", request.k(), "; want 1 to ", index_->shape().rows, ", the number of images"));
  }
  absl::StatusOr<QueryVector> query = VectorOf(ctx, request);
  if (!query.ok()) return query.status();

  const std::vector<uint32_t> candidates = index_->Lookup(query->floats(), request.k());
  std::vector<NearestRequest> by_leaf(leaves_.size());
  for (const uint32_t id : candidates) by_leaf[LeafOf(id)].add_candidates(id);

  std::vector<Channel*> asked;
  std::vector<NearestRequest> batch;
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    if (by_leaf[leaf].candidates_size() == 0) continue;
    ToProto(*query, by_leaf[leaf].mutable_query());
    by_leaf[leaf].set_k(request.k());
    asked.push_back(leaves_[leaf]);
    batch.push_back(std::move(by_leaf[leaf]));
  }
  const auto replies = ctx.FanOut(asked, Leaf::kNearest, batch);

  TopK best(request.k());
  for (size_t i = 0; i < replies.size(); ++i) {
    const absl::Status status = replies[i].ok() ? AddTo(*replies[i], &best) : replies[i].status();
    if (!status.ok()) return Named(status, *asked[i]);
  }
  ToProto(best.TakeSorted(), reply->mutable_nearest());
  reply->set_candidates(static_cast<uint32_t>(candidates.size()));
  return absl::OkStatus();
}

}  // namespace curtail::hdsearch
