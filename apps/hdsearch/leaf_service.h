// SPDX-License-Identifier: Apache-2.0
//
// leaf_service.h - compares a query with candidates of one shard.
#pragma once

#include <memory>

#include "apps/hdsearch/index/vector_store.h"
#include "curtail/rpc/host.h"
#include "hdsearch.curtail.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {

// A LeafService answers from one shard with the fastest kernels of this CPU. Stateless beyond the immutable
// store: any number of requests at once.
class LeafService final : public Leaf::Service {
 public:
  explicit LeafService(std::unique_ptr<const VectorStore> store);

  // Errors: INVALID_ARGUMENT (vector, k), FAILED_PRECONDITION (a candidate this shard does not hold).
  absl::Status Nearest(Context& ctx, const NearestRequest& request, Neighbors* reply) override;
  // Errors: FAILED_PRECONDITION as above.
  absl::Status Get(Context& ctx, const GetRequest& request, GetReply* reply) override;

 private:
  absl::Status CheckHeld(uint32_t id) const;

  // Immutable after construction.
  const std::unique_ptr<const VectorStore> store_;
  const Kernels& kernels_;
};

// The leaf as a program serves it: loads the shard of its data.
HostedService HostedLeaf();

}  // namespace curtail::hdsearch
