// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/mix.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/balancer/balancer.h"

namespace curtail::internal {
namespace {

struct BalancerKind {
  std::string_view name;
  std::unique_ptr<Balancer> (*make)(const BalancerOptions& options, Backends backends);
};

// By gRPC's names.
constexpr BalancerKind kBalancers[] = {
    {"pick_first", MakePickFirst},
    {"round_robin", MakeRoundRobin},
    {"least_request", MakeLeastRequest},
    {"least_request_experimental", MakeLeastRequest},
    {"ring_hash", MakeRingHash},
    {"ring_hash_experimental", MakeRingHash},
    {kWeightedRoundRobin, MakeWeightedRoundRobin},
};

}  // namespace

std::string BalancerNames() {
  std::string names;
  for (const BalancerKind& kind : kBalancers) {
    if (!kind.name.ends_with("_experimental")) names += Join(names.empty() ? "" : ", ", kind.name);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Balancer>> MakeBalancer(const BalancerOptions& options, Backends backends) {
  for (const BalancerKind& kind : kBalancers) {
    if (kind.name == options.name) return kind.make(options, std::move(backends));
  }
  return absl::InvalidArgumentError(
      Join("there is no balancer \"", options.name, "\"; there are ", BalancerNames()));
}

bool IsBalancer(std::string_view name) {
  for (const BalancerKind& kind : kBalancers) {
    if (kind.name == name) return true;
  }
  return false;
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, which alone spreads short texts badly
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return Mix(hash);
}

size_t FirstUp(const Backends& backends, size_t start, TimePoint now) {
  for (size_t i = 0; i < backends.size(); ++i) {
    const size_t at = (start + i) % backends.size();
    if (backends[at]->Up(now)) return at;
  }
  return Balancer::kNone;
}

}  // namespace curtail::internal
