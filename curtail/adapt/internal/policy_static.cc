// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

std::unique_ptr<Policy> MakeStatic(const Config& config) { return std::make_unique<Static>(config); }

}  // namespace curtail::internal
