// SPDX-License-Identifier: Apache-2.0
//
// round_robin: each server in turn. The turn of one that is down goes to a random other: the next of the list would
// otherwise have twice its share.
#include <utility>

#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

class RoundRobin final : public Balancer {
 public:
  explicit RoundRobin(Backends backends) : backends_(std::move(backends)) {}
  size_t Choose(const Choice& choice) const override {
    const size_t turn = choice.sequence % backends_.size();
    if (backends_[turn]->Up(choice.now)) return turn;
    return FirstUp(backends_, choice.random % backends_.size(), choice.now);
  }

 private:
  const Backends backends_;
};

}  // namespace

std::unique_ptr<Balancer> MakeRoundRobin(const BalancerOptions&, Backends backends) {
  return std::make_unique<RoundRobin>(std::move(backends));
}

}  // namespace curtail::internal
