// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/leaf_service.h"

#include <utility>

namespace curtail::recommend {

static_assert(static_cast<int>(Evidence::kMean) == BASIS_MEAN &&
              static_cast<int>(Evidence::kUser) == BASIS_USER &&
              static_cast<int>(Evidence::kItem) == BASIS_ITEM &&
              static_cast<int>(Evidence::kNeighbors) == BASIS_NEIGHBORS);

LeafService::LeafService(std::unique_ptr<const Predictor> predictor)
    : Leaf::Service(/*never_waits=*/true), predictor_(std::move(predictor)) {}

absl::Status LeafService::Predict(Context& /*ctx*/, const LeafRequest& request, LeafReply* reply) {
  const Prediction prediction = predictor_->Predict(request.user(), request.item());
  reply->set_rating(prediction.rating);
  reply->set_basis(static_cast<Basis>(prediction.evidence));
  const Model& model = predictor_->model();
  reply->set_shard(model.shard.index);
  reply->set_shards(model.shard.count);
  reply->set_data(model.data);
  return absl::OkStatus();
}

}  // namespace curtail::recommend
