// SPDX-License-Identifier: Apache-2.0
//
// The JSON of provision_report.h; provision.schema.json beside it describes the JSON.
#include "curtail/base/internal/json_document.h"
#include "curtail/load/report/internal/machine_json.h"
#include "tools/curtail/provision/provision_report.h"

namespace curtail::tool {
namespace {

using internal::Json;

Json Number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

const char* NameOfEnd(ProvisionEnd end) {
  switch (end) {
    case ProvisionEnd::kRunning:
      return "running";
    case ProvisionEnd::kBalanced:
      return "balanced";
    case ProvisionEnd::kNoStepHelps:
      return "no_step_helps";
    case ProvisionEnd::kNoGain:
      return "no_gain";
    case ProvisionEnd::kNothingSaturated:
      return "nothing_saturated";
    case ProvisionEnd::kCpusSpent:
      return "cpus_spent";
    case ProvisionEnd::kThreadsSpent:
      return "threads_spent";
    case ProvisionEnd::kGenerator:
      return "generator";
    case ProvisionEnd::kRounds:
      return "rounds";
    case ProvisionEnd::kTime:
      return "time";
    case ProvisionEnd::kInterrupted:
      return "interrupted";
  }
  return "";
}

Json ShareJson(const TierShare& share) {
  return {{"cpu", share.cpu > 0 ? Json(share.cpu) : Json(nullptr)},
          {"config", share.config.empty() ? Json(nullptr) : Json(share.config)}};
}

Json AllocationJson(const Allocation& shares) {
  Json json = Json::object();
  for (const auto& [name, share] : shares) json[name] = ShareJson(share);
  return json;
}

Json RoundJson(const ProvisionRound& round) {
  Json json = {{"cpus", round.cpus},
               {"highest_per_s", Number(round.highest_per_s)},
               {"refused_per_s", round.refused_per_s},
               {"saturated", Json::array()},
               {"steps", Json::array()},
               {"verdict", NameOf(round.verdict)},
               {"pairs", round.pairs},
               {"good_share_before", round.good_before},
               {"good_share_after", round.good_after},
               {"gain_95", nullptr}};
  for (const Saturation& of : round.saturated) {
    json["saturated"].push_back({{"service", of.tier},
                                 {"short_of", NameOf(of.lever)},
                                 {"share", of.share},
                                 {"evidence", of.evidence}});
  }
  for (const ProvisionStep& step : round.steps) {
    json["steps"].push_back({{"service", step.tier},
                             {"lever", NameOf(step.lever)},
                             {"from", ShareJson(step.from)},
                             {"to", ShareJson(step.to)},
                             {"evidence", step.evidence}});
  }
  if (round.gain) json["gain_95"] = {round.gain->low, round.gain->high};
  return json;
}

}  // namespace

std::string ProvisionJson(const ProvisionReport& report, const ReportOrigin& origin) {
  Json json = {{"schema_version", 1},
               {"kind", "provision"},
               {"curtail_version", origin.curtail_version},
               {"started", origin.started},
               {"command", origin.command},
               {"machine", origin.machine ? internal::MachineJson(*origin.machine) : Json(nullptr)},
               {"application", report.application},
               {"qos", report.qos},
               {"cpus", report.options.cpus},
               {"instances", report.options.instances},
               {"start", AllocationJson(report.start)},
               {"shares", AllocationJson(report.kept)},
               {"highest_per_s", Number(report.highest_per_s)},
               {"equal_shares", AllocationJson(report.equal)},
               {"equal_highest_per_s", Number(report.equal_per_s)},
               {"end", NameOfEnd(report.end)},
               {"reason", report.reason},
               {"cpus_used", Json::object()},
               {"rounds", Json::array()}};
  for (const TierLoad& load : report.at_highest) json["cpus_used"][load.name] = load.cpus;
  for (const ProvisionRound& round : report.rounds) json["rounds"].push_back(RoundJson(round));
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace curtail::tool
