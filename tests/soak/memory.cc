// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace curtail::soak {
namespace {

// Of what the process holds early: a tenth, and some MiB that the allocator keeps or not.
constexpr double kGrowth = 0.1;
constexpr double kGrowthMib = 12;
constexpr int kGrowthDescriptors = 24;

Held Median(std::vector<Held> held) {
  if (held.empty()) return {};
  const auto middle = [&](auto field) {
    std::nth_element(held.begin(), held.begin() + static_cast<ptrdiff_t>(held.size() / 2), held.end(),
                     [&](const Held& a, const Held& b) { return a.*field < b.*field; });
    return held[held.size() / 2].*field;
  };
  return {middle(&Held::resident_mib), middle(&Held::descriptors)};
}

}  // namespace

Growth Series::growth() const {
  const auto at = [&](size_t fifths) {
    return samples_.begin() + static_cast<ptrdiff_t>(samples_.size() * fifths / 5);
  };
  Growth growth{.early = Median({at(1), at(2)}), .late = Median({at(4), at(5)}), .most = {}};
  for (const Held& held : samples_) {
    growth.most.resident_mib = std::max(growth.most.resident_mib, held.resident_mib);
    growth.most.descriptors = std::max(growth.most.descriptors, held.descriptors);
  }
  return growth;
}

absl::Status Series::CheckFlat() const {
  const Growth seen = growth();
  if (seen.late.resident_mib > seen.early.resident_mib * (1 + kGrowth) + kGrowthMib) {
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
