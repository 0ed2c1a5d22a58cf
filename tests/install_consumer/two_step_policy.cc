// SPDX-License-Identifier: Apache-2.0
//
// A policy as a program adds it to the library's. docs/design/adaptation.md shows this file.
// [policy]
#include "absl/status/status.h"
#include "curtail/adapt/policy_kind.h"

namespace {

// Runs one config below 300 requests a second, and another one from there on.
class TwoStep final : public curtail::Policy {
 public:
  TwoStep(const curtail::Config& low, const curtail::Config& high) : low_(low), high_(high) {}

  curtail::Choice Decide(const curtail::Signals& signals) override {
    if (signals.rates.slow < 300) return {low_, "few requests"};
    return {high_, "many requests"};
  }

 private:
  const curtail::Config low_;
  const curtail::Config high_;
};

absl::StatusOr<std::unique_ptr<curtail::Policy>> MakeTwoStep(const curtail::PolicyRequest& request) {
  const size_t comma = request.argument.find(',');
  if (comma == std::string_view::npos)
    return absl::InvalidArgumentError("needs two configs, as in two-step:SIB1,SDB1-16");
  const absl::StatusOr<curtail::Config> low = request.RunnableConfig(request.argument.substr(0, comma));
  const absl::StatusOr<curtail::Config> high = request.RunnableConfig(request.argument.substr(comma + 1));
  if (!low.ok()) return low.status();
  if (!high.ok()) return high.status();
  return std::make_unique<TwoStep>(*low, *high);
}

}  // namespace

extern const curtail::PolicyKind kTwoStepPolicy;
constinit const curtail::PolicyKind kTwoStepPolicy = {
    .name = "two-step",
    .argument = ":LOW,HIGH",
    .summary = "one config below 300 requests a second, another one from there on",
    .make = MakeTwoStep,
    .evaluate_every = 1,
};
// [/policy]
