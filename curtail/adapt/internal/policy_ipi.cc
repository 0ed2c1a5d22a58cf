// SPDX-License-Identifier: Apache-2.0
//
// Integrating Polling and Interrupts as muTune built it to compare with (section 7.2.1, after Langendoen et al.,
// Frontiers 1996): whenever a thread blocks or goes on, active threads are compared with the CPUs.
#include <algorithm>

#include "absl/status/status.h"
#include "curtail/adapt/internal/policies.h"

namespace curtail::internal {
namespace {

class Ipi final : public Policy {
 public:
  Ipi(const Config& base, int cpus)
      : cpus_(cpus), total_(base.network + base.workers), block_(base), poll_(base) {
    block_.model.reception = Reception::kBlock;
    poll_.model.reception = Reception::kPoll;
  }

  Choice Decide(const Signals& s) override {
    if (s.trigger != Trigger::kBlocked) {
      const bool ours = s.current == block_ || s.current == poll_;
      return {ours ? s.current : block_, ours ? "no thread blocked or went on" : "begins with interrupts"};
    }
    const int active = total_ - s.blocked;
    if (active > cpus_) return {block_, "more active threads than CPUs"};
    return {poll_, "no more active threads than CPUs"};
  }

 private:
  const int cpus_;
  const int total_;  // threads of all pools
  Config block_;
  Config poll_;
};

// The SDB config of the profile that sustains most, of those that sustain all the fastest at the highest load.
absl::StatusOr<Config> PeakSdb(const PolicyRequest& request) {
  if (request.profile == nullptr)
    return absl::InvalidArgumentError("needs a profile, or a config as in ipi:SDB1-50");
  const absl::StatusOr<Envelope> sdb = Envelope::Make(*request.profile, [&](const Config& config) {
    return request.runs(config) &&
           config.model == Model{Waiting::kSync, Execution::kDispatch, Reception::kBlock};
  });
  if (sdb.ok()) return sdb->Best(1e18);
  return absl::InvalidArgumentError(
      "the profile has no SDB config; train one, or name one as in ipi:SDB1-50");
}

bool IsSynchronous(const Config& config) { return config.model.waiting == Waiting::kSync; }

absl::StatusOr<std::unique_ptr<Policy>> MakeIpi(const PolicyRequest& request) {
  if (request.options.style == ServiceStyle::kContinuation)
    return absl::InvalidArgumentError(
        "is for synchronous models only; take one that chooses among all models");
  const absl::StatusOr<Config> base =
      request.argument.empty() ? PeakSdb(request) : request.RunnableConfig(request.argument);
  if (!base.ok()) return base.status();
  if (!IsSynchronous(*base))
    return absl::InvalidArgumentError("is for synchronous models only, such as SDB1-50");
  return std::make_unique<Ipi>(*base, std::max(request.options.cpus, 1));
}

}  // namespace

constinit const PolicyKind kIpiPolicy = {
    .name = "ipi",
    .argument = "[:CONFIG]",
    .summary = "polls as long as no more threads are active than there are CPUs, or else blocks",
    .make = MakeIpi,
    .profile = ProfileUse::kUnlessArgument,
    .toggles_reception = true,
    .chooses = IsSynchronous,
    .compared = true,
};

}  // namespace curtail::internal
