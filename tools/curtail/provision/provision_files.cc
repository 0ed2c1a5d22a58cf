// SPDX-License-Identifier: Apache-2.0
//
// The JSON and the picture of provision_report.h; provision.schema.json beside it describes the JSON.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/load/report/internal/machine_json.h"
#include "curtail/load/report/internal/report_charts.h"
#include "curtail/load/report/internal/svg_chart.h"
#include "tools/curtail/provision/provision_report.h"

namespace curtail::tool {
namespace {

using internal::Json;

constexpr char kProvisionCss[] = R"(.line { stroke-width: 2; }
.line.shares, .marker.shares { stroke: #007a5a; } .marker.shares, text.shares { fill: #007a5a; }
.line.equal, .marker.equal { stroke: #d55e00; } .marker.equal, text.equal { fill: #d55e00; }
svg text.name { font-weight: 600; }
)";

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

std::string ProvisionSvg(const ProvisionReport& report) {
  // Without limits of CPU time the rounds stand for it.
  const bool cpu = !report.rounds.empty() && report.rounds.front().cpus > 0;
  internal::Chart chart;
  chart.label = absl::StrCat(report.application, ": load within ", report.qos, ", round by round");
  chart.height = 520;
  chart.names_at_end = true;
  internal::Line shares{"provisioned", "shares", {}};
  double most_x = 0, most_y = 0;
  const auto add = [&](double x, double per_s, const std::string& title, const std::string& style) {
    chart.markers.push_back({{x, per_s}, style, false, title});
    most_x = std::max(most_x, x), most_y = std::max(most_y, per_s);
  };
  double sum = 0;
  for (const auto& [name, share] : report.kept) sum += share.cpu * report.options.instances.at(name);
  for (size_t i = 0; i < report.rounds.size(); ++i) {
    const ProvisionRound& round = report.rounds[i];
    if (!round.highest_per_s) continue;
    const double x = cpu ? round.cpus : static_cast<double>(i + 1);
    shares.points.push_back({x, *round.highest_per_s});
    add(x, *round.highest_per_s, RoundText(report, i), "shares");
    if (round.verdict == StepVerdict::kHelps) {
      std::string text;
      for (const ProvisionStep& step : round.steps)
        absl::StrAppend(&text, text.empty() ? "+ " : ", ", step.tier);
      chart.labels.push_back({{x, *round.highest_per_s}, text});
    }
  }
  if (report.highest_per_s && (shares.points.empty() || shares.points.back().y != *report.highest_per_s)) {
    const double x = cpu ? sum : static_cast<double>(report.rounds.size() + 1);
    shares.points.push_back({x, *report.highest_per_s});
    add(x, *report.highest_per_s, "at the end", "shares");
  }
  if (shares.points.empty()) return internal::SvgFile(chart, "no load was within the QoS", kProvisionCss);
  if (cpu && report.equal_per_s && report.rounds.front().highest_per_s) {
    internal::Line equal{
        "equal shares",
        "equal dashed",
        {{report.rounds.front().cpus, *report.rounds.front().highest_per_s}, {sum, *report.equal_per_s}}};
    add(sum, *report.equal_per_s, "the same CPUs in equal shares", "equal");
    chart.lines.push_back(std::move(equal));
  }
  chart.lines.push_back(std::move(shares));
  chart.x = internal::LinearAxis(cpu ? "CPUs that the services may use together" : "round", most_x,
                                 internal::NumberText);
  chart.y = internal::LinearAxis("requests a second within the QoS", most_y, internal::NumberText);
  return internal::SvgFile(chart, "beside a point: the service that was saturated first, and got more",
                           kProvisionCss);
}

}  // namespace curtail::tool
