// SPDX-License-Identifier: Apache-2.0
//
// Time-based detection as muTune built it to compare with (section 7.2.1): its decision to the
// letter, with the count of a window of 5 ms for the rate.
#include <utility>

#include "curtail/adapt/internal/fixed_window.h"
#include "curtail/adapt/internal/policies.h"

namespace curtail::internal {
namespace {

class Tbd final : public Policy {
 public:
  Tbd(Envelope envelope, Nanos window) : envelope_(std::move(envelope)), window_(window) {}

  Choice Decide(const Signals& s) override {
    const std::optional<double> rate = window_.Update(s.now, s.arrivals);
    if (!rate) return {s.current, "within the window"};
    return {envelope_.Best(*rate), "lowest prediction for the window"};
  }

 private:
  const Envelope envelope_;
  FixedWindow window_;
};

absl::StatusOr<std::unique_ptr<Policy>> MakeTbd(const PolicyRequest& request) {
  absl::StatusOr<Envelope> envelope =
      Envelope::Make(*request.profile, request.runs, {.merge_within_noise = false});
  if (!envelope.ok()) return envelope.status();
  return std::make_unique<Tbd>(*std::move(envelope), request.options.window);
}

}  // namespace

constinit const PolicyKind kTbdPolicy = {
    .name = "tbd",
    .summary = "as mutune:paper, with the rate of a window of 5 ms",
    .make = MakeTbd,
    .profile = ProfileUse::kRequired,
    .evaluate_every = 1,
    .tick = std::chrono::milliseconds(5),
    .compared = true,
};

}  // namespace curtail::internal
