// SPDX-License-Identifier: Apache-2.0
//
// leaf_service.h - predicts from the ratings of one shard.
#pragma once

#include <memory>

#include "apps/recommend/model/predictor.h"
#include "curtail/rpc/host.h"
#include "recommend.curtail.h"
#include "recommend.pb.h"

namespace curtail::recommend {

// A LeafService answers from one model. Stateless beyond it: any number of requests at once.
class LeafService final : public Leaf::Service {
 public:
  explicit LeafService(std::unique_ptr<const Predictor> predictor);

  // Never fails: what is not known is said by the basis.
  absl::Status Predict(Context& ctx, const LeafRequest& request, LeafReply* reply) override;

 private:
  // Immutable after construction.
  const std::unique_ptr<const Predictor> predictor_;
};

// The leaf as a program serves it: reads or trains the model of its shard.
HostedService HostedLeaf();

}  // namespace curtail::recommend
