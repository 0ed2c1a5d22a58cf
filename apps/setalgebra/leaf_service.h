// SPDX-License-Identifier: Apache-2.0
//
// leaf_service.h - intersects the posting lists of one shard.
#pragma once

#include <memory>

#include "apps/setalgebra/index/index.h"
#include "curtail/rpc/host.h"
#include "setalgebra.curtail.h"
#include "setalgebra.pb.h"

namespace curtail::setalgebra {

// A LeafService answers from one shard with the fastest kernels of this CPU. Stateless beyond the immutable
// index: any number of requests at once.
class LeafService final : public Leaf::Service {
 public:
  explicit LeafService(std::unique_ptr<const Index> index);

  // Terms as NormalTerm() gives them. Errors: INVALID_ARGUMENT (not 1 to 10 terms).
  absl::Status Intersect(Context& ctx, const IntersectRequest& request, IntersectReply* reply) override;

 private:
  // Immutable after construction.
  const std::unique_ptr<const Index> index_;
  const Kernels& kernels_;
};

// The leaf as a program serves it: indexes the shard of its data.
HostedService HostedLeaf();

}  // namespace curtail::setalgebra
