// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/top_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace curtail::tool {
namespace {

using Style = ScreenLine::Style;

constexpr int kTopSchemaVersion = 1;
constexpr size_t kGap = 2;

struct Column {
  std::string_view title;
  int rank;  // 0 is the most important
  bool left = false;
};

struct Row {
  std::vector<std::string> cells;
  Style style = Style::kPlain;
};

std::string Number(const std::optional<double>& value, int digits, double scale = 1) {
  return value ? absl::StrFormat("%.*f", digits, *value * scale) : "-";
}

// For each column its width; 0: it is left out.
std::vector<size_t> Fit(const std::vector<Column>& columns, const std::vector<Row>& rows, size_t room) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t& width = widths.emplace_back(columns[i].title.size());
    for (const Row& row : rows) width = std::max(width, row.cells[i].size());
    width += i == 0 ? 0 : kGap;
  }
  while (room > 0 && std::accumulate(widths.begin(), widths.end(), size_t{0}) > room) {
    size_t least = 0;
    for (size_t i = 1; i < columns.size(); ++i) {
      if (widths[i] > 0 && columns[i].rank > columns[least].rank) least = i;
    }
    if (least == 0) break;  // what is left is cut off
    widths[least] = 0;
  }
  return widths;
}

std::vector<ScreenLine> Table(const std::vector<Column>& columns, std::vector<Row> rows, size_t room) {
  Row& titles = *rows.emplace(rows.begin());
  titles.style = Style::kBold;
  for (const Column& column : columns) titles.cells.emplace_back(column.title);
  const std::vector<size_t> widths = Fit(columns, rows, room);
  std::vector<ScreenLine> lines;
  for (const Row& row : rows) {
    ScreenLine& line = lines.emplace_back(ScreenLine{.text = "", .style = row.style});
    for (size_t i = 0; i < columns.size(); ++i) {
      if (widths[i] == 0) continue;
      if (columns[i].left && i > 0) line.text.append(kGap, ' ');
      const auto width = static_cast<int>(columns[i].left && i > 0 ? widths[i] - kGap : widths[i]);
      absl::StrAppendFormat(&line.text, "%*s", columns[i].left ? -width : width, row.cells[i]);
    }
    line.text.resize(line.text.find_last_not_of(' ') + 1);
    if (room > 0 && line.text.size() > room) line.text.resize(room);
  }
  return lines;
}

std::string Readiness(const ServiceVitals& service) {
  if (service.ready == 0) return "down";
  return absl::StrCat(service.ready, "/", service.processes);
}

std::vector<ScreenLine> ServiceTable(const std::vector<ServiceVitals>& services, size_t room) {
  static const std::vector<Column> columns = {{"SERVICE", 0, true}, {"UP", 1, true}, {"CALLS/S", 2},
                                              {"P50 MS", 4},        {"P99 MS", 3},   {"ERR/S", 5},
                                              {"CPU %", 6},         {"MIB", 7},      {"QUEUE", 8},
                                              {"WAIT MS", 11},      {"THREADS", 10}, {"CONFIG", 9, true}};
  std::vector<Row> rows;
  for (const ServiceVitals& service : services) {
    rows.push_back(
        {{service.name, Readiness(service), Number(service.calls_per_s, 1), Number(service.p50_s, 2, 1e3),
          Number(service.p99_s, 2, 1e3), Number(service.errors_per_s, 1), Number(service.cpus, 1, 100),
          Number(service.resident_mib, 0), Number(service.queued, 0), Number(service.queue_wait_s, 3, 1e3),
          Number(service.threads, 0), service.config.empty() ? "-" : service.config},
         service.ready < service.processes ? Style::kAlarm : Style::kPlain});
  }
  return Table(columns, std::move(rows), room);
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

nlohmann::json Json(const std::optional<double>& value, double scale = 1) {
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
  std::vector<ScreenLine> problems = Problems(page.services);
  if (room.lines > 0) {
    CutTo(room.lines, &lines);
    CutTo(room.lines - lines.size(), &problems);
    if (lines.size() == room.lines) problems.clear();
  }
  for (ScreenLine& line : problems) lines.push_back(std::move(line));
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
                        {"calls_per_s", Json(service.calls_per_s)},
                        {"errors_per_s", Json(service.errors_per_s)},
                        {"p50_us", Json(service.p50_s, 1e6)},
                        {"p99_us", Json(service.p99_s, 1e6)},
                        {"config", service.config},
                        {"queued", Json(service.queued)},
                        {"queue_wait_us", Json(service.queue_wait_s, 1e6)},
                        {"threads", Json(service.threads)},
                        {"cpus", Json(service.cpus)},
                        {"resident_mib", Json(service.resident_mib)}});
  }
  const nlohmann::json json = {{"schema_version", kTopSchemaVersion},
                               {"application", page.application},
                               {"unix_ms", unix_ms},
                               {"seconds", seconds},
                               {"services", std::move(services)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace curtail::tool
