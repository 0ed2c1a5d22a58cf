// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/serve.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/common/parallel.h"
#include "apps/hdsearch/data_spec.h"
#include "apps/hdsearch/leaf_service.h"
#include "apps/hdsearch/search_service.h"
#include "apps/hdsearch/vector_store.h"
#include "curtail/exec/config.h"

namespace curtail::hdsearch {
namespace {

int Threads(const ServeOptions& options) { return options.threads > 0 ? options.threads : apps::CpuCount(); }

absl::StatusOr<Shape> ShapeOf(const ServeOptions& options) {
  const absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  const absl::StatusOr<std::unique_ptr<RowReader>> rows = OpenRows(*data);
  if (!rows.ok()) return rows.status();
  return (*rows)->shape();
}

}  // namespace

absl::StatusOr<int> ServeLeaf(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto store = VectorStore::Load(*data, *shard, LoadOptions{Threads(options), options.quiet});
  if (!store.ok()) return store.status();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<LeafService>(*std::move(store)));
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<int> ServeMidTier(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  if (options.leaves.empty()) {
    return absl::InvalidArgumentError(
        "a mid-tier needs its leaves: --leaf ADDR for each shard, in shard order");
  }
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto index = HashIndex::Build(*data, options.index, Threads(options), options.quiet);
  if (!index.ok()) return index.status();
  if ((*index)->shape().rows < options.leaves.size()) {
    return absl::InvalidArgumentError(absl::StrCat(options.leaves.size(), " leaves, but only ",
                                                   (*index)->shape().rows, " images; use fewer leaves"));
  }
  const apps::Peers leaves(options.leaves, options.lanes);
  const QueryPlanner planner(*std::move(index), leaves.channels());
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakeSearchService(planner));
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<size_t> LeafMemory(const ServeOptions& options) {
  const absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  const absl::StatusOr<Shape> shape = ShapeOf(options);
  if (!shape.ok()) return shape.status();
  return shape->rows * shape->row_bytes() / std::max<size_t>(shard->count, 1);
}

absl::StatusOr<size_t> MidTierMemory(const ServeOptions& options) {
  const absl::StatusOr<Shape> shape = ShapeOf(options);
  if (!shape.ok()) return shape.status();
  return HashIndex::EstimateBytes(shape->rows, options.index);
}

}  // namespace curtail::hdsearch
