// SPDX-License-Identifier: Apache-2.0
//
// Few-to-Many as muTune built it to compare with (section 7.2.1, after Haque et al., ASPLOS 2015):
// an offline table from load to pool size, of one model; the load is looked at every 5 ms.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "curtail/adapt/internal/fixed_window.h"
#include "curtail/adapt/internal/policies.h"

namespace curtail::internal {
namespace {

class Fm final : public Policy {
 public:
  struct Row {
    double up_to_per_s;
    Config config;
  };

  Fm(std::vector<Row> table, Nanos window) : table_(std::move(table)), window_(window) {}

  Choice Decide(const Signals& s) override {
    const std::optional<double> rate = window_.Update(s.now, s.arrivals);
    const bool ours =
        std::any_of(table_.begin(), table_.end(), [&](const Row& r) { return r.config == s.current; });
    if (!rate)
      return ours ? Choice{s.current, "within the window"} : Choice{table_.front().config, "first row"};
    const auto row =
        std::find_if(table_.begin(), table_.end() - 1, [&](const Row& r) { return *rate <= r.up_to_per_s; });
    return {row->config, "row of the table"};
  }

 private:
  const std::vector<Row> table_;  // by ascending load; the last one is for all higher loads
  FixedWindow window_;
};

bool Is(const Config& config, Waiting waiting) {
  return config.model == Model{waiting, Execution::kDispatch, Reception::kBlock};
}

bool IsPool(const Config& config) { return Is(config, Waiting::kSync) || Is(config, Waiting::kAsync); }

// The configs of the profile that differ in their pools alone. A coroutine service could run under
// either model; the paper's better one is the asynchronous.
absl::StatusOr<Envelope> PoolsOf(const PolicyRequest& request) {
  for (const Waiting waiting : {Waiting::kAsync, Waiting::kSync}) {
    absl::StatusOr<Envelope> pools =
        Envelope::Make(*request.profile, [&](const Config& c) { return request.runs(c) && Is(c, waiting); },
                       {.merge_within_noise = false});
    if (pools.ok()) return pools;
  }
  return absl::InvalidArgumentError(request.options.style == ServiceStyle::kStraightLine
                                        ? "the profile has no SDB config; train some pool sizes of it"
                                        : "the profile has no ADB config; train some pool sizes of it");
}

absl::StatusOr<std::unique_ptr<Policy>> MakeFm(const PolicyRequest& request) {
  const absl::StatusOr<Envelope> pools = PoolsOf(request);
  if (!pools.ok()) return pools.status();
  // Each row holds for the loads up to a trained one, so that its pool is never smaller than was
  // best there.
  std::vector<Fm::Row> table;
  for (double load : request.profile->loads) {
    const Config* best = &pools->Best(load);
    for (const Config& config : pools->configs()) {
      if (*pools->Predict(config, load) < *pools->Predict(*best, load)) best = &config;
    }
    table.push_back({load, *best});
  }
  return std::make_unique<Fm>(std::move(table), request.options.window);
}

}  // namespace

constinit const PolicyKind kFmPolicy = {
    .name = "fm",
    .summary = "pool sizes of SDB or ADB from a table by load, every 5 ms; never another model",
    .make = MakeFm,
    .profile = ProfileUse::kRequired,
    .evaluate_every = 1,
    .tick = std::chrono::milliseconds(5),
    .chooses = IsPool,
    .compared = true,
};

}  // namespace curtail::internal
