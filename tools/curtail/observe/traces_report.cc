// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/traces_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/curtail/term/table.h"

namespace curtail::tool {
namespace {

using observe::EdgeTimes;
using observe::RequestClass;
using observe::SlowRequests;
using observe::TierGrowth;
using observe::TierTimes;
using observe::TraceName;
using observe::TracePart;
using observe::TraceRecords;

constexpr int kTracesSchemaVersion = 1;
constexpr size_t kMostInstances = 4;
constexpr std::array kTierParts = {TracePart::kQueue,     TracePart::kEntry, TracePart::kHandler,
                                   TracePart::kSerialize, TracePart::kWait,  TracePart::kReply};

double Of(int64_t sum, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}
std::string Ms(double ns) { return absl::StrFormat("%.3f", ns / 1e6); }
std::string Percent(int64_t part, int64_t whole) {
  return whole == 0 ? "-"
                    : absl::StrFormat("%.1f", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}
double PartNs(const TierTimes& tier, TracePart part) {
  return static_cast<double>(tier.parts[static_cast<size_t>(part)]);
}

std::string_view VerdictName(TierGrowth::Verdict verdict) {
  static constexpr std::array<std::string_view, 4> kNames = {"steady", "culprit", "waits", "grew"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string TierText(const TracesReport& report) {
  const std::vector<TableColumn> columns = {{"SERVICE", 0, true}, {"REQUESTS"},    {"FAILED"},  {"MEAN MS"},
                                            {"P50 MS"},           {"P99 MS"},      {"QUEUE %"}, {"ENTRY %"},
                                            {"HANDLER %"},        {"SERIALIZE %"}, {"WAIT %"},  {"REPLY %"}};
  std::vector<TableRow> rows;
  for (const TierTimes& tier : report.analysis.tiers) {
    TableRow& row = rows.emplace_back();
    row.cells = {report.records->name(tier.tier),   absl::StrCat(tier.requests),
                 absl::StrCat(tier.failed),         Ms(Of(tier.total, tier.requests)),
                 Ms(static_cast<double>(tier.p50)), Ms(static_cast<double>(tier.p99))};
    for (const TracePart part : kTierParts)
      row.cells.push_back(Percent(tier.parts[static_cast<size_t>(part)], tier.total));
  }
  return PlainText(TableLines(columns, std::move(rows), 0));
}

std::string EdgeText(const TracesReport& report) {
  if (report.analysis.edges.empty()) return "";
  const std::vector<TableColumn> columns = {
      {"CALLS OF", 0, true}, {"TO", 0, true}, {"CALLS"},    {"FAILED"},  {"MEAN MS"},
      {"SERIALIZE %"},       {"NETWORK %"},   {"CALLEE %"}, {"UNSEEN %"}};
  std::vector<TableRow> rows;
  for (const EdgeTimes& edge : report.analysis.edges) {
    rows.push_back({{report.records->name(edge.caller), report.records->name(edge.callee),
                     absl::StrCat(edge.calls), absl::StrCat(edge.failed), Ms(Of(edge.total, edge.calls)),
                     Percent(edge.serialize, edge.total), Percent(edge.network, edge.total),
                     Percent(edge.inside, edge.total), Percent(edge.remote, edge.total)}});
  }
  return absl::StrCat("\n", PlainText(TableLines(columns, std::move(rows), 0)));
}

// The steps of a critical path, the longest first.
std::vector<std::pair<std::pair<TraceName, TracePart>, int64_t>> Steps(const RequestClass& of) {
  std::vector<std::pair<std::pair<TraceName, TracePart>, int64_t>> steps(of.path.begin(), of.path.end());
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return steps;
}

std::string PathText(const TraceRecords& records, const RequestClass& of) {
  std::vector<TableRow> rows;
  for (const auto& [step, time] : Steps(of)) {
    rows.push_back({{absl::StrCat("  ", records.name(step.first)), std::string(TracePartName(step.second)),
                     Ms(Of(time, of.requests)), Percent(time, of.total)}});
  }
  return PlainText(TableLines({{"  CRITICAL PATH", 0, true}, {"PART", 0, true}, {"MEAN MS"}, {"SHARE %"}},
                              std::move(rows), 0));
}

std::string InstancesText(const TraceRecords& records, const SlowRequests& slow) {
  if (slow.instances.size() < 2) return "";
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(slow.instances.size(), kMostInstances); ++i) {
    texts.push_back(
        absl::StrCat(records.name(slow.instances[i].first), " ", Ms(slow.instances[i].second), " ms"));
  }
  if (slow.instances.size() > kMostInstances) texts.emplace_back("...");
  return absl::StrCat("; ", absl::StrJoin(texts, ", "));
}

std::string SlowText(const TraceRecords& records, const SlowRequests& slow) {
  std::string text = absl::StrFormat("  %d slow requests, over %s ms; %d others\n", slow.slow,
                                     Ms(static_cast<double>(slow.limit)), slow.others);
  std::vector<TableRow> rows;
  for (const TierGrowth& tier : slow.tiers) {
    const auto grew_at =
        tier.grew_at ? absl::StrFormat("%.1f", static_cast<double>(*tier.grew_at) / 1e9) : "-";
    rows.push_back(
        {{absl::StrCat("  ", records.name(tier.tier)), Ms(tier.total_before), Ms(tier.total_slow),
          Ms(tier.own_before), Ms(tier.own_slow), grew_at, std::string(VerdictName(tier.verdict))}});
  }
  absl::StrAppend(&text, PlainText(TableLines({{"  SERVICE", 0, true},
                                               {"OTHERS MS"},
                                               {"SLOW MS"},
                                               {"OWN, OTHERS"},
                                               {"OWN, SLOW"},
                                               {"GREW AT S"},
                                               {"VERDICT", 0, true}},
                                              std::move(rows), 0)));
  absl::StrAppendFormat(&text, "  culprit: %s, its %s: %s of the %s ms by which slow requests are longer%s\n",
                        records.name(slow.culprit), TracePartName(slow.part),
                        Ms(static_cast<double>(slow.growth)), Ms(static_cast<double>(slow.whole_growth)),
                        InstancesText(records, slow));
  return text;
}

nlohmann::json TierJson(const TracesReport& report, const TierTimes& tier) {
  nlohmann::json parts = nlohmann::json::object();
  for (const TracePart part : kTierParts)
    parts[std::string(TracePartName(part))] =
        PartNs(tier, part) / 1e3 / static_cast<double>(std::max<uint64_t>(1, tier.requests));
  return {{"service", report.records->name(tier.tier)},
          {"requests", tier.requests},
          {"failed", tier.failed},
          {"mean_us", Of(tier.total, tier.requests) / 1e3},
          {"p50_us", static_cast<double>(tier.p50) / 1e3},
          {"p99_us", static_cast<double>(tier.p99) / 1e3},
          {"mean_parts_us", std::move(parts)}};
}

nlohmann::json EdgeJson(const TracesReport& report, const EdgeTimes& edge) {
  const auto mean = [&edge](int64_t sum) { return Of(sum, edge.calls) / 1e3; };
  return {{"caller", report.records->name(edge.caller)},
          {"callee", report.records->name(edge.callee)},
          {"calls", edge.calls},
          {"failed", edge.failed},
          {"callee_seen", edge.seen},
          {"mean_us", mean(edge.total)},
          {"mean_parts_us",
           {{"serialize", mean(edge.serialize)},
            {"network", mean(edge.network)},
            {"callee", mean(edge.inside)},
            {"unseen", mean(edge.remote)}}}};
}

nlohmann::json SlowJson(const TraceRecords& records, const SlowRequests& slow) {
  nlohmann::json tiers = nlohmann::json::array(), instances = nlohmann::json::array();
  for (const TierGrowth& tier : slow.tiers) {
    tiers.push_back({{"service", records.name(tier.tier)},
                     {"others_us", tier.total_before / 1e3},
                     {"slow_us", tier.total_slow / 1e3},
                     {"own_others_us", tier.own_before / 1e3},
                     {"own_slow_us", tier.own_slow / 1e3},
                     {"grew_at_s", tier.grew_at ? nlohmann::json(static_cast<double>(*tier.grew_at) / 1e9)
                                                : nlohmann::json()},
                     {"verdict", VerdictName(tier.verdict)}});
  }
  for (const auto& [instance, own] : slow.instances)
    instances.push_back({{"process", records.name(instance)}, {"own_slow_us", own / 1e3}});
  return {{"limit_us", static_cast<double>(slow.limit) / 1e3},
          {"slow", slow.slow},
          {"others", slow.others},
          {"culprit", records.name(slow.culprit)},
          {"part", TracePartName(slow.part)},
          {"growth_us", static_cast<double>(slow.growth) / 1e3},
          {"whole_growth_us", static_cast<double>(slow.whole_growth) / 1e3},
          {"services", std::move(tiers)},
          {"processes", std::move(instances)}};
}

nlohmann::json ClassJson(const TracesReport& report, const RequestClass& of) {
  nlohmann::json path = nlohmann::json::array();
  for (const auto& [step, time] : Steps(of)) {
    path.push_back({{"service", report.records->name(step.first)},
                    {"part", TracePartName(step.second)},
                    {"mean_us", Of(time, of.requests) / 1e3}});
  }
  return {
      {"service", report.records->name(of.tier)},
      {"method", report.records->name(of.method)},
      {"requests", of.requests},
      {"failed", of.failed},
      {"mean_us", Of(of.total, of.requests) / 1e3},
      {"p50_us", static_cast<double>(of.p50) / 1e3},
      {"p99_us", static_cast<double>(of.p99) / 1e3},
      {"network_share", of.total == 0 ? 0 : static_cast<double>(of.network) / static_cast<double>(of.total)},
      {"critical_path", std::move(path)},
      {"slow", of.slow ? SlowJson(*report.records, *of.slow) : nlohmann::json()}};
}

}  // namespace

std::string TracesText(const TracesReport& report) {
  const TraceRecords& records = *report.records;
  std::string text = absl::StrCat(report.source, ": ", records.spans().size(), " spans");
  if (report.processes > 0)
    absl::StrAppendFormat(&text, " of %d processes in %.1f s", report.processes, report.seconds);
  if (report.analysis.alone > 0)
    absl::StrAppend(&text, "; of ", report.analysis.alone, " the caller's is missing");
  if (report.analysis.calls_left_out > 0)
    absl::StrAppend(&text, "; they did not keep ", report.analysis.calls_left_out, " calls");
  if (records.refused() > 0) absl::StrAppend(&text, "; ", records.refused(), " malformed ones");
  if (records.left_out() > 0) absl::StrAppend(&text, "; ", records.left_out(), " more than are kept");
  absl::StrAppend(&text, "\n\n", TierText(report), EdgeText(report));
  for (const RequestClass& of : report.analysis.classes) {
    absl::StrAppendFormat(
        &text,
        "\n%s %s: %d requests, %d failed, mean %s ms, p50 %s ms, p99 %s ms, network processing %s %%\n",
        records.name(of.tier), records.name(of.method), of.requests, of.failed, Ms(Of(of.total, of.requests)),
        Ms(static_cast<double>(of.p50)), Ms(static_cast<double>(of.p99)), Percent(of.network, of.total));
    absl::StrAppend(&text, PathText(records, of));
    if (of.slow) absl::StrAppend(&text, SlowText(records, *of.slow));
  }
  return text;
}

std::string TracesJson(const TracesReport& report) {
  nlohmann::json services = nlohmann::json::array(), edges = services, classes = services;
  for (const TierTimes& tier : report.analysis.tiers) services.push_back(TierJson(report, tier));
  for (const EdgeTimes& edge : report.analysis.edges) edges.push_back(EdgeJson(report, edge));
  for (const RequestClass& of : report.analysis.classes) classes.push_back(ClassJson(report, of));
  const nlohmann::json json = {{"schema_version", kTracesSchemaVersion},
                               {"source", report.source},
                               {"processes", report.processes},
                               {"seconds", report.seconds},
                               {"spans", report.records->spans().size()},
                               {"spans_without_caller", report.analysis.alone},
                               {"spans_malformed", report.records->refused()},
                               {"spans_left_out", report.records->left_out()},
                               {"calls_left_out", report.analysis.calls_left_out},
                               {"services", std::move(services)},
                               {"edges", std::move(edges)},
                               {"classes", std::move(classes)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace curtail::tool
