// SPDX-License-Identifier: Apache-2.0
//
// search_service.h - the mid-tier: proposes candidates, asks the leaves that hold them, merges the answers.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/hdsearch/hash_index.h"
#include "apps/hdsearch/vector_store.h"
#include "curtail/rpc/channel.h"
#include "hdsearch.curtail.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {

// A SearchService answers queries over shards. Stateless beyond the immutable index: any number of requests
// at once, under any threading model.
class SearchService final : public Search::Service {
 public:
  // leaves[i] serves shard i of leaves.size(); the channels outlive the service. REQUIRES: at least one leaf.
  SearchService(std::unique_ptr<const HashIndex> index, std::vector<Channel*> leaves);

  // Errors: INVALID_ARGUMENT (no query, wrong dimension, a value not finite, k not from 1 to the number of
  // images, no such image), or the status of a leaf that failed, with its name: part of an answer would pass
  // for all of it.
  absl::Status Query(Context& ctx, const QueryRequest& request, QueryReply* reply) override;

 private:
  absl::StatusOr<QueryVector> VectorOf(Context& ctx, const QueryRequest& request) const;
  // The leaf that holds an image.
  size_t LeafOf(size_t id) const { return OwnerOf(id, index_->shape().rows, leaves_.size()); }

  // Immutable after construction.
  const std::unique_ptr<const HashIndex> index_;
  const std::vector<Channel*> leaves_;
};

}  // namespace curtail::hdsearch
