// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The reader believes nothing: sizes are bounded before anything is allocated for them, keys that it
// does not know are errors (a misspelt one would otherwise be a missing one), and the summary, which is in the
// file for people and other programs, must be what the cells give. The writer writes only what the reader reads
// back as the same.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "curtail/adapt/internal/limits.h"
#include "curtail/adapt/profile.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

using internal::kMaxCells;
using internal::kMaxConcurrency;
using internal::kMaxConfigs;
using internal::kMaxCores;
using internal::kMaxFences;
using internal::kMaxFenceServices;
using internal::kMaxLoads;
using internal::kMaxRate;
using internal::kMaxString;
using internal::kMaxText;
using internal::kMaxUs;

using internal::Json;
using internal::JsonNode;

constexpr internal::JsonKind kProfileKind{.name = "profile", .max_depth = 8, .max_keys = 32};

constexpr int kMaxRepeat = 999;

Config ReadConfig(const JsonNode& node) {
  const std::string text = node.Text(kMaxString);
  const absl::StatusOr<Config> config = Config::Parse(text);
  if (!config.ok()) {
    node.Complain(Join("is not a config: ", Message(config.status())));
    return {};
  }
  if (config->ToString() != text) node.Complain(Join("must be written ", config->ToString()));
  return *config;
}

MachineFingerprint ReadMachine(const JsonNode& node) {
  node.AllowOnly({"cpu_model", "cpus", "kernel", "memory_gib"});
  return {node["cpu_model"].Text(kMaxString), node["cpus"].Int(1 << 20), node["kernel"].Text(kMaxString),
          node["memory_gib"].Int(1 << 24)};
}

// Ascending names, none twice.
std::vector<std::string> ReadServices(const JsonNode& node) {
  std::vector<std::string> services;
  node.ForItems(kMaxFenceServices, [&](const JsonNode& item) {
    std::string service = item.Text(kMaxString);
    if (service.empty()) item.Complain("must not be empty");
    if (!services.empty() && service <= services.back()) item.Complain("must be after the one before it");
    services.push_back(std::move(service));
  });
  if (services.empty()) node.Complain("must not be empty");
  return services;
}

ProfileFence ReadFence(const JsonNode& node) {
  node.AllowOnly({"services", "limit", "throughput_per_s", "tried", "saturated", "config"});
  ProfileFence fence;
  fence.services = ReadServices(node["services"]);
  fence.limit = static_cast<uint32_t>(node["limit"].Int(kMaxConcurrency));
  if (fence.limit == 0) node["limit"].Complain("must be at least 1");
  fence.throughput_per_s = node["throughput_per_s"].Number(0, kMaxRate);
  fence.tried = static_cast<uint32_t>(node["tried"].Int(kMaxConcurrency));
  if (fence.tried < fence.limit) node["tried"].Complain("must not be below the limit");
  fence.saturated = node["saturated"].Flag();
  fence.config = ReadConfig(node["config"]);
  return fence;
}

std::vector<ProfileFence> ReadFences(const JsonNode& node) {
  std::vector<ProfileFence> fences;
  std::set<std::vector<std::string>> seen;
  node.ForItems(kMaxFences, [&](const JsonNode& item) {
    fences.push_back(ReadFence(item));
    if (!seen.insert(fences.back().services).second) item.Complain("repeats an earlier set of services");
  });
  if (fences.empty()) node.Complain("must not be empty");
  return fences;
}

std::vector<double> ReadLoads(const JsonNode& node) {
  std::vector<double> loads;
  node.ForItems(kMaxLoads, [&](const JsonNode& item) {
    const double load = item.Number(1e-6, kMaxRate);
    if (!loads.empty() && load <= loads.back()) item.Complain("must be above the load before it");
    loads.push_back(load);
  });
  return loads;
}

