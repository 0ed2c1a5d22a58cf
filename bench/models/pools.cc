// SPDX-License-Identifier: Apache-2.0
#include "pools.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>

namespace curtail::models {
namespace {

// The threads that a server starts by default; more threads than that are never better on the machines we know.
constexpr int kMostThreads = 64;
// The paper's pools: the best of its synchronous dispatch, and the largest of its asynchronous models.
constexpr int kPaperSyncWorkers = 50;
constexpr int kPaperAsyncThreads = 4;

using Sizes = std::array<int, 3>;  // network, workers, response; 0 where a model has no such pool

// In ascending order, without doubles.
std::set<Sizes> SyncSizes(const Model& model, int cpus) {
  if (model.execution == Execution::kDispatch) {
    return {{1, std::min(2 * cpus, kMostThreads), 0},
            {1, std::min(8 * cpus, kMostThreads), 0},
            {1, kPaperSyncWorkers, 0}};
  }
  // More pollers than CPUs only take turns.
  if (model.reception == Reception::kPoll) return {{1, 0, 0}, {(cpus + 1) / 2, 0, 0}, {cpus, 0, 0}};
  return {{1, 0, 0}, {cpus, 0, 0}, {std::min(8 * cpus, kMostThreads), 0, 0}};
}

std::set<Sizes> AsyncSizes(const Model& model, int cpus) {
  if (model.execution == Execution::kDispatch) {
    return {{1, 1, 1}, {1, cpus, cpus}, {1, kPaperAsyncThreads, kPaperAsyncThreads}};
  }
  if (model.reception == Reception::kPoll) return {{1, 0, 1}, {cpus, 0, cpus}};
  return {{1, 0, 1}, {cpus, 0, cpus}, {kPaperAsyncThreads, 0, kPaperAsyncThreads}};
}

std::set<Sizes> FiberSizes(const Model& model, int cpus) {
  if (model.execution == Execution::kDispatch) return {{1, 1, 0}, {1, cpus, 0}, {1, kPaperAsyncThreads, 0}};
  return {{1, 0, 0}, {cpus, 0, 0}};
}

std::set<Sizes> SizesOf(const Model& model, int cpus) {
  switch (model.waiting) {
    case Waiting::kSync:
      return SyncSizes(model, cpus);
    case Waiting::kAsync:
      return AsyncSizes(model, cpus);
    case Waiting::kFiber:
      break;
  }
  return FiberSizes(model, cpus);
}

std::optional<size_t> BestOf(const std::vector<Candidate>& candidates, const Model& model) {
  double highest = 0;
  for (const Candidate& c : candidates) {
    if (c.config.model == model && c.measured) highest = std::max(highest, c.saturation_per_s);
  }
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if (c.config.model != model || !c.measured) continue;
    if (c.saturation_per_s < (1 - kSaturationMargin) * highest) continue;
    if (!best || std::tuple(c.low_p99_us, c.config.threads()) <
                     std::tuple(candidates[*best].low_p99_us, candidates[*best].config.threads())) {
      best = i;
    }
  }
  return best;
}

}  // namespace

std::string ModelName(const Model& model) { return Config{.model = model}.ToString().substr(0, 3); }

std::vector<Model> AllModels() {
  std::vector<Model> models;
  for (Waiting waiting : {Waiting::kSync, Waiting::kAsync, Waiting::kFiber}) {
    for (Execution execution : {Execution::kInline, Execution::kDispatch}) {
      for (Reception reception : {Reception::kBlock, Reception::kPoll}) {
        models.push_back({waiting, execution, reception});
      }
    }
  }
  return models;
}

std::vector<Config> DefaultCandidates(int cpus, bool few) {
  std::vector<Config> configs;
  for (const Model& model : AllModels()) {
    const std::set<Sizes> sizes = SizesOf(model, cpus);
    for (auto it = sizes.begin(); it != sizes.end(); ++it) {
      if (few && it != sizes.begin() && std::next(it) != sizes.end()) continue;
      configs.push_back({model, (*it)[0], (*it)[1], (*it)[2]});
    }
  }
  return configs;
}

std::vector<size_t> ChooseBest(const std::vector<Candidate>& candidates) {
  std::vector<size_t> chosen;
  for (const Model& model : AllModels()) {
    if (const std::optional<size_t> best = BestOf(candidates, model)) chosen.push_back(*best);
  }
  return chosen;
}

}  // namespace curtail::models
