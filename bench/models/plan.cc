// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "curtail/base/strings.h"

namespace curtail::models {
namespace {

constexpr double kHighestRate = 1e6;
constexpr double kHighestPercent = 200;
constexpr double kTurnSeconds = 0.1;  // to wake a mid-tier, connect, and await the last replies

std::vector<std::string> Parts(std::string_view text) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
}

double TwoDigits(double value) {
  if (value <= 1) return 1;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::max(1.0, std::round(value / unit) * unit);
}

}  // namespace

absl::StatusOr<std::vector<LoadSpec>> ParseLoads(std::string_view text) {
  std::vector<LoadSpec> loads;
  for (const std::string& part : Parts(text)) {
    absl::string_view number = part;
    LoadSpec spec;
    spec.percent = absl::ConsumeSuffix(&number, "%");
    const double scale = !spec.percent && absl::ConsumeSuffix(&number, "k") ? 1000 : 1;
    const double most = spec.percent ? kHighestPercent : kHighestRate;
    if (!absl::SimpleAtod(number, &spec.value) || !(spec.value > 0) || spec.value * scale > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", part,
          "\" is not a load; write requests a second (50, 1k) or percent of the best throughput (25%)"));
    }
    spec.value *= scale;
    loads.push_back(spec);
  }
  return loads;
}

std::vector<double> ResolveLoads(const std::vector<LoadSpec>& specs, double saturation_per_s) {
  std::vector<double> loads;
  for (const LoadSpec& spec : specs) {
    loads.push_back(spec.percent ? TwoDigits(spec.value / 100 * saturation_per_s) : spec.value);
  }
  std::sort(loads.begin(), loads.end());
  loads.erase(std::unique(loads.begin(), loads.end()), loads.end());
  return loads;
}

absl::StatusOr<std::vector<Config>> ParseConfigs(std::string_view text) {
  std::vector<Config> configs;
  for (const std::string& part : Parts(text)) {
    absl::StatusOr<Config> config = Config::Parse(part);
    if (!config.ok()) return config.status();
    if (std::find(configs.begin(), configs.end(), *config) != configs.end()) {
      return absl::InvalidArgumentError(Join("config ", part, " is given twice"));
    }
    configs.push_back(*config);
  }
  return configs;
}

Timing Timing::Quick() {
  Timing timing;
  timing.cell_s = 0.4;
  timing.warmup_s = 0.1;
  timing.pick_s = 0.25;
  timing.max_stretch = 1;
  timing.rounds = 1;
  return timing;
}

double Timing::CellSeconds(double rate_per_s) const {
  return std::clamp(wanted_requests / rate_per_s, cell_s, cell_s * max_stretch);
}

double Timing::TotalSeconds(size_t candidates, size_t configs, const std::vector<double>& loads) const {
  const double turn = warmup_s + kTurnSeconds;
  double round = turn + cell_s;  // the closed loop
  for (double rate : loads) round += turn + CellSeconds(rate);
  return static_cast<double>(candidates) * 2 * (turn + pick_s) +
         static_cast<double>(configs) * rounds * round;
}

}  // namespace curtail::models