ProfileCell ReadCell(const JsonNode& node, const std::vector<double>& loads) {
  node.AllowOnly({"config", "load_per_s", "repeat", "p50_us", "p99_us", "mean_us", "achieved_per_s",
                  "failed_share", "saturated", "cpu_cores"});
  ProfileCell cell;
  cell.config = ReadConfig(node["config"]);
  cell.load_per_s = node["load_per_s"].Number(0, kMaxRate);
  if (!std::binary_search(loads.begin(), loads.end(), cell.load_per_s)) {
    node["load_per_s"].Complain("is not among the loads");
  }
  cell.repeat = node["repeat"].Int(kMaxRepeat);
  cell.p50_us = node["p50_us"].Number(0, kMaxUs);
  cell.p99_us = node["p99_us"].Number(0, kMaxUs);
  if (cell.p99_us < cell.p50_us) node["p99_us"].Complain("must not be below p50_us");
  cell.mean_us = node["mean_us"].Number(0, kMaxUs);
  cell.achieved_per_s = node["achieved_per_s"].Number(0, kMaxRate);
  cell.failed_share = node["failed_share"].Number(0, 1);
  cell.saturated = node["saturated"].Flag();
  if (node.Contains("cpu_cores")) cell.cpu_cores = node["cpu_cores"].Number(0, kMaxCores);
  return cell;
}

void ReadCells(const JsonNode& node, Profile& profile) {
  std::set<std::string> configs, seen;
  node.ForItems(kMaxCells, [&](const JsonNode& item) {
    const ProfileCell& cell = profile.cells.emplace_back(ReadCell(item, profile.loads));
    const std::string config = cell.config.ToString();
    if (configs.insert(config).second && configs.size() > kMaxConfigs) {
      node.Complain(Join("have more than ", kMaxConfigs, " configs"));
    }
    if (!seen.insert(Join(config, " ", Json(cell.load_per_s).dump(), " ", cell.repeat)).second) {
      item.Complain("repeats an earlier config, load_per_s and repeat");
    }
  });
}

ConfigSummary ReadSummary(const JsonNode& node) {
  node.AllowOnly({"config", "saturation_per_s", "points"});
  ConfigSummary summary;
  summary.config = ReadConfig(node["config"]);
  const JsonNode saturation = node["saturation_per_s"];
  if (!saturation.IsNull()) summary.saturation_per_s = saturation.Number(0, kMaxRate);
  node["points"].ForItems(kMaxLoads, [&](const JsonNode& item) {
    item.AllowOnly({"load_per_s", "p99_us", "spread_us", "unstable", "saturated"});
    summary.points.push_back({item["load_per_s"].Number(0, kMaxRate), item["p99_us"].Number(0, kMaxUs),
                              item["spread_us"].Number(0, 2 * kMaxUs), item["unstable"].Flag(),
                              item["saturated"].Flag()});
  });
  return summary;
}

Profile ReadProfile(const JsonNode& root) {
  root.AllowOnly({"schema_version", "service", "curtail_version", "machine", "seed", "created", "loads_per_s",
                  "cells", "configs", "fences"});
  Profile profile;
  profile.service = root["service"].Text(kMaxString);
  if (profile.service.empty()) root["service"].Complain("must not be empty");
  profile.curtail_version = root["curtail_version"].Text(kMaxString);
  profile.machine = ReadMachine(root["machine"]);
  profile.seed = root["seed"].Count(std::numeric_limits<uint64_t>::max());
  profile.created = root["created"].Text(kMaxString);
  if (root.Contains("fences")) profile.fences = ReadFences(root["fences"]);
  profile.loads = ReadLoads(root["loads_per_s"]);
  const bool limits_alone = profile.loads.empty() && !profile.fences.empty();
  if (profile.loads.empty() && !limits_alone) root["loads_per_s"].Complain("must not be empty");
  ReadCells(root["cells"], profile);
  if (profile.cells.empty() && !limits_alone) root["cells"].Complain("must not be empty");
  return profile;
}

// The summary, which must be what the cells give.
void ReadSummaries(const JsonNode& node, Profile& profile) {
  std::vector<ConfigSummary> found;
  node.ForItems(kMaxConfigs, [&](const JsonNode& item) {
    const ConfigSummary& summary = found.emplace_back(ReadSummary(item));
    if (found.size() > profile.configs.size()) return item.Complain("is of a config without cells");
    const ConfigSummary& wanted = profile.configs[found.size() - 1];
    if (summary == wanted) return;
    item.Complain(
        Join("does not follow from the cells",
             summary.config == wanted.config ? "" : Join(", where ", wanted.config.ToString(), " is next")));
  });
  if (found.size() < profile.configs.size()) {
    node.Complain(Join("lacks ", profile.configs[found.size()].config.ToString(), ", which has cells"));
  }
}

