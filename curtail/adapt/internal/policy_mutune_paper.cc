// SPDX-License-Identifier: Apache-2.0
//
// muTune's decision to the letter (section 4): at every arrival the config of the lowest predicted
// p99, for the rate of the last five arrivals. At a load near a crossing it switches at every few
// arrivals.
#include <utility>

#include "curtail/adapt/internal/policies.h"

namespace curtail::internal {
namespace {

class MutunePaper final : public Policy {
 public:
  explicit MutunePaper(Envelope envelope) : envelope_(std::move(envelope)) {}
  Choice Decide(const Signals& s) override { return {envelope_.Best(s.rates.paper), "lowest prediction"}; }

 private:
  const Envelope envelope_;
};

absl::StatusOr<std::unique_ptr<Policy>> MakeMutunePaper(const PolicyRequest& request) {
  absl::StatusOr<Envelope> envelope =
      Envelope::Make(*request.profile, request.runs, {.merge_within_noise = false});
  if (!envelope.ok()) return envelope.status();
  return std::make_unique<MutunePaper>(*std::move(envelope));
}

}  // namespace

constinit const PolicyKind kMutunePaperPolicy = {
    .name = "mutune:paper",
    .summary = "the lowest prediction of the profile for the paper's rate, at every arrival",
    .make = MakeMutunePaper,
    .profile = ProfileUse::kRequired,
    .evaluate_every = 1,
};

}  // namespace curtail::internal
