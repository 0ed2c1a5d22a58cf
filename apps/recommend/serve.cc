// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/serve.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "apps/common/parallel.h"
#include "apps/recommend/leaf_service.h"
#include "apps/recommend/model.h"
#include "apps/recommend/predict_service.h"
#include "apps/recommend/predictor.h"
#include "curtail/base/strings.h"
#include "curtail/exec/config.h"

namespace curtail::recommend {
namespace {

// A server without any data: code, threads and connections.
constexpr size_t kProcessBytes = size_t{12} << 20;

absl::StatusOr<Model> LoadModel(const ServeOptions& options) {
  absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  if (!options.model.empty()) {
    absl::StatusOr<Model> model = ReadModel(options.model);
    if (model.ok() && !(model->shard == *shard)) {
      return absl::InvalidArgumentError(Join(options.model, ": at byte 16: is of shard ",
                                             model->shard.ToString(), ", this leaf is --shard ",
                                             shard->ToString()));
    }
    return model;
  }
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  const int threads = options.threads > 0 ? options.threads : apps::CpuCount();
  return TrainModel(*data, *shard, options.train, ReadOptions{threads, options.quiet});
}

}  // namespace

absl::StatusOr<int> ServeLeaf(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  absl::StatusOr<Model> model = LoadModel(options);
  if (!model.ok()) return model.status();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(
      std::make_unique<LeafService>(std::make_unique<Predictor>(*std::move(model), options.neighbors)));
  malloc_trim(0);  // what loading needed beside the model goes back to the system
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<int> ServeMidTier(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  if (options.leaves.empty()) {
    return absl::InvalidArgumentError("a mid-tier needs its leaves: --leaf ADDR for each");
  }
  const apps::Peers leaves(options.leaves, options.lanes);
  const auto timeout = std::chrono::duration<double, std::milli>(options.leaf_timeout_ms);
  const PredictPlanner planner(leaves.channels(), std::chrono::duration_cast<Nanos>(timeout));
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakePredictService(planner));
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<size_t> LeafMemory(const ServeOptions& options) {
  const absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  const size_t rank = options.train.rank;
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
  const uint64_t held = *ratings / shard->count;
  // Of a file nobody knows before reading it how many users and items it has; most have twenty ratings and
  // more.
  const bool synthetic = data->format == DataSpec::Format::kSynthetic;
  const uint64_t users = synthetic ? data->synthetic.users : *ratings / 20;
  const uint64_t items = synthetic ? data->synthetic.items : *ratings / 20;
  const uint64_t model =
      held * 8 + std::min(held, users) * (8 + 8 * rank) + std::min(held, items) * (16 + 4 * rank);
  return kProcessBytes + model + model / 4;  // training leaves holes
}

size_t MidTierMemory(const ServeOptions& /*options*/) { return kProcessBytes; }

}  // namespace curtail::recommend
