// SPDX-License-Identifier: Apache-2.0
//
// query_planner.h - what the mid-tier does with a query between its calls to the leaves: which leaf to ask for what,
// and how their answers make one.
//
// The handler (search_service.h) waits; a planner never does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/hdsearch/index/hash_index.h"
#include "apps/hdsearch/index/vector_store.h"
#include "curtail/rpc/channel.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {

// Requests for leaves: requests[i] is for leaves[i].
template <class Request>
struct LeafRequests {
  std::vector<Channel*> leaves;
  std::vector<Request> requests;
};

struct NearestRequests : LeafRequests<NearestRequest> {
  uint32_t candidates = 0;  // in all of them
};

// A QueryPlanner knows the index, and which leaf holds which images. Immutable: any number of requests at once.
class QueryPlanner {
 public:
  template <class Reply>
  using Replies = std::span<const absl::StatusOr<Reply>>;

  // leaves[i] serves shard i of leaves.size(); the channels outlive the planner. REQUIRES: at least one leaf.
  QueryPlanner(std::unique_ptr<const HashIndex> index, std::vector<Channel*> leaves);

  // Step 1: how to get the query's vector; asks no leaf when the request carries it. Errors: INVALID_ARGUMENT (no
  // query, k not from 1 to the number of images, no such image).
  absl::StatusOr<LeafRequests<GetRequest>> AskForVector(const QueryRequest& request) const;
  // Step 2: the vector. Errors: INVALID_ARGUMENT (wrong dimension, a value not finite), or the leaf's, with its
  // name.
  absl::StatusOr<QueryVector> VectorOf(const QueryRequest& request, const LeafRequests<GetRequest>& asked,
                                       Replies<GetReply> replies) const;
  // Step 3: the candidates, and the leaves that hold them.
  NearestRequests AskForNearest(const QueryRequest& request, const QueryVector& query) const;
  // Step 4: the nearest of all; does not look at `asked.requests`. Errors: those of a leaf that failed, with its
  // name: part of an answer would pass for all of it.
  absl::Status Merge(const QueryRequest& request, const NearestRequests& asked, Replies<Neighbors> replies,
                     QueryReply* reply) const;

 private:
  // The leaf that holds an image.
  size_t LeafOf(size_t id) const { return OwnerOf(id, index_->shape().rows, leaves_.size()); }

  // Immutable after construction.
  const std::unique_ptr<const HashIndex> index_;
  const std::vector<Channel*> leaves_;
};

}  // namespace curtail::hdsearch
