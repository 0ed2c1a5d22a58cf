// SPDX-License-Identifier: Apache-2.0
//
// predict_planner.h - what the mid-tier does with a request before and after its leaves do theirs.
//
// The handler (predict_service.h) waits; a planner never does.
#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/recommend/data/hash.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"
#include "recommend.pb.h"

namespace curtail::recommend {

// A PredictPlanner knows the leaves. Immutable: any number of requests at once.
class PredictPlanner {
 public:
  // The channels outlive the planner; no leaf may take longer than `leaf_timeout`. REQUIRES: at least one
  // leaf.
  PredictPlanner(std::vector<Channel*> leaves, Nanos leaf_timeout);

  std::span<Channel* const> leaves() const { return leaves_; }

  // Step 1: what to ask all leaves.
  LeafRequest Ask(const PredictRequest& request) const;
  // Until when to wait for them, for a request that has until `deadline`: a partial answer must still get
  // there, so that a tenth of the time is kept for it.
  Deadline WaitUntil(const PredictRequest& request, Deadline deadline) const;
  // Step 2: the mean of their answers. Errors: those of a leaf that failed, with its name, unless the request
  // allows a partial answer; then those of the first leaf if none answered. FAILED_PRECONDITION (leaves that
  // do not hold each shard of one set of ratings once; their order does not matter), always.
  absl::Status Merge(const PredictRequest& request, std::span<const absl::StatusOr<LeafReply>> replies,
                     PredictReply* reply) const;

 private:
  // Errors: FAILED_PRECONDITION when `reply`, of leaf i, does not go with those before it, of which `first`
  // is the first, `reply` itself when there is none; `seen` are their shards, to which it adds.
  absl::Status CheckShard(size_t i, const LeafReply& reply, const LeafReply& first,
                          std::bitset<kMaxShards>* seen) const;

  // Immutable after construction.
  const std::vector<Channel*> leaves_;
  const Nanos leaf_timeout_;
};

}  // namespace curtail::recommend
