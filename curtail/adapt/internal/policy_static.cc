// SPDX-License-Identifier: Apache-2.0
//
// The config that the operator names, at every load.
#include "curtail/adapt/internal/policies.h"

namespace curtail::internal {
namespace {

class Static final : public Policy {
 public:
  explicit Static(const Config& config) : config_(config) {}
  Choice Decide(const Signals&) override { return {config_, "static"}; }

 private:
  const Config config_;
};

absl::StatusOr<std::unique_ptr<Policy>> MakeStatic(const PolicyRequest& request) {
  const absl::StatusOr<Config> config = request.RunnableConfig(request.argument);
  if (!config.ok()) return config.status();
  return std::make_unique<Static>(*config);
}

}  // namespace

constinit const PolicyKind kStaticPolicy = {
    .name = "static",
    .argument = ":CONFIG",
    .summary = "always this config",
    .make = MakeStatic,
    .switches = false,
};

}  // namespace curtail::internal
