// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/load/mixed_workload.h"

#include <algorithm>
#include <cstdlib>

namespace curtail::apps {

std::vector<std::pair<std::string_view, double>> WeightsOf(const NamedMix& mix) {
  std::vector<std::pair<std::string_view, double>> weights;
  for (std::string_view rest = mix.kinds; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(", "));
    const size_t space = one.find(' ');
    weights.emplace_back(one.substr(0, space),
                         std::strtod(std::string(one.substr(space + 1)).c_str(), nullptr));
    rest.remove_prefix(std::min(rest.size(), one.size() + 2));
  }
  return weights;
}

MixedWorkload::MixedWorkload(Mix mix, uint64_t seed, ItemChoice senders)
    : mix_(std::move(mix)), seed_(seed), senders_(std::move(senders)) {
  for (const auto& [kind, weight] : mix_) weight_ += weight;
}

std::string_view MixedWorkload::MethodOf(uint64_t index) const {
  Rng rng = RngOf(index);
  return KindOf(rng).path;
}

std::string MixedWorkload::Request(uint64_t index) const {
  Rng rng = RngOf(index);
  const RequestKind& kind = KindOf(rng);
  return kind.request(rng, senders_.Index(index));
}

double MixedWorkload::Score(uint64_t index, std::string_view reply) const {
  Rng rng = RngOf(index);
  const RequestKind& kind = KindOf(rng);
  return kind.is_right(rng, senders_.Index(index), reply) ? 1 : 0;
}

const RequestKind& MixedWorkload::KindOf(Rng& rng) const {
  double share = rng.Uniform01() * weight_;
  for (const auto& [kind, weight] : mix_) {
    if (share < weight) return kind;
    share -= weight;
  }
  return mix_.front().first;
}

}  // namespace curtail::apps
