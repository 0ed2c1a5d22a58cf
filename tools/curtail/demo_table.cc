// SPDX-License-Identifier: Apache-2.0
#include "demo_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/report.h"
#include "nlohmann/json.hpp"

namespace curtail::tool {
namespace {

constexpr double kMaxFailed = 0.01;
constexpr double kMinAnswered = 0.95;
constexpr int kCellColumns = 21;  // "1000.00 / 1000.00 !" and a space or two

bool Saturated(const LoadResult& r) {
  return r.failed_fraction() > kMaxFailed || r.good_per_s < kMinAnswered * r.scheduled_per_s;
}

// Whether `cell` may be compared with others.
bool Comparable(const DemoCell& cell) { return cell.result.valid() && !Saturated(cell.result); }

// Judges the cells of one row, given by index.
void JudgeRow(const std::vector<DemoCell>& cells, const std::vector<size_t>& row,
              std::vector<Verdict>& verdicts) {
  const auto p99 = [&](size_t i) { return cells[i].result.all.Percentile(99); };
  const DemoCell* best = nullptr;
  for (size_t i : row) {
    if (Comparable(cells[i]) && (best == nullptr || p99(i) < best->result.all.Percentile(99)))
      best = &cells[i];
  }
  for (size_t i : row) {
    const LoadResult& r = cells[i].result;
    if (Saturated(r)) {
      verdicts[i] = Verdict::kSaturated;
    } else if (!r.valid()) {
      verdicts[i] = Verdict::kVoid;
    } else if (&cells[i] == best) {
      verdicts[i] = Verdict::kBest;
    } else {
      const ValueInterval of_best = PercentileInterval95(best->result.all, 99, best->result.neighbours());
      const ValueInterval own = PercentileInterval95(r.all, 99, r.neighbours());
      // An end that is missing may lie anywhere.
      const bool apart = of_best.high && own.low && *own.low > *of_best.high;
      verdicts[i] = apart ? Verdict::kWorse : Verdict::kTied;
    }
  }
}

char MarkOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kBest:
      return '*';
    case Verdict::kTied:
      return '=';
    case Verdict::kSaturated:
      return '!';
    case Verdict::kVoid:
      return '?';
    case Verdict::kWorse:
      break;
  }
  return ' ';
}

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kBest:
      return "best";
    case Verdict::kTied:
      return "tied";
    case Verdict::kSaturated:
      return "saturated";
    case Verdict::kVoid:
      return "void";
    case Verdict::kWorse:
      break;
  }
  return "worse";
}

double Ms(Nanos t) { return static_cast<double>(t.count()) / 1e6; }

// The columns and rows of a table, and which cell is where.
struct Grid {
  explicit Grid(const std::vector<DemoCell>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (std::find(configs.begin(), configs.end(), cells[i].config) == configs.end()) {
        configs.push_back(cells[i].config);
      }
      rows[cells[i].rate_per_s][cells[i].config] = i;
    }
  }
  std::vector<std::string> configs;
  std::map<double, std::map<std::string, size_t>> rows;
};

// A table of one line a rate, whose cells `text` writes.
template <class F>
std::string Lines(const Grid& grid, const char* title, F text) {
  std::string lines = absl::StrFormat("%-12s", title);
  for (const std::string& config : grid.configs) absl::StrAppendFormat(&lines, "%*s", kCellColumns, config);
  lines += "\n";
  for (const auto& [rate, row] : grid.rows) {
    absl::StrAppendFormat(&lines, "%10g/s", rate);
    for (const std::string& config : grid.configs) {
      const auto cell = row.find(config);
      absl::StrAppend(&lines,
                      cell == row.end() ? absl::StrFormat("%*s", kCellColumns, "-") : text(cell->second));
    }
    lines += "\n";
  }
  return lines;
}

std::string ScoreLine(const std::vector<DemoCell>& cells) {
  ScoreSummary total;
  for (const DemoCell& cell : cells) {
    total.name = cell.result.score.name;
    total.count += cell.result.score.count;
    total.sum += cell.result.score.sum;
  }
  if (total.count == 0) return {};
  return absl::StrFormat("%s: %.4f over %d replies\n", total.name, total.mean(), total.count);
}

}  // namespace

std::vector<Verdict> JudgeCells(const std::vector<DemoCell>& cells) {
  std::map<double, std::vector<size_t>> rows;
  for (size_t i = 0; i < cells.size(); ++i) rows[cells[i].rate_per_s].push_back(i);
  std::vector<Verdict> verdicts(cells.size(), Verdict::kVoid);
  for (const auto& [rate, row] : rows) JudgeRow(cells, row, verdicts);
  return verdicts;
}

std::string DemoTable(const std::vector<DemoCell>& cells, const Console& console) {
  if (cells.empty()) return "nothing was measured\n";
  const std::vector<Verdict> verdicts = JudgeCells(cells);
  const Grid grid(cells);
  std::string text = "\nlatency from the intended send time: p50 / p99 in ms\n";
  absl::StrAppend(&text, Lines(grid, "load", [&](size_t i) {
    const Histogram& all = cells[i].result.all;
    const std::string cell = absl::StrFormat("%.2f / %.2f %c", Ms(all.Percentile(50)), Ms(all.Percentile(99)),
                                             MarkOf(verdicts[i]));
    // A space of its own: a wide cell must not touch its neighbour.
    const std::string padded = absl::StrFormat(" %*s", kCellColumns - 1, cell);
    return verdicts[i] == Verdict::kBest ? console.Green(padded) : padded;
  }));
  std::set<Verdict> seen(verdicts.begin(), verdicts.end());
  text += "* lowest p99";
  if (seen.contains(Verdict::kTied)) text += "   = not told apart from it (95 %)";
  if (seen.contains(Verdict::kSaturated)) text += "   ! saturated: requests failed or fell behind";
  if (seen.contains(Verdict::kVoid)) text += "   ? void: the generator was late";
  text += "\n\nCPU of the mid-tier, in cores\n";
  absl::StrAppend(&text, Lines(grid, "load", [&](size_t i) {
    return absl::StrFormat("%*.2f  ", kCellColumns - 2, cells[i].server_cores);
  }));
  return absl::StrCat(text, "\n", ScoreLine(cells));
}

std::string DemoJson(const DemoPlan& plan, const std::vector<DemoCell>& cells, bool interrupted) {
  using Json = nlohmann::ordered_json;
  const std::vector<Verdict> verdicts = JudgeCells(cells);
  Json json = {{"schema_version", kLoadSchemaVersion},
               {"kind", "demo"},
               {"data", plan.data},
               {"k", plan.k},
               {"seed", plan.seed},
               {"quick", plan.quick},
               {"interrupted", interrupted}};
  json["cells"] = Json::array();
  for (size_t i = 0; i < cells.size(); ++i) {
    json["cells"].push_back({{"config", cells[i].config},
                             {"rate_per_s", cells[i].rate_per_s},
                             {"verdict", NameOf(verdicts[i])},
                             {"server_cores", cells[i].server_cores},
                             {"result", Json::parse(ResultJson(cells[i].result))}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace curtail::tool
