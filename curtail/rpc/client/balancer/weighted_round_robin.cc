// SPDX-License-Identifier: Apache-2.0
//
// weighted_round_robin: servers in turn, each as often as its weight says: the calls that it serves for the load that
// they make. Each round of turns passes over a server in proportion to what its weight lacks of the largest, at places
// that are spread evenly and differ between servers (gRPC's "static stride" scheduler). So a choice takes a counter, and
// weights may change at any time.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

// A weight is held within these multiples of the mean: one report changes no more, and each server stays in view.
constexpr double kLargestShare = 10;
constexpr double kSmallestShare = 0.1;
constexpr uint64_t kFull = 65535;  // the weight of a server that has each turn
constexpr Nanos kShortestUpdate = std::chrono::milliseconds(100);

class WeightedRoundRobin final : public Balancer {
 public:
  WeightedRoundRobin(const WeightOptions& options, Backends backends)
      : options_(options),
        update_(std::max(options.update, kShortestUpdate)),
        backends_(std::move(backends)),
        weights_(std::make_unique<std::atomic<uint16_t>[]>(backends_.size())) {}

  size_t Choose(const Choice& choice) const override {
    UpdateIfDue(choice);
    for (size_t i = 0; i < 2 * backends_.size(); ++i) {
      const size_t turn = Next();
      if (backends_[turn]->Up(choice.now)) return turn;
    }
    return FirstUp(backends_, choice.random % backends_.size(), choice.now);
  }

 private:
  size_t Next() const {
    const uint64_t n = backends_.size();
    uint64_t at = 0;
    // Ends within a round, unless weights change meanwhile: one has the full weight.
    for (uint64_t i = 0; i < 2 * n; ++i) {
      const uint64_t count = next_.fetch_add(1, std::memory_order_relaxed);
      at = count % n;
      const uint64_t weight = weights_[at].load(std::memory_order_relaxed);
      if ((weight * (count / n) + at * (kFull / 2)) % kFull >= kFull - weight) break;
    }
    return at;
  }

  void UpdateIfDue(const Choice& choice) const {
    int64_t due = due_.load(std::memory_order_relaxed);
    if (choice.now.time_since_epoch().count() < due) [[likely]]
      return;
    if (!due_.compare_exchange_strong(due, (choice.now + update_).time_since_epoch().count(),
                                      std::memory_order_relaxed))
      return;
    if (due == 0) next_.store(choice.sequence, std::memory_order_relaxed);
    Update(choice.now);
  }

  void Update(TimePoint now) const {
    const size_t n = backends_.size();
    double sum = 0;
    double largest = 0;
    size_t known = 0;
    for (const auto& backend : backends_) {
      const double weight = backend->load.Weight(options_, now);
      known += weight > 0;
      sum += weight;
      largest = std::max(largest, weight);
    }
    const double mean = known == 0 ? 0 : sum / static_cast<double>(known);
    largest = std::min(largest, mean * kLargestShare);
    for (size_t i = 0; i < n; ++i) {
      double weight = backends_[i]->load.Weight(options_, now);
      weight = weight > 0 ? std::clamp(weight, mean * kSmallestShare, largest) : mean;
      const uint64_t share =
          known < 2 ? kFull : static_cast<uint64_t>(std::lround(weight / largest * double{kFull}));
      weights_[i].store(static_cast<uint16_t>(std::clamp<uint64_t>(share, 1, kFull)),
                        std::memory_order_relaxed);
    }
  }

  // Immutable after construction.
  const WeightOptions options_;
  const Nanos update_;
  const Backends backends_;

  // Atomic, relaxed: a counter, a time in ns, and hints. The thread that moves due_ sets the weights.
  mutable std::atomic<uint64_t> next_{0};
  mutable std::atomic<int64_t> due_{0};
  const std::unique_ptr<std::atomic<uint16_t>[]> weights_;
};

}  // namespace

std::unique_ptr<Balancer> MakeWeightedRoundRobin(const BalancerOptions& options, Backends backends) {
  return std::make_unique<WeightedRoundRobin>(options.weights, std::move(backends));
}

}  // namespace curtail::internal
