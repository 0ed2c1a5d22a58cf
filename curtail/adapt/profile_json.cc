// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The reader believes nothing: sizes are bounded before anything is allocated for them, keys that it
// does not know are errors (a misspelt one would otherwise be a missing one), and the summary, which is in the
// file for people and other programs, must be what the cells give. The writer writes only what the reader reads
// back as the same.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "curtail/adapt/profile.h"
#include "curtail/base/strings.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxText = size_t{64} << 20;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxCells = 100'000;
constexpr size_t kMaxLoads = 512;
constexpr size_t kMaxConfigs = 256;
constexpr size_t kMaxKeys = 32;
constexpr size_t kMaxString = 1024;
constexpr int kMaxRepeat = 999;
constexpr double kMaxUs = 1e13;  // four months
constexpr double kMaxRate = 1e12;

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A Node is a value and where it stands. The first problem of a document is kept, and every read returns some
// default from then on, so that callers need not check each step. Thread-compatible.
class Node {
 public:
  Node(const Json* value, std::string* problem) : value_(value), problem_(problem) {}

  // A member. REQUIRES: `key` outlives the node, as literals do.
  Node operator[](const char* key) const {
    Node child(this, key);
    if (Has(Json::value_t::object, "an object")) {
      const auto found = value_->find(key);
      if (found == value_->end()) {
        child.Complain("is missing");
      } else {
        child.value_ = &*found;
      }
    }
    return child;
  }
  // Complains about members that are not among these.
  void AllowOnly(std::initializer_list<std::string_view> keys) const {
    if (!Has(Json::value_t::object, "an object")) return;
    for (const auto& [key, member] : value_->items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      return Complain(Join("has the unknown key \"", std::string_view(key).substr(0, 60), "\""));
    }
  }
  // Calls `each` with every item.
  template <class F>
  void ForItems(size_t at_most, F each) const {
    if (!Has(Json::value_t::array, "an array")) return;
    if (value_->size() > at_most) return Complain(Join("has more than ", at_most, " items"));
    for (size_t i = 0; i < value_->size() && problem_->empty(); ++i) {
      Node child(this, nullptr);
      child.index_ = i;
      child.value_ = &(*value_)[i];
      each(child);
    }
  }

  bool IsNull() const { return value_ != nullptr && value_->is_null(); }
  bool Flag() const { return Has(Json::value_t::boolean, "true or false") && value_->get<bool>(); }
  std::string Text() const {
    if (!Has(Json::value_t::string, "a string")) return {};
    if (value_->get_ref<const std::string&>().size() <= kMaxString) return value_->get<std::string>();
    Complain(Join("has more than ", kMaxString, " characters"));
    return {};
  }
  double Number(double low, double high) const {
    if (value_ == nullptr) return 0;
    const double number =
        value_->is_number() ? value_->get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (number >= low && number <= high) return number;
    Complain(Join("must be a number from ", Json(low).dump(), " to ", Json(high).dump()));
    return 0;
  }
  uint64_t Count(uint64_t high) const {
    if (value_ == nullptr) return 0;
    if (value_->is_number_unsigned() && value_->get<uint64_t>() <= high) return value_->get<uint64_t>();
    Complain(Join("must be a whole number from 0 to ", high));
    return 0;
  }
  int Int(int high) const { return static_cast<int>(Count(static_cast<uint64_t>(high))); }

  void Complain(std::string_view what) const {
    if (problem_->empty()) *problem_ = Join(Path(), Path().empty() ? "it " : " ", what);
  }

 private:
  Node(const Node* parent, const char* key) : parent_(parent), key_(key), problem_(parent->problem_) {}

  bool Has(Json::value_t type, const char* name) const {
    if (value_ == nullptr) return false;
    if (value_->type() != type) Complain(Join("must be ", name));
    return value_->type() == type;
  }

  // "cells[0].p99_us".
  std::string Path() const {
    if (parent_ == nullptr) return {};
    const std::string above = parent_->Path();
    if (key_ == nullptr) return Join(above, "[", index_, "]");
    return above.empty() ? key_ : Join(above, ".", key_);
  }

  const Node* parent_ = nullptr;
  const char* key_ = nullptr;  // null: an item of an array
  size_t index_ = 0;
  const Json* value_ = nullptr;  // null: missing
  std::string* problem_;
};

Config ReadConfig(const Node& node) {
  const std::string text = node.Text();
  const absl::StatusOr<Config> config = Config::Parse(text);
  if (!config.ok()) {
    node.Complain(Join("is no config: ", Message(config.status())));
    return {};
  }
  if (config->ToString() != text) node.Complain(Join("must be written ", config->ToString()));
  return *config;
}

MachineFingerprint ReadMachine(const Node& node) {
  node.AllowOnly({"cpu_model", "cpus", "kernel", "memory_gib"});
  return {node["cpu_model"].Text(), node["cpus"].Int(1 << 20), node["kernel"].Text(),
          node["memory_gib"].Int(1 << 24)};
}

std::vector<double> ReadLoads(const Node& node) {
  std::vector<double> loads;
  node.ForItems(kMaxLoads, [&](const Node& item) {
    const double load = item.Number(1e-6, kMaxRate);
    if (!loads.empty() && load <= loads.back()) item.Complain("must be above the load before it");
    loads.push_back(load);
  });
  if (loads.empty()) node.Complain("must not be empty");
  return loads;
}

