// SPDX-License-Identifier: Apache-2.0
//
// pick_first: one server for all calls, the next of the list when that fails.
#include <utility>

#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

class PickFirst final : public Balancer {
 public:
  explicit PickFirst(Backends backends) : backends_(std::move(backends)) {}
  size_t Choose(const Choice& choice) const override { return FirstUp(backends_, choice.last, choice.now); }
  bool PrefersConnected() const override { return false; }

 private:
  const Backends backends_;
};

}  // namespace

std::unique_ptr<Balancer> MakePickFirst(const BalancerOptions&, Backends backends) {
  return std::make_unique<PickFirst>(std::move(backends));
}

}  // namespace curtail::internal
