// SPDX-License-Identifier: Apache-2.0
//
// profile_testing.h - profiles for tests, from a function that says how long a config takes at a load.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "curtail/adapt/profile.h"
#include "curtail/base/rng.h"

namespace curtail {

// The config that `text` names; the test ends if there is none.
inline Config ConfigOf(std::string_view text) { return Config::Parse(text).value(); }

// Normally distributed, by Box and Muller.
inline double Normal(Rng& rng) {
  return std::sqrt(2 * rng.Exponential(1)) * std::cos(2 * 3.14159265358979 * rng.Uniform01());
}

struct TestCurve {
  std::string_view config;
  double saturates_at = 1e18;            // requests a second
  std::function<double(double)> p99_us;  // by load
  double noise = 0;                      // the repeats are this share lower, exact and higher
  double p50_us = 1;                     // alike, so that the p99 decides
  std::optional<double> cpu_cores;       // at all loads; without it in one curve the costs are not known
};

// Three repeats of each config at each load.
inline Profile MakeProfile(const std::vector<double>& loads, const std::vector<TestCurve>& curves) {
  Profile profile;
  profile.service = "test.Service";
  profile.curtail_version = "0.1.0";
  profile.machine = {"Test CPU", 2, "Linux 6.1.0", 8};
  profile.created = "2026-11-22T08:30:00Z";
  profile.loads = loads;
  for (const TestCurve& curve : curves) {
    for (double load : loads) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        ProfileCell cell{.config = ConfigOf(curve.config), .load_per_s = load, .repeat = repeat};
        cell.saturated = load > curve.saturates_at;
        cell.p99_us = cell.saturated ? 1e6 : curve.p99_us(load) * (1 + (repeat - 1) * curve.noise);
        cell.p50_us = std::min(curve.p50_us, cell.p99_us);
        cell.mean_us = cell.p99_us / 2.5;
        cell.cpu_cores = curve.cpu_cores;
        cell.achieved_per_s = cell.saturated ? curve.saturates_at : load;
        profile.cells.push_back(cell);
      }
    }
  }
  Summarize(profile);
  return profile;
}

// In-line polling best to 1000/s, dispatch polling to 7500/s, dispatch blocking above (the order of muTune,
// figure 14).
inline Profile SteppedProfile(double dispatch_polling_ends = 9000) {
  const std::vector<double> loads = {20, 100, 500, 1000, 2000, 4000, 8000, 10000, 16000};
  return MakeProfile(loads, {{"SIP1", 1500, [](double x) { return 400 + 0.6 * x; }},
                             {"SDP1-20", dispatch_polling_ends, [](double x) { return 900 + 0.1 * x; }},
                             {"SDB1-8", 6000, [](double x) { return 1400 + 0.09 * x; }},
                             {"SDB1-50", 12000, [](double x) { return 1500 + 0.02 * x; }},
                             {"AIP1-1", 3000, [](double x) { return 380 + 0.3 * x; }},
                             {"ADB1-4-4", 14000, [](double x) { return 1250 + 0.01 * x; }}});
}

}  // namespace curtail
