// SPDX-License-Identifier: Apache-2.0
#include "bench/common/one_config_profile.h"

#include "curtail/adapt/profile.h"

namespace curtail::bench {

absl::StatusOr<std::string> OneConfigProfile(const Config& config, std::string_view service) {
  Profile profile{.service = std::string(service), .machine = ThisMachineFingerprint()};
  profile.created = "2026-01-01T00:00:00Z";
  profile.loads = {10, 100, 1000, 10'000, 100'000};
  for (const double load : profile.loads) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      profile.cells.push_back({config, load, repeat, /*p50_us=*/100, /*p99_us=*/200, /*mean_us=*/120, load});
    }
  }
  Summarize(profile);
  return ProfileJson(profile);
}

}  // namespace curtail::bench