ProfileCell ReadCell(const Node& node, const std::vector<double>& loads) {
  node.AllowOnly({"config", "load_per_s", "repeat", "p50_us", "p99_us", "mean_us", "achieved_per_s",
                  "failed_share", "saturated"});
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
  return cell;
}

void ReadCells(const Node& node, Profile& profile) {
  std::set<std::string> configs, seen;
  node.ForItems(kMaxCells, [&](const Node& item) {
    const ProfileCell& cell = profile.cells.emplace_back(ReadCell(item, profile.loads));
    const std::string config = cell.config.ToString();
    if (configs.insert(config).second && configs.size() > kMaxConfigs) {
      node.Complain(Join("have more than ", kMaxConfigs, " configs"));
    }
    if (!seen.insert(Join(config, " ", Json(cell.load_per_s).dump(), " ", cell.repeat)).second) {
      item.Complain("repeats an earlier config, load_per_s and repeat");
    }
  });
  if (profile.cells.empty()) node.Complain("must not be empty");
}

ConfigSummary ReadSummary(const Node& node) {
  node.AllowOnly({"config", "saturation_per_s", "points"});
  ConfigSummary summary;
  summary.config = ReadConfig(node["config"]);
  const Node saturation = node["saturation_per_s"];
  if (!saturation.IsNull()) summary.saturation_per_s = saturation.Number(0, kMaxRate);
  node["points"].ForItems(kMaxLoads, [&](const Node& item) {
    item.AllowOnly({"load_per_s", "p99_us", "spread_us", "unstable", "saturated"});
    summary.points.push_back({item["load_per_s"].Number(0, kMaxRate), item["p99_us"].Number(0, kMaxUs),
                              item["spread_us"].Number(0, 2 * kMaxUs), item["unstable"].Flag(),
                              item["saturated"].Flag()});
  });
  return summary;
}

Profile ReadProfile(const Node& root) {
  root.AllowOnly({"schema_version", "service", "curtail_version", "machine", "seed", "created", "loads_per_s",
                  "cells", "configs"});
  Profile profile;
  profile.service = root["service"].Text();
  if (profile.service.empty()) root["service"].Complain("must not be empty");
  profile.curtail_version = root["curtail_version"].Text();
  profile.machine = ReadMachine(root["machine"]);
  profile.seed = root["seed"].Count(std::numeric_limits<uint64_t>::max());
  profile.created = root["created"].Text();
  profile.loads = ReadLoads(root["loads_per_s"]);
  ReadCells(root["cells"], profile);
  return profile;
}

// The summary, which must be what the cells give.
void ReadSummaries(const Node& node, Profile& profile) {
  std::vector<ConfigSummary> found;
  node.ForItems(kMaxConfigs, [&](const Node& item) {
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

// Where byte `at` of `text`, counted from 1, stands.
std::string Place(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, std::min(at == 0 ? 0 : at - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  return Join("line ", line, ", column ",
              before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
}

absl::StatusOr<Json> ParseJson(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto bounded = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) throw Refused("is nested more deeply than any profile");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw Refused(Join("has the key \"", std::string_view(key).substr(0, 60), "\" twice in one object"));
      }
      if (keys.back().size() > kMaxKeys) throw Refused("has an object with more keys than any profile");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), bounded);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(Join("is not JSON: ", Place(text, error.byte),
                                           error.byte > text.size() ? ": it ends too early" : ""));
  } catch (const Json::exception&) {  // such as a number beyond all doubles
    return absl::InvalidArgumentError("is not JSON: a value that no profile has");
  } catch (const Refused& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

absl::Status CheckVersion(const Json& json) {
  const auto version = json.is_object() ? json.find("schema_version") : json.end();
  if (!json.is_object() || version == json.end() || !version->is_number_integer()) {
    return absl::InvalidArgumentError("is no profile: it has no schema_version");
  }
  if (*version == kProfileSchemaVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(Join("has schema_version ", version->dump(), ", and only ",
                                         kProfileSchemaVersion, " is understood; train again"));
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
  return {{"config", c.config.ToString()},
          {"load_per_s", c.load_per_s},
          {"repeat", c.repeat},
          {"p50_us", c.p50_us},
          {"p99_us", c.p99_us},
          {"mean_us", c.mean_us},
          {"achieved_per_s", c.achieved_per_s},
          {"failed_share", c.failed_share},
          {"saturated", c.saturated}};
}

// An array with an item a line.
std::string Lines(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ",\n    " : "\n    ") + item;
  return text + "\n  ]";
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

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
  for (const auto& [key, value] : head.items()) text += Join("\n  ", Dump(key), ": ", Dump(value), ",");
  std::vector<std::string> cells, configs;
  for (const ProfileCell& cell : profile.cells) cells.push_back(Dump(CellJson(cell)));
  for (const ConfigSummary& summary : profile.configs) configs.push_back(Dump(SummaryJson(summary)));
  return text + Join("\n  \"configs\": ", Lines(configs), ",\n  \"cells\": ", Lines(cells), "\n}\n");
}

}  // namespace

absl::StatusOr<Profile> ParseProfile(std::string_view text) {
  if (text.size() > kMaxText) return absl::InvalidArgumentError("has more than 64 MiB: no profile has");
  const absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return json.status();
  if (absl::Status status = CheckVersion(*json); !status.ok()) return status;
  std::string problem;
  const Node root(&*json, &problem);
  Profile profile = ReadProfile(root);
  if (problem.empty()) {
    Summarize(profile);
    ReadSummaries(root["configs"], profile);
  }
  if (!problem.empty()) return absl::InvalidArgumentError(Join("is no profile: ", problem));
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
