// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/provision_report.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/curtail/term/table.h"

namespace curtail::tool {
namespace {

std::string LoadText(const std::optional<double>& per_s) {
  return per_s ? absl::StrFormat("%.4g/s", *per_s) : "none";
}

std::string CpuText(double cpu) { return cpu > 0 ? absl::StrFormat("%.2f", cpu) : "-"; }

std::string ChangeText(const ProvisionStep& step) {
  if (step.lever == Lever::kCpu)
    return absl::StrFormat("cpu %s -> %s", CpuText(step.from.cpu), CpuText(step.to.cpu));
  return absl::StrCat(step.from.config, " -> ", step.to.config);
}

std::string StepsText(const ProvisionRound& round) {
  return absl::StrJoin(round.steps, ", ", [](std::string* out, const ProvisionStep& step) {
    absl::StrAppend(out, step.tier, " ", ChangeText(step));
  });
}

std::string GoodText(const ProvisionRound& round) {
  if (round.pairs == 0) return "-";
  return absl::StrFormat("%.1f %% -> %.1f %%", 100 * round.good_before, 100 * round.good_after);
}

std::string FirstText(const ProvisionRound& round) {
  if (round.saturated.empty()) return "none";
  return absl::StrCat(round.saturated.front().tier, ": ", round.saturated.front().evidence);
}

std::string Lines(const std::vector<TableColumn>& columns, std::vector<TableRow> rows) {
  return PlainText(TableLines(columns, std::move(rows), 0));
}

std::string RoundsTable(const ProvisionReport& report) {
  std::vector<TableRow> rows;
  for (size_t i = 0; i < report.rounds.size(); ++i) {
    const ProvisionRound& round = report.rounds[i];
    rows.push_back({{absl::StrCat(i + 1), CpuText(round.cpus), LoadText(round.highest_per_s),
                     absl::StrFormat("%.4g/s", round.refused_per_s), FirstText(round), StepsText(round),
                     GoodText(round), NameOf(round.verdict)}});
  }
  return Lines({{"ROUND"},
                {"CPUS"},
                {"WITHIN QOS"},
                {"REFUSED"},
                {"SATURATED FIRST", 0, true},
                {"STEP", 0, true},
                {"GOOD", 0, true},
                {"VERDICT", 0, true}},
               std::move(rows));
}

std::string SharesTable(const ProvisionReport& report) {
  std::vector<std::pair<std::string, TierShare>> order(report.kept.begin(), report.kept.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second.cpu, a.first) < std::tie(a.second.cpu, b.first);
  });
  std::vector<TableRow> rows;
  for (const auto& [name, share] : order) {
    std::optional<double> used;
    for (const TierLoad& load : report.at_highest) {
      if (load.name == name) used = load.cpus;
    }
    const TierShare& start = report.start.at(name);
    rows.push_back({{name, absl::StrCat(report.options.instances.at(name)), CpuText(start.cpu),
                     CpuText(share.cpu), NumberCell(used, 3), share.config.empty() ? "-" : share.config}});
  }
  return Lines(
      {{"SERVICE", 0, true}, {"INSTANCES"}, {"CPU AT START"}, {"CPU"}, {"USED"}, {"CONFIG", 0, true}},
      std::move(rows));
}

}  // namespace

std::string RoundText(const ProvisionReport& report, size_t round) {
  const ProvisionRound& r = report.rounds.at(round);
  std::string text = absl::StrFormat("round %d: %s within QoS, %.4g/s not; saturated first: %s", round + 1,
                                     LoadText(r.highest_per_s), r.refused_per_s, FirstText(r));
  if (!r.steps.empty()) absl::StrAppend(&text, "\n  ", StepsText(r));
  if (r.verdict != StepVerdict::kNone) {
    absl::StrAppendFormat(&text, " %s: good requests %s, in %d pairs of turns", NameOf(r.verdict),
                          GoodText(r), r.pairs);
  }
  return text;
}

std::string ProvisionText(const ProvisionReport& report) {
  const double cpus_at_start = report.rounds.empty() ? 0 : report.rounds.front().cpus;
  double cpus = 0;
  for (const auto& [name, share] : report.kept) cpus += share.cpu * report.options.instances.at(name);
  std::string text =
      absl::StrCat(RoundsTable(report), "\n", SharesTable(report), "\nended: ", report.reason, "\n");
  const std::string before =
      LoadText(report.rounds.empty() ? std::nullopt : report.rounds.front().highest_per_s);
  absl::StrAppend(&text, "equal shares   ", before, " within ", report.qos,
                  cpus_at_start > 0 ? absl::StrFormat(", %.2f CPUs", cpus_at_start) : "", "\nprovisioned    ",
                  LoadText(report.highest_per_s), cpus > 0 ? absl::StrFormat(", %.2f CPUs", cpus) : "", "\n");
  if (!report.equal.empty()) {
    absl::StrAppendFormat(&text, "the same CPUs in equal shares  %s\n", LoadText(report.equal_per_s));
  }
  return text;
}

std::string OverlayYaml(const ProvisionReport& report, const deploy::Topology& topology,
                        const std::string& command) {
  std::string text = absl::StrCat(
      "# Written by: ", absl::StrReplaceAll(command, {{"\n", " "}}), "\n# ", LoadText(report.highest_per_s),
      " within ", report.qos, ". Start it with: curtail up ", report.application,
      " --overlay THIS_FILE\napplication: ", topology.application, "\nservices:\n");
  bool any = false;
  for (const auto& [name, share] : report.kept) {
    const deploy::ServiceSpec& spec = *topology.Find(name);
    std::vector<std::string> keys;
    if (share.cpu > 0) keys.push_back(absl::StrFormat("cpu: %.2f", share.cpu));
    const std::string& own = spec.config.empty() && spec.policy.empty() ? "auto" : spec.config;
    if (!share.config.empty() && share.config != own) keys.push_back("config: " + share.config);
    if (keys.empty()) continue;
    absl::StrAppend(&text, "  ", name, ": {", absl::StrJoin(keys, ", "), "}\n");
    any = true;
  }
  return any ? text : absl::StrCat(text.substr(0, text.rfind("services:")), "services: {}\n");
}

}  // namespace curtail::tool
