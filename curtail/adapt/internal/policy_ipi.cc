// SPDX-License-Identifier: Apache-2.0
//
// Integrating Polling and Interrupts as muTune built it to compare with (section 7.2.1, after Langendoen et al.,
// Frontiers 1996): whenever a thread blocks or goes on, active threads are compared with the CPUs.
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

}  // namespace

std::unique_ptr<Policy> MakeIpi(const Config& base, int cpus) { return std::make_unique<Ipi>(base, cpus); }

}  // namespace curtail::internal
