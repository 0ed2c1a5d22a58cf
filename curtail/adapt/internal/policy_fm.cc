// SPDX-License-Identifier: Apache-2.0
//
// Few-to-Many as muTune built it to compare with (section 7.2.1, after Haque et al., ASPLOS 2015): an offline
// table from load to pool size, of one model; the load is looked at every 5 ms.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeFm(const Profile& profile, const ConfigFilter& filter,
                                               const PolicyOptions& options) {
  // A coroutine service could run under either; the paper's better one is the asynchronous.
  absl::StatusOr<Envelope> pools =
      Envelope::Make(profile, [&](const Config& c) { return filter(c) && Is(c, Waiting::kAsync); },
                     {.merge_within_noise = false});
  if (!pools.ok()) {
    pools = Envelope::Make(profile, [&](const Config& c) { return filter(c) && Is(c, Waiting::kSync); },
                           {.merge_within_noise = false});
  }
  if (!pools.ok()) {
    return absl::InvalidArgumentError(
        options.style == ServiceStyle::kStraightLine
            ? "policy \"fm\": the profile has no SDB config; train some pool sizes of it"
            : "policy \"fm\": the profile has no ADB config; train some pool sizes of it");
  }
  // Each row holds for the loads up to a trained one, so that its pool is never smaller than was best there.
  std::vector<Fm::Row> table;
  for (double load : profile.loads) {
    const Config* best = &pools->Best(load);
    for (const Config& config : pools->configs()) {
      if (*pools->Predict(config, load) < *pools->Predict(*best, load)) best = &config;
    }
    table.push_back({load, *best});
  }
  return std::make_unique<Fm>(std::move(table), options.window);
}

}  // namespace curtail::internal
