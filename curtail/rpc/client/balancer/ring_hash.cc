// SPDX-License-Identifier: Apache-2.0
//
// ring_hash: calls with the same key go to the same server. Each server has places on a ring, by hashes of its address;
// a call goes to the first place from the hash of its key on. A server that comes or goes moves only the keys of its
// own places (D. Karger et al., "Consistent Hashing and Random Trees", 1997), while the number of servers stays within
// the same power of two of the ring's bound. A server that is down leaves its keys to the next places.
#include <algorithm>
#include <bit>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

// Places of a server: more even out the shares, whose spread is 1/sqrt(places).
constexpr size_t kMostPlaces = 256;

class RingHash final : public Balancer {
 public:
  RingHash(const BalancerOptions& options, Backends backends) : backends_(std::move(backends)) {
    const size_t n = backends_.size();
    const size_t most = std::max<size_t>(std::bit_floor(options.max_ring_size / n), 1);
    const size_t least = std::bit_ceil((options.min_ring_size + n - 1) / n);
    const size_t places = std::min(most, std::max(kMostPlaces, least));
    ring_.reserve(places * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < places; ++k) ring_.push_back({HashOf(Join(backends_[i]->name, "_", k)), i});
    }
    std::sort(ring_.begin(), ring_.end(), [this](const Place& a, const Place& b) {
      return a.hash != b.hash ? a.hash < b.hash : backends_[a.backend]->name < backends_[b.backend]->name;
    });
  }

  size_t Choose(const Choice& choice) const override {
    if (!choice.key) return FirstUp(backends_, choice.random % backends_.size(), choice.now);
    const auto after = std::lower_bound(ring_.begin(), ring_.end(), *choice.key,
                                        [](const Place& place, uint64_t key) { return place.hash < key; });
    size_t at = static_cast<size_t>(after - ring_.begin());
    for (size_t i = 0; i < ring_.size(); ++i, ++at) {
      const size_t backend = ring_[at % ring_.size()].backend;
      if (backends_[backend]->Up(choice.now)) return backend;
    }
    return kNone;
  }

  bool PrefersConnected() const override { return false; }
  bool UsesKey() const override { return true; }

 private:
  struct Place {
    uint64_t hash;
    size_t backend;
  };

  const Backends backends_;
  std::vector<Place> ring_;  // immutable after construction
};

}  // namespace

std::unique_ptr<Balancer> MakeRingHash(const BalancerOptions& options, Backends backends) {
  return std::make_unique<RingHash>(options, std::move(backends));
}

}  // namespace curtail::internal
