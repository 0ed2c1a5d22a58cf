// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/query_planner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/index/top_k.h"
#include "apps/hdsearch/messages.h"

namespace curtail::hdsearch {
namespace {

absl::Status Named(const absl::Status& status, const Channel& leaf) {
  return absl::Status(status.code(), absl::StrCat("leaf ", leaf.target(), ": ", status.message()));
}

}  // namespace

QueryPlanner::QueryPlanner(std::unique_ptr<const HashIndex> index, std::vector<Channel*> leaves)
    : index_(std::move(index)), leaves_(std::move(leaves)) {}

absl::StatusOr<LeafRequests<GetRequest>> QueryPlanner::AskForVector(const QueryRequest& request) const {
  const size_t rows = index_->shape().rows;
  if (request.k() == 0 || request.k() > rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", request.k(), "; want 1 to ", rows, ", the number of images"));
  }
  LeafRequests<GetRequest> ask;
  if (request.has_vector()) return ask;
  if (!request.has_image_id())
    return absl::InvalidArgumentError("the request has neither vector nor image_id");
  if (request.image_id() >= rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("image_id ", request.image_id(), "; the corpus has images 0 to ", rows - 1));
  }
  ask.leaves.push_back(leaves_[LeafOf(request.image_id())]);
  ask.requests.emplace_back().set_image_id(request.image_id());
  return ask;
}

absl::StatusOr<QueryVector> QueryPlanner::VectorOf(const QueryRequest& request,
                                                   const LeafRequests<GetRequest>& asked,
                                                   Replies<GetReply> replies) const {
  if (asked.leaves.empty()) return FromProto(request.vector(), index_->dimension());
  if (!replies[0].ok()) return Named(replies[0].status(), *asked.leaves[0]);
  return FromProto(replies[0]->vector(), index_->dimension());
}

NearestRequests QueryPlanner::AskForNearest(const QueryRequest& request, const QueryVector& query) const {
  const std::vector<uint32_t> candidates = index_->Lookup(query.floats(), request.k());
  std::vector<NearestRequest> by_leaf(leaves_.size());
  for (const uint32_t id : candidates) by_leaf[LeafOf(id)].add_candidates(id);

  NearestRequests ask;
  ask.candidates = static_cast<uint32_t>(candidates.size());
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    if (by_leaf[leaf].candidates_size() == 0) continue;
    ToProto(query, by_leaf[leaf].mutable_query());
    by_leaf[leaf].set_k(request.k());
    ask.leaves.push_back(leaves_[leaf]);
    ask.requests.push_back(std::move(by_leaf[leaf]));
  }
  return ask;
}

absl::Status QueryPlanner::Merge(const QueryRequest& request, const NearestRequests& asked,
                                 Replies<Neighbors> replies, QueryReply* reply) const {
  TopK best(request.k());
  for (size_t i = 0; i < replies.size(); ++i) {
    const absl::Status status = replies[i].ok() ? AddTo(*replies[i], &best) : replies[i].status();
    if (!status.ok()) return Named(status, *asked.leaves[i]);
  }
  ToProto(best.TakeSorted(), reply->mutable_nearest());
  reply->set_candidates(asked.candidates);
  return absl::OkStatus();
}

}  // namespace curtail::hdsearch
