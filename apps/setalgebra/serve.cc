// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/serve.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "apps/setalgebra/leaf_service.h"
#include "apps/setalgebra/query_service.h"
#include "curtail/exec/config.h"

namespace curtail::setalgebra {
namespace {

// A process that serves and holds no data; and what loading leaves behind in the allocator.
constexpr uint64_t kServerBytes = uint64_t{12} << 20, kLoaderBytes = uint64_t{3} << 20;

// Different words in so many bytes of text, by Heaps' law; its constants fit WordNet and generated English of
// 1 GB.
double VocabularyOf(double text_bytes) { return 10 * std::pow(text_bytes / 6, 0.55); }

}  // namespace

absl::StatusOr<int> ServeLeaf(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  const absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  const absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto index = Index::Load(*data, *shard, {options.stop_words, options.threads, options.quiet});
  if (!index.ok()) return index.status();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<LeafService>(*std::move(index)));
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<int> ServeMidTier(const ServeOptions& options) {
  if (options.leaves.empty()) {
    return absl::InvalidArgumentError(
        "a mid-tier needs its leaves: --leaf ADDR for each shard, in shard order");
  }
  const apps::Peers leaves(options.leaves, options.lanes);
  QueryPlannerOptions planner_options;
  planner_options.leaf_timeout =
      std::chrono::duration_cast<Nanos>(std::chrono::duration<double, std::milli>(options.leaf_timeout_ms));
  const QueryPlanner planner(leaves.channels(), planner_options);
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakeQueryService(planner));
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<uint64_t> LeafMemory(const ServeOptions& options) {
  const absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  const absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  const absl::StatusOr<uint64_t> text = EstimateTextBytes(*data);
  if (!text.ok()) return text.status();
  const double part = static_cast<double>(*text) / shard->count;
  // A posting for ten bytes of text, 2.5 bytes each; 40 bytes a word.
  return kServerBytes + kLoaderBytes + static_cast<uint64_t>(part / 10 * 2.5 + VocabularyOf(part) * 40);
}

uint64_t MidTierMemory(const ServeOptions& options) {
  return kServerBytes + options.leaves.size() * (uint64_t{128} << 10);
}

}  // namespace curtail::setalgebra
