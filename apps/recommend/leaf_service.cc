// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/leaf_service.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "apps/kit/parallel.h"
#include "apps/recommend/data/data_spec.h"
#include "apps/recommend/model/model.h"
#include "apps/recommend/train_flags.h"
#include "curtail/base/strings.h"

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

namespace {

// A server without any data: code, threads and connections.
constexpr uint64_t kProcessBytes = uint64_t{12} << 20;

struct LeafOptions {
  std::string data = kDefaultData;
  std::string model;  // a file of `recommend train`, instead of training
  TrainOptions train;
  size_t neighbors = kDefaultNeighbors;
  int threads = 0;
};

absl::StatusOr<Model> LoadModel(const LeafOptions& options, const Shard& shard, bool quiet) {
  if (!options.model.empty()) {
    absl::StatusOr<Model> model = ReadModel(options.model);
    if (model.ok() && !(model->shard == shard)) {
      return absl::InvalidArgumentError(Join(options.model, ": at byte 16: is of shard ",
                                             model->shard.ToString(), ", this leaf is --shard ",
                                             shard.ToString()));
    }
    return model;
  }
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  return TrainModel(*data, shard, options.train, ReadOptions{apps::Threads(options.threads), quiet});
}

// Estimated from the size of the data or the model, without reading it.
absl::StatusOr<uint64_t> LeafMemory(const LeafOptions& options, const Shard& shard) {
  const uint64_t rank = options.train.rank;
  if (!options.model.empty()) {
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(options.model, error);
    if (error) return absl::NotFoundError(Join(options.model, ": ", error.message()));
    return kProcessBytes + bytes + bytes / 8;  // the tastes of the users come on top
  }
  if (absl::Status status = Check(options.train); !status.ok()) return status;
  const absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  const absl::StatusOr<uint64_t> ratings = EstimateRatings(*data);
  if (!ratings.ok()) return ratings.status();
  const uint64_t held = *ratings / shard.count;
  // A file does not say how many users and items it has; most have twenty ratings and more.
  const bool synthetic = data->format == DataSpec::Format::kSynthetic;
  const uint64_t users = synthetic ? data->synthetic.users : *ratings / 20;
  const uint64_t items = synthetic ? data->synthetic.items : *ratings / 20;
  const uint64_t model =
      held * 8 + std::min(held, users) * (8 + 8 * rank) + std::min(held, items) * (16 + 4 * rank);
  return kProcessBytes + model + model / 4;  // training leaves holes
}

}  // namespace

HostedService HostedLeaf() {
  auto options = std::make_shared<LeafOptions>();
  return {.name = "leaf",
          .flags =
              [options](Flags& flags) {
                AddDataFlags(flags, &options->data, &options->threads);
                flags.Add("--model", &options->model,
                          "leaf: a file of `recommend train`, instead of training on --data");
                AddNeighborsFlag(flags, &options->neighbors);
                AddTrainFlags(flags, &options->train);
              },
          .make = [options](Env& env) -> MadeService {
            absl::StatusOr<Model> model = LoadModel(*options, env.shard(), env.quiet());
            if (!model.ok()) return model.status();
            auto predictor = std::make_unique<Predictor>(*std::move(model), options->neighbors);
            malloc_trim(0);  // the memory that only loading needed goes back to the system
            return std::make_unique<LeafService>(std::move(predictor));
          },
          .memory = [options](Env& env) { return LeafMemory(*options, env.shard()); }};
}

}  // namespace curtail::recommend
