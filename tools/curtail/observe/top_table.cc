// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/top_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/curtail/term/table.h"

namespace curtail::tool {
namespace {

using Style = ScreenLine::Style;

constexpr int kTopSchemaVersion = 1;

std::string Readiness(const ServiceVitals& service) {
  if (service.ready == 0) return "down";
  return absl::StrCat(service.ready, "/", service.processes);
}

std::vector<ScreenLine> ServiceTable(const std::vector<ServiceVitals>& services, size_t room) {
  static const std::vector<TableColumn> columns = {
      {"SERVICE", 0, true}, {"UP", 1, true}, {"CALLS/S", 2},  {"P50 MS", 4},
      {"P99 MS", 3},        {"ERR/S", 5},    {"CPU %", 6},    {"MIB", 7},
      {"QUEUE", 8},         {"WAIT MS", 11}, {"THREADS", 10}, {"CONFIG", 9, true}};
  std::vector<TableRow> rows;
  for (const ServiceVitals& service : services) {
    rows.push_back({{service.name, Readiness(service), NumberCell(service.calls_per_s, 1),
                     NumberCell(service.p50_s, 2, 1e3), NumberCell(service.p99_s, 2, 1e3),
                     NumberCell(service.errors_per_s, 1), NumberCell(service.cpus, 1, 100),
                     NumberCell(service.resident_mib, 0), NumberCell(service.queued, 0),
                     NumberCell(service.queue_wait_s, 3, 1e3), NumberCell(service.threads, 0),
                     service.config.empty() ? "-" : service.config},
                    service.ready < service.processes ? Style::kAlarm : Style::kPlain});
  }
  return TableLines(columns, std::move(rows), room);
}

std::vector<ScreenLine> EdgeTable(const std::vector<EdgeVitals>& edges, size_t room) {
  static const std::vector<TableColumn> columns = {{"CALLS OF", 0, true}, {"TO", 1, true}, {"CALLS/S", 2},
                                                   {"P50 MS", 4},         {"P99 MS", 3},   {"ERR/S", 5}};
  if (edges.empty()) return {};
  std::vector<TableRow> rows;
  for (const EdgeVitals& edge : edges) {
    rows.push_back(
        {{edge.caller, edge.callee, NumberCell(edge.calls_per_s, 1), NumberCell(edge.p50_s, 2, 1e3),
          NumberCell(edge.p99_s, 2, 1e3), NumberCell(edge.errors_per_s, 1)},
         Style::kPlain});
  }
  return TableLines(columns, std::move(rows), room);
}

// Leaves `lines` as they are within `most`, or says how many do not fit.
void CutTo(size_t most, std::vector<ScreenLine>* lines) {
  if (lines->size() <= most) return;
  const size_t more = lines->size() - most + 1;
  lines->resize(std::max<size_t>(most, 1) - 1);
  lines->push_back({absl::StrCat("... ", more, " more"), Style::kPlain});
}

std::vector<ScreenLine> Problems(const std::vector<ServiceVitals>& services) {
  std::vector<ScreenLine> lines;
  for (const ServiceVitals& service : services) {
    for (const std::string& problem : service.problems) lines.push_back({problem, Style::kAlarm});
  }
  return lines;
}

nlohmann::json NumberJson(const std::optional<double>& value, double scale = 1) {
  return value ? nlohmann::json(*value * scale) : nlohmann::json();
}

// That by which the largest comes first.
std::optional<double> Weight(std::string_view order, const ServiceVitals& service) {
  if (order == "calls") return service.calls_per_s;
  if (order == "p99") return service.p99_s;
  if (order == "errors") return service.errors_per_s;
  if (order == "cpu") return service.cpus;
  if (order == "memory") return service.resident_mib;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> TopOrders() { return {"name", "calls", "p99", "errors", "cpu", "memory"}; }

void SortServices(std::string_view order, std::vector<ServiceVitals>* services) {
  std::sort(services->begin(), services->end(), [order](const ServiceVitals& a, const ServiceVitals& b) {
    const bool a_hurt = a.ready < a.processes, b_hurt = b.ready < b.processes;
    if (a_hurt != b_hurt) return a_hurt;
    const std::optional<double> a_weight = Weight(order, a), b_weight = Weight(order, b);
    return a_weight != b_weight ? a_weight > b_weight : a.name < b.name;
  });
}

std::vector<ScreenLine> TopLines(const TopPage& page, ScreenSize room) {
  int processes = 0, ready = 0;
  for (const ServiceVitals& service : page.services) {
    processes += service.processes;
    ready += service.ready;
  }
  std::vector<ScreenLine> lines = {
      {absl::StrCat(page.application, "  ", page.time, "  ", ready, " of ", processes, " processes ready"),
       ready < processes ? Style::kAlarm : Style::kBold}};
  for (ScreenLine& line : ServiceTable(page.services, room.columns)) lines.push_back(std::move(line));
  std::vector<ScreenLine> problems = Problems(page.services), edges = EdgeTable(page.edges, room.columns);
  if (room.lines > 0) {
    constexpr size_t kFewestEdgeLines = 3;  // with a title and a line for those that do not fit
    CutTo(room.lines, &lines);
    CutTo(room.lines - lines.size(), &problems);
    if (lines.size() == room.lines) problems.clear();
    const size_t left = room.lines - lines.size() - problems.size();
    if (left < std::min(kFewestEdgeLines, edges.size())) edges.clear();
    CutTo(left, &edges);
  }
  for (ScreenLine& line : problems) lines.push_back(std::move(line));
  for (ScreenLine& line : edges) lines.push_back(std::move(line));
  for (ScreenLine& line : lines) {
    if (room.columns > 0 && line.text.size() > room.columns) line.text.resize(room.columns);
  }
  return lines;
}

std::string TopJson(const TopPage& page, int64_t unix_ms, double seconds) {
  nlohmann::json services = nlohmann::json::array();
  for (const ServiceVitals& service : page.services) {
    services.push_back({{"service", service.name},
                        {"processes", service.processes},
                        {"ready", service.ready},
                        {"restarts", service.restarts},
                        {"problems", service.problems},
                        {"calls_per_s", NumberJson(service.calls_per_s)},
                        {"errors_per_s", NumberJson(service.errors_per_s)},
                        {"p50_us", NumberJson(service.p50_s, 1e6)},
                        {"p99_us", NumberJson(service.p99_s, 1e6)},
                        {"config", service.config},
                        {"queued", NumberJson(service.queued)},
                        {"queue_wait_us", NumberJson(service.queue_wait_s, 1e6)},
                        {"threads", NumberJson(service.threads)},
                        {"cpus", NumberJson(service.cpus)},
                        {"resident_mib", NumberJson(service.resident_mib)}});
  }
  nlohmann::json edges = nlohmann::json::array();
  for (const EdgeVitals& edge : page.edges) {
    edges.push_back({{"caller", edge.caller},
                     {"callee", edge.callee},
                     {"calls_per_s", NumberJson(edge.calls_per_s)},
                     {"errors_per_s", NumberJson(edge.errors_per_s)},
                     {"p50_us", NumberJson(edge.p50_s, 1e6)},
                     {"p99_us", NumberJson(edge.p99_s, 1e6)}});
  }
  const nlohmann::json json = {{"schema_version", kTopSchemaVersion},
                               {"application", page.application},
                               {"unix_ms", unix_ms},
                               {"seconds", seconds},
                               {"services", std::move(services)},
                               {"edges", std::move(edges)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace curtail::tool