Json SummaryJson(const ConfigSummary& summary) {
  Json points = Json::array();
  for (const ProfilePoint& p : summary.points) {
    points.push_back({{"load_per_s", p.load_per_s},
                      {"p99_us", p.p99_us},
                      {"spread_us", p.spread_us},
                      {"unstable", p.unstable},
                      {"saturated", p.saturated}});
  }
  return {{"config", summary.config.ToString()},
          {"saturation_per_s", summary.saturation_per_s ? Json(*summary.saturation_per_s) : Json(nullptr)},
          {"points", std::move(points)}};
}

Json CellJson(const ProfileCell& c) {
  Json json = {{"config", c.config.ToString()},
               {"load_per_s", c.load_per_s},
               {"repeat", c.repeat},
               {"p50_us", c.p50_us},
               {"p99_us", c.p99_us},
               {"mean_us", c.mean_us},
               {"achieved_per_s", c.achieved_per_s},
               {"failed_share", c.failed_share},
               {"saturated", c.saturated}};
  if (c.cpu_cores) json["cpu_cores"] = *c.cpu_cores;
  return json;
}

Json FenceJson(const ProfileFence& f) {
  return {{"services", f.services}, {"limit", f.limit},         {"throughput_per_s", f.throughput_per_s},
          {"tried", f.tried},       {"saturated", f.saturated}, {"config", f.config.ToString()}};
}

// An array with an item a line.
std::string Lines(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ",\n    " : "\n    ") + item;
  return text + "\n  ]";
}

std::string TextOf(const Profile& profile) {
  Json head = {{"schema_version", kProfileSchemaVersion},
               {"service", profile.service},
               {"curtail_version", profile.curtail_version}};
  head["machine"] = {{"cpu_model", profile.machine.cpu_model},
                     {"cpus", profile.machine.cpus},
                     {"kernel", profile.machine.kernel},
                     {"memory_gib", profile.machine.memory_gib}};
  head["seed"] = profile.seed;
  head["created"] = profile.created;
  head["loads_per_s"] = profile.loads;
  std::string text = "{";
  for (const auto& [key, value] : head.items())
    text += Join("\n  ", internal::Compact(key), ": ", internal::Compact(value), ",");
  std::vector<std::string> cells, configs, fences;
  for (const ProfileCell& cell : profile.cells) cells.push_back(internal::Compact(CellJson(cell)));
  for (const ConfigSummary& summary : profile.configs)
    configs.push_back(internal::Compact(SummaryJson(summary)));
  for (const ProfileFence& fence : profile.fences) fences.push_back(internal::Compact(FenceJson(fence)));
  if (!fences.empty()) text += Join("\n  \"fences\": ", Lines(fences), ",");
  return text + Join("\n  \"configs\": ", Lines(configs), ",\n  \"cells\": ", Lines(cells), "\n}\n");
}

}  // namespace

absl::StatusOr<Profile> ParseProfile(std::string_view text) {
  if (text.size() > kMaxText) return absl::InvalidArgumentError("has more than 64 MiB: no profile has");
  const absl::StatusOr<Json> json = internal::ParseJson(text, kProfileKind);
  if (!json.ok()) return json.status();
  if (absl::Status status =
          internal::CheckSchemaVersion(*json, kProfileKind, kProfileSchemaVersion, "; train again");
      !status.ok()) {
    return status;
  }
  std::string problem;
  const JsonNode root(&*json, &problem);
  Profile profile = ReadProfile(root);
  if (problem.empty()) {
    Summarize(profile);
    ReadSummaries(root["configs"], profile);
  }
  if (!problem.empty()) return absl::InvalidArgumentError(Join("is not a profile: ", problem));
  return profile;
}

absl::StatusOr<std::string> ProfileJson(const Profile& profile) {
  std::string text = TextOf(profile);
  const absl::StatusOr<Profile> again = ParseProfile(text);
  if (!again.ok())
    return absl::InvalidArgumentError(Join("the profile cannot be stored: it ", Message(again.status())));
  if (*again != profile)
    return absl::InvalidArgumentError("the profile cannot be stored: it has text that is not UTF-8");
  return text;
}

}  // namespace curtail
