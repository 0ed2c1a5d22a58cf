// SPDX-License-Identifier: Apache-2.0
//
// query_planner.h - what the mid-tier does with a query before and after it calls the leaves.
//
// The handler (query_service.h) waits; a planner never does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"
#include "setalgebra.pb.h"

namespace curtail::setalgebra {

struct QueryPlannerOptions {
  // A leaf that has not answered by then counts as failed; 0: when the request's time is up. Leaves of a
  // request that allows partial answers have nine tenths of its time at most, so that there is time to
  // answer.
  Nanos leaf_timeout{0};
};

// A QueryPlanner knows the leaves. Immutable: any number of requests at once.
class QueryPlanner {
 public:
  // The request to every leaf, and how their answers are to be taken.
  struct Plan {
    IntersectRequest request;
    bool allow_partial = false;
  };

  // leaves[i] serves shard i of leaves.size(); the channels outlive the planner. REQUIRES: at least one leaf.
  explicit QueryPlanner(std::vector<Channel*> leaves, QueryPlannerOptions options = {});

  std::span<Channel* const> leaves() const { return leaves_; }

  // Step 1: what to ask the leaves; brings the context's deadline forward to the time they have. Errors:
  // INVALID_ARGUMENT (not 1 to 10 terms, or one that is not a word).
  absl::StatusOr<Plan> Ask(Context& ctx, const QueryRequest& request) const;
  // Step 2: the documents of all; replies[i] is of leaves()[i]. Errors: those of a leaf that failed, with its
  // name, unless the plan allows for it and another answered; INVALID_ARGUMENT (stop words only);
  // FAILED_PRECONDITION (leaves in another order than their shards, or of different collections), always.
  absl::Status Merge(const Plan& plan, std::span<const absl::StatusOr<IntersectReply>> replies,
                     QueryReply* reply) const;

 private:
  // Errors: FAILED_PRECONDITION when `reply`, of leaf i, does not belong to this deployment; `first` is the
  // first of those that answered.
  absl::Status CheckShard(size_t i, const IntersectReply& reply, size_t first, uint64_t collection) const;

  // Immutable after construction.
  const std::vector<Channel*> leaves_;
  const QueryPlannerOptions options_;
};

}  // namespace curtail::setalgebra
