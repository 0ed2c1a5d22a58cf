// SPDX-License-Identifier: Apache-2.0
//
// least_request: of some servers (two), the one with the fewest calls that this channel waits for.
// M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001: the longest queue is then
// exponentially shorter than with one choice, and more choices add little.
// The first choice goes around, and wins a tie. So servers without a queue have the same share of any few calls; random
// choices would leave that to chance. Each round begins at a random server, lest every n-th call meet the same one.
#include <algorithm>
#include <utility>

#include "curtail/base/mix.h"
#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

class LeastRequest final : public Balancer {
 public:
  LeastRequest(size_t choices, Backends backends) : choices_(choices), backends_(std::move(backends)) {}

  size_t Choose(const Choice& choice) const override {
    size_t best = kNone;
    int32_t fewest = 0;
    uint64_t random = choice.random;
    const size_t n = backends_.size();
    const size_t turn = (choice.sequence % n + Mix(choice.sequence / n) % n) % n;
    for (size_t i = 0; i < choices_; ++i, random = Mix(random)) {
      const bool first = i == 0 && backends_[turn]->Up(choice.now);
      const size_t at = first ? turn : FirstUp(backends_, random % n, choice.now);
      if (at == kNone) return kNone;
      const int32_t outstanding = backends_[at]->outstanding.load(std::memory_order_relaxed);
      if (best != kNone && outstanding >= fewest) continue;
      best = at;
      fewest = outstanding;
    }
    return best;
  }

 private:
  const size_t choices_;
  const Backends backends_;
};

}  // namespace

std::unique_ptr<Balancer> MakeLeastRequest(const BalancerOptions& options, Backends backends) {
  return std::make_unique<LeastRequest>(std::clamp<size_t>(options.choices, 1, 10), std::move(backends));
}

}  // namespace curtail::internal
