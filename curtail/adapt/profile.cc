// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "curtail/adapt/internal/median.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

using internal::Median;

constexpr double kUnstable = 0.25;  // spread over median

ProfilePoint PointOf(double load, const std::vector<const ProfileCell*>& repeats) {
  ProfilePoint point{.load_per_s = load};
  std::vector<double> values, distances;
  size_t saturated = 0;
  for (const ProfileCell* cell : repeats) {
    values.push_back(cell->p99_us);
    saturated += cell->saturated;
  }
  point.p99_us = Median(values);
  for (double value : values) distances.push_back(std::abs(value - point.p99_us));
  point.spread_us = 1.4826 * Median(distances);
  point.saturated = 2 * saturated >= repeats.size();
  point.unstable =
      point.spread_us > kUnstable * point.p99_us || (saturated != 0 && saturated != repeats.size());
  return point;
}

using Repeats = std::map<double, std::vector<const ProfileCell*>>;  // of one config, by load

ConfigSummary SummaryOf(const Config& config, const Repeats& by_load) {
  ConfigSummary summary{.config = config};
  double sustained = 0;
  for (const auto& [load, repeats] : by_load) {
    const ProfilePoint& point = summary.points.emplace_back(PointOf(load, repeats));
    if (point.saturated && !summary.saturation_per_s) summary.saturation_per_s = sustained;
    sustained = load;
  }
  return summary;
}

}  // namespace

void Summarize(Profile& profile) {
  std::vector<std::pair<Config, Repeats>> configs;
  for (const ProfileCell& cell : profile.cells) {
    auto at =
        std::find_if(configs.begin(), configs.end(), [&](const auto& c) { return c.first == cell.config; });
    if (at == configs.end()) at = configs.insert(at, {cell.config, {}});
    at->second[cell.load_per_s].push_back(&cell);
  }
  profile.configs.clear();
  for (const auto& [config, by_load] : configs) profile.configs.push_back(SummaryOf(config, by_load));
}

absl::Status CheckProfileFits(const Profile& profile, std::string_view service,
                              const MachineFingerprint& machine, bool any_machine) {
  if (!service.empty() && profile.service != service) {
    return absl::FailedPreconditionError(Join("the profile is of the service \"", profile.service,
                                              "\", not of \"", service,
                                              "\"; train this service, or give its own profile"));
  }
  if (any_machine || profile.machine == machine) return absl::OkStatus();
  std::string differs;
  const auto compare = [&](const char* name, const auto& trained, const auto& here) {
    if (trained == here) return;
    differs += Join(differs.empty() ? "" : ", ", name, " (\"", trained, "\" there, \"", here, "\" here)");
  };
  compare("cpu_model", profile.machine.cpu_model, machine.cpu_model);
  compare("cpus", profile.machine.cpus, machine.cpus);
  compare("kernel", profile.machine.kernel, machine.kernel);
  compare("memory_gib", profile.machine.memory_gib, machine.memory_gib);
  return absl::FailedPreconditionError(Join("the profile was trained on another machine, which differs in ",
                                            differs,
                                            "; train on this one, or allow profiles of any machine"));
}

}  // namespace curtail
