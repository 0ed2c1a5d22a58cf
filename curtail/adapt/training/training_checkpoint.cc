// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The header is not read into a plan: it is compared, member by member, with the one that would be
// written now. The cells are told to a Training of the plan, which knows what must come next; so the reader
// accepts just those that a run would have written.
#include <optional>
#include <utility>

#include "curtail/adapt/internal/limits.h"
#include "curtail/adapt/training.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

using internal::kMaxString;
using internal::kMaxText;

using internal::Json;
using internal::JsonNode;

constexpr internal::JsonKind kCheckpointKind{.name = "training checkpoint", .max_depth = 4, .max_keys = 32};
constexpr int kSchemaVersion = 1;
constexpr size_t kShown = 60;

Json HeaderJson(const TrainingPlan& plan, const MachineFingerprint& machine, std::string_view version) {
  Json configs = Json::array();
  for (const Config& config : plan.configs) configs.push_back(config.ToString());
  Json json = {
      {"schema_version", kSchemaVersion}, {"kind", kCheckpointKind.name}, {"curtail_version", version}};
  json["machine"] = {{"cpu_model", machine.cpu_model},
                     {"cpus", machine.cpus},
                     {"kernel", machine.kernel},
                     {"memory_gib", machine.memory_gib}};
  json["plan"] = {{"service", plan.service},
                  {"workload", plan.workload},
                  {"configs", std::move(configs)},
                  {"loads_per_s", plan.loads},
                  {"repeats", plan.repeats},
                  {"cell_ns", plan.cell.count()},
                  {"warmup_ns", plan.warmup.count()},
                  {"between_ns", plan.between.count()},
                  {"wanted_requests", plan.wanted_requests},
                  {"max_stretch", plan.max_stretch},
                  {"seed", plan.seed}};
  return json;
}

std::string Shown(const Json& json) {
  std::string text = internal::Compact(json);
  if (text.size() <= kShown) return text;
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

// Adds the members in which the objects differ: "plan.seed (1 there, 2 here)".
void Compare(const Json& there, const Json& here, const std::string& above, std::string& differs) {
  const auto add = [&](const std::string& key, const std::string& how) {
    differs += Join(differs.empty() ? "" : ", ", above, key, " (", how, ")");
  };
  for (const auto& [key, value] : here.items()) {
    const auto found = there.find(key);
    if (found == there.end()) {
      add(key, "missing there");
    } else if (value.is_object() && found->is_object()) {
      Compare(*found, value, Join(above, key, "."), differs);
    } else if (*found != value) {
      add(key, Join(Shown(*found), " there, ", Shown(value), " here"));
    }
  }
  for (const auto& [key, value] : there.items()) {
    if (!here.contains(key)) add(Shown(key), "unknown here");
  }
}

absl::Status InLine(size_t line, std::string_view what) {
  return absl::InvalidArgumentError(Join("line ", line, " of the checkpoint ", what));
}

absl::Status CheckHeader(std::string_view line, const Json& wanted) {
  const absl::StatusOr<Json> found = internal::ParseJson(line, kCheckpointKind);
  if (!found.ok()) return InLine(1, Message(found.status()));
  if (absl::Status status =
          internal::CheckSchemaVersion(*found, kCheckpointKind, kSchemaVersion, "; train anew");
      !status.ok()) {
    return InLine(1, Message(status));
  }
  if (!found->contains("kind") || (*found)["kind"] != wanted["kind"]) {
    return InLine(1, "is not the header of a training checkpoint");
  }
  std::string differs;
  Compare(*found, wanted, "", differs);
  if (differs.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(Join("the checkpoint is of another training, which differs in ",
                                            differs, "; train with what it says, or begin anew without it"));
}

absl::StatusOr<ProfileCell> ReadCell(std::string_view line) {
  const absl::StatusOr<Json> json = internal::ParseJson(line, kCheckpointKind);
  if (!json.ok()) return json.status();
  std::string problem;
  const JsonNode node(&*json, &problem);
  node.AllowOnly({"config", "load_per_s", "repeat", "p50_us", "p99_us", "mean_us", "achieved_per_s",
                  "failed_share", "saturated", "cpu_cores"});
  ProfileCell cell;
  const absl::StatusOr<Config> config = Config::Parse(node["config"].Text(kMaxString));
  if (config.ok()) {
    cell.config = *config;
  } else {
    node["config"].Complain(Join("is not a config: ", Message(config.status())));
  }
  // Training::Tell() looks whether the numbers make sense.
  constexpr double kAny = 1e300;
  cell.load_per_s = node["load_per_s"].Number(0, kAny);
  cell.repeat = node["repeat"].Int(1 << 20);
  cell.p50_us = node["p50_us"].Number(0, kAny);
  cell.p99_us = node["p99_us"].Number(0, kAny);
  cell.mean_us = node["mean_us"].Number(0, kAny);
  cell.achieved_per_s = node["achieved_per_s"].Number(0, kAny);
  cell.failed_share = node["failed_share"].Number(0, kAny);
  cell.saturated = node["saturated"].Flag();
  if (node.Contains("cpu_cores")) cell.cpu_cores = node["cpu_cores"].Number(0, kAny);
  if (!problem.empty()) return absl::InvalidArgumentError(Join("is not a cell: ", problem));
  return cell;
}

// Takes the next line off the text, without its newline; none when there is no whole one.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string CheckpointHeader(const TrainingPlan& plan, const MachineFingerprint& machine,
                             std::string_view version) {
  return internal::Compact(HeaderJson(plan, machine, version)) + "\n";
}

std::string CheckpointLine(const ProfileCell& cell) {
  Json json = {{"config", cell.config.ToString()},
               {"load_per_s", cell.load_per_s},
               {"repeat", cell.repeat},
               {"p50_us", cell.p50_us},
               {"p99_us", cell.p99_us},
               {"mean_us", cell.mean_us},
               {"achieved_per_s", cell.achieved_per_s},
               {"failed_share", cell.failed_share},
               {"saturated", cell.saturated}};
  if (cell.cpu_cores) json["cpu_cores"] = *cell.cpu_cores;
  return internal::Compact(json) + "\n";
}

absl::StatusOr<Checkpoint> ReadCheckpoint(std::string_view text, const TrainingPlan& plan,
                                          const MachineFingerprint& machine, std::string_view version) {
  if (text.size() > kMaxText) {
    return absl::InvalidArgumentError("the checkpoint has more than 64 MiB: no training writes as much");
  }
  std::string_view rest = text;
  const std::optional<std::string_view> header = TakeLine(rest);
  if (!header) {
    return absl::InvalidArgumentError("the checkpoint has no whole line: nothing was measured; begin anew");
  }
  // Written and read, as texts that are not UTF-8 are changed by that.
  const Json wanted = Json::parse(internal::Compact(HeaderJson(plan, machine, version)));
  if (absl::Status status = CheckHeader(*header, wanted); !status.ok()) return status;
  Training training(plan);
  for (size_t number = 2; const std::optional<std::string_view> line = TakeLine(rest); ++number) {
    const absl::StatusOr<ProfileCell> cell = ReadCell(*line);
    if (!cell.ok()) return InLine(number, Message(cell.status()));
    if (absl::Status status = training.Tell(*cell); !status.ok()) {
      return InLine(number, Join("does not fit: ", Message(status)));
    }
  }
  return Checkpoint{training.cells(), text.size() - rest.size()};
}

}  // namespace curtail
