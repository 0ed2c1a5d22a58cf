// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace curtail::soak {
namespace {

// Of what the process holds early: a tenth, and some MiB of messages that happen to be on their way.
constexpr double kGrowth = 0.1;
constexpr double kGrowthMib = 12;
// A server keeps as much free memory for the next burst (curtail/rpc/server/housekeeper.cc).
constexpr double kKeptFreeMib = 32;
constexpr int kGrowthDescriptors = 24;

Held Median(std::vector<Held> held) {
  if (held.empty()) return {};
  const auto middle = [&](auto field) {
    std::nth_element(held.begin(), held.begin() + static_cast<ptrdiff_t>(held.size() / 2), held.end(),
                     [&](const Held& a, const Held& b) { return a.*field < b.*field; });
    return held[held.size() / 2].*field;
  };
  return {middle(&Held::resident_mib), middle(&Held::heap_mib), middle(&Held::descriptors)};
}

}  // namespace

void Series::Sample() {
  Held held = HeldBy(pid_);
  const std::optional<uint64_t> heap = heap_in_use_();
  if (!heap && samples_.empty()) return;
  held.heap_mib = heap ? static_cast<double>(*heap) / (1 << 20) : samples_.back().heap_mib;
  samples_.push_back(held);
}

Growth Series::growth() const {
  const auto at = [&](size_t fifths) {
    return samples_.begin() + static_cast<ptrdiff_t>(samples_.size() * fifths / 5);
  };
  Growth growth{.early = Median({at(1), at(2)}), .late = Median({at(4), at(5)}), .most = {}};
  for (const Held& held : samples_) {
    growth.most.resident_mib = std::max(growth.most.resident_mib, held.resident_mib);
    growth.most.heap_mib = std::max(growth.most.heap_mib, held.heap_mib);
    growth.most.descriptors = std::max(growth.most.descriptors, held.descriptors);
  }
  return growth;
}

absl::Status Series::CheckFlat() const {
  const Growth seen = growth();
  if (seen.late.heap_mib > seen.early.heap_mib * (1 + kGrowth) + kGrowthMib) {
    return absl::InternalError(absl::StrCat("the heap of ", name_, " grows from ", seen.early.heap_mib,
                                            " to ", seen.late.heap_mib, " MiB in use"));
  }
  if (seen.late.resident_mib > seen.early.resident_mib * (1 + kGrowth) + kGrowthMib + kKeptFreeMib) {
    return absl::InternalError(absl::StrCat("the memory of ", name_, " grows from ", seen.early.resident_mib,
                                            " to ", seen.late.resident_mib, " MiB"));
  }
  if (seen.late.descriptors > seen.early.descriptors + kGrowthDescriptors) {
    return absl::InternalError(absl::StrCat("the descriptors of ", name_, " grow from ",
                                            seen.early.descriptors, " to ", seen.late.descriptors));
  }
  return absl::OkStatus();
}

}  // namespace curtail::soak
