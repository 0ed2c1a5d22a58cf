// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/predict_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

// A leaf's answer, unless it failed or is none.
absl::Status CheckReply(const absl::StatusOr<LeafReply>& reply, const Channel& leaf) {
  if (!reply.ok()) {
    return absl::Status(reply.status().code(), Join("leaf ", leaf.target(), ": ", Message(reply.status())));
  }
  if (std::isfinite(reply->rating()) && reply->basis() != BASIS_UNSPECIFIED) return absl::OkStatus();
  return absl::InternalError(Join("leaf ", leaf.target(), ": answered without a prediction"));
}

}  // namespace

PredictPlanner::PredictPlanner(std::vector<Channel*> leaves, Nanos leaf_timeout)
    : leaves_(std::move(leaves)), leaf_timeout_(leaf_timeout) {}

LeafRequest PredictPlanner::Ask(const PredictRequest& request) const {
  LeafRequest ask;
  ask.set_user(request.user());
  ask.set_item(request.item());
  return ask;
}

Deadline PredictPlanner::WaitUntil(const PredictRequest& request, Deadline deadline) const {
  Nanos patience = leaf_timeout_;
  if (request.allow_partial() && !deadline.infinite()) {
    patience = std::min(patience, deadline.Remaining() / 10 * 9);
  }
  return std::min(deadline, Deadline::In(patience));
}

absl::Status PredictPlanner::CheckShard(size_t i, const LeafReply& reply, const LeafReply& first,
                                        std::bitset<kMaxShards>* seen) const {
  const auto bad = [&](std::string_view what) {
    return absl::FailedPreconditionError(Join("leaf ", leaves_[i]->target(), " ", what));
  };
  if (reply.shards() != leaves_.size() || reply.shard() >= std::min(leaves_.size(), kMaxShards)) {
    return bad(Join("serves shard ", reply.shard(), "/", reply.shards(), ", but there are ", leaves_.size(),
                    " leaves; name the leaf of each shard once"));
  }
  if (seen->test(reply.shard())) {
    return bad(Join("serves shard ", reply.shard(), "/", reply.shards(),
                    ", as another leaf does; name the leaf of each shard once"));
  }
  seen->set(reply.shard());
  if (reply.data() == first.data()) return absl::OkStatus();
  return bad("holds other ratings than the leaves before it; start all with the same --data");
}

absl::Status PredictPlanner::Merge(const PredictRequest& request,
                                   std::span<const absl::StatusOr<LeafReply>> replies,
                                   PredictReply* reply) const {
  double sum = 0;
  uint32_t answered = 0;
  Basis best = BASIS_UNSPECIFIED;
  absl::Status first_error;
  const LeafReply* first = nullptr;
  std::bitset<kMaxShards> seen;
  for (size_t i = 0; i < replies.size(); ++i) {
    absl::Status status = CheckReply(replies[i], *leaves_[i]);
    if (!status.ok()) {
      if (!request.allow_partial()) return status;
      first_error.Update(std::move(status));
      continue;
    }
    if (first == nullptr) first = &*replies[i];
    status = CheckShard(i, *replies[i], *first, &seen);
    if (!status.ok()) return status;
    sum += replies[i]->rating();
    best = std::max(best, replies[i]->basis());
    ++answered;
  }
  if (answered == 0) return first_error;
  reply->set_rating(sum / answered);
  reply->set_basis(best);
  reply->set_leaves_answered(answered);
  reply->set_leaves(static_cast<uint32_t>(leaves_.size()));
  return absl::OkStatus();
}

}  // namespace curtail::recommend
