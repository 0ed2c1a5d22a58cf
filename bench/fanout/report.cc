// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace curtail::bench {
namespace {

using Rounds = std::vector<Measurement>;

const Rounds* Find(const StackResults& results, const std::string& cell) {
  const auto found = results.by_cell.find(cell);
  return found == results.by_cell.end() || found->second.empty() ? nullptr : &found->second;
}

Spread SpreadOf(const Rounds& rounds, double Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) values.push_back(round.*field);
  return bench::SpreadOf(std::move(values));
}

std::optional<double> Median(const Rounds& rounds, std::optional<double> Measurement::* field) {
  std::vector<double> values;
  for (const Measurement& round : rounds) {
    if (round.*field) values.push_back(*(round.*field));
  }
  if (values.empty()) return std::nullopt;
  return bench::SpreadOf(std::move(values)).median;
}

// 1234567.8 as 1,234,568.
std::string Grouped(double value) {
  std::string digits = absl::StrFormat("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

using Row = std::vector<std::string>;

Row Header() {
  return {"stack",     "load",      "p50 us",     "(min-max)",    "p99 us",        "(min-max)",
          "answers/s", "(min-max)", "mid CPU us", "mid switches", "mid K instr u", "mid K instr k"};
}

std::string Kilo(std::optional<double> instructions) {
  return instructions ? absl::StrFormat("%.0f", *instructions / 1000) : "-";
}

std::string Range(const Spread& spread) {
  return absl::StrCat(Grouped(spread.min), "-", Grouped(spread.max));
}

Row RowOf(const std::string& stack, const std::string& cell, const Rounds& rounds) {
  const Spread p50 = SpreadOf(rounds, &Measurement::p50_us);
  const Spread p99 = SpreadOf(rounds, &Measurement::p99_us);
  const Spread qps = SpreadOf(rounds, &Measurement::qps);
  return {stack,
          cell,
          Grouped(p50.median),
          Range(p50),
          Grouped(p99.median),
          Range(p99),
          Grouped(qps.median),
          Range(qps),
          absl::StrFormat("%.1f", SpreadOf(rounds, &Measurement::mid_cpu_us).median),
          absl::StrFormat("%.2f", SpreadOf(rounds, &Measurement::mid_switches).median),
          Kilo(Median(rounds, &Measurement::mid_user_instructions)),
          Kilo(Median(rounds, &Measurement::mid_kernel_instructions))};
}

// Grouped by load, so that the stacks stand below each other.
std::vector<Row> Rows(const Options& options, const std::vector<StackResults>& results) {
  std::vector<Row> rows;
  for (const Cell& cell : options.cells) {
    for (const StackResults& stack : results) {
      if (const Rounds* rounds = Find(stack, cell.Name()))
        rows.push_back(RowOf(stack.stack, cell.Name(), *rounds));
    }
  }
  return rows;
}

std::vector<std::string> Failures(const std::vector<StackResults>& results) {
  std::vector<std::string> lines;
  for (const StackResults& stack : results) {
    if (!stack.first_error.ok())
      lines.push_back(absl::StrCat(stack.stack, " failed: ", stack.first_error.ToString()));
  }
  return lines;
}

std::string RatioLines(const Ratios& ratios) {
  const auto text = [](std::optional<double> ratio) {
    return ratio ? absl::StrFormat("%.2f", *ratio) : std::string("not measured");
  };
  return absl::StrCat(
      "curtail's best p50 at concurrency 1 / raw sockets' best: ", text(ratios.p50_to_raw),
      "\ncurtail's best p50 at concurrency 1 / grpc++'s best:     ", text(ratios.p50_to_grpc),
      "\ncurtail's best throughput / grpc++'s best:              ", text(ratios.saturated_to_grpc), "\n");
}

std::string MachineLine(const Options& options, const Machine& machine) {
  return absl::StrFormat(
      "%d CPUs, load average %.2f, %.2f CPUs in use by others before the run%s; %d rounds, %.2g s a cell\n",
      machine.cpus, machine.load_average, machine.busy_cpus,
      machine.Disturbed() ? " (DISTURBED: do not trust the times)" : "", options.rounds, options.seconds);
}

// The best median of `field` over the stacks whose name begins with `prefix` and over `cells`.
std::optional<double> Best(const std::vector<StackResults>& results, absl::string_view prefix,
                           const std::vector<std::string>& cells, double Measurement::* field,
                           bool smallest) {
  std::optional<double> best;
  for (const StackResults& stack : results) {
    for (const std::string& cell : cells) {
      const Rounds* rounds = absl::StartsWith(stack.stack, prefix) ? Find(stack, cell) : nullptr;
      if (rounds == nullptr) continue;
      const double median = SpreadOf(*rounds, field).median;
      if (!best || (smallest ? median < *best : median > *best)) best = median;
    }
  }
  return best;
}

std::optional<double> Quotient(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0) return std::nullopt;
  return *a / *b;
}

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return absl::StrCat(out, "\"");
}

std::string JsonNumber(std::optional<double> value) {
  return value ? absl::StrFormat("%.3f", *value) : "null";
}

std::string JsonSpread(absl::string_view name, const Spread& spread) {
  return absl::StrFormat("\"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}", name, spread.median,
                         spread.min, spread.max);
}

std::string JsonCell(const std::string& name, const Rounds& rounds) {
  return absl::StrCat(
      "{\"load\": ", Quoted(name), ", \"rounds\": ", rounds.size(), ", ",
      JsonSpread("p50_us", SpreadOf(rounds, &Measurement::p50_us)), ", ",
      JsonSpread("p99_us", SpreadOf(rounds, &Measurement::p99_us)), ", ",
      JsonSpread("answers_per_second", SpreadOf(rounds, &Measurement::qps)), ", ",
      JsonSpread("failed_requests", SpreadOf(rounds, &Measurement::failed)), ", ",
      JsonSpread("mid_cpu_us_per_request", SpreadOf(rounds, &Measurement::mid_cpu_us)), ", ",
      JsonSpread("mid_context_switches_per_request", SpreadOf(rounds, &Measurement::mid_switches)),
      ", \"mid_user_instructions_per_request\": ",
      JsonNumber(Median(rounds, &Measurement::mid_user_instructions)),
      ", \"mid_kernel_instructions_per_request\": ",
      JsonNumber(Median(rounds, &Measurement::mid_kernel_instructions)), "}");
}

std::string JsonStack(const Options& options, const StackResults& stack) {
  std::vector<std::string> cells;
  for (const Cell& cell : options.cells) {
    if (const Rounds* rounds = Find(stack, cell.Name()))
      cells.push_back(absl::StrCat("      ", JsonCell(cell.Name(), *rounds)));
  }
  const std::string error = stack.first_error.ok() ? "null" : Quoted(stack.first_error.ToString());
  return absl::StrCat("    {\"stack\": ", Quoted(stack.stack), ", \"first_error\": ", error,
                      ", \"loads\": [\n", absl::StrJoin(cells, ",\n"), "\n    ]}");
}

// CPU time of the whole machine since it started, in ticks: all of it, and the idle part.
std::pair<double, double> ReadTicks() {
  std::ifstream stat("/proc/stat");
  std::string label;
  stat >> label;
  double total = 0, idle = 0, value = 0;
  for (int i = 0; i < 8 && stat >> value; ++i) {
    total += value;
    if (i == 3 || i == 4) idle += value;  // idle, iowait
  }
  return {total, idle};
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Machine LookAtMachine() {
  Machine machine;
  machine.cpus = static_cast<int>(std::thread::hardware_concurrency());
  std::ifstream("/proc/loadavg") >> machine.load_average;
  const auto [total_before, idle_before] = ReadTicks();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(500));  // an interval to measure in, not a synchronisation
  const auto [total_after, idle_after] = ReadTicks();
  const double total = total_after - total_before;
  if (total > 0) machine.busy_cpus = machine.cpus * (1 - (idle_after - idle_before) / total);
  return machine;
}

Ratios RatiosOf(const std::vector<StackResults>& results) {
  const auto p50 = [&](absl::string_view prefix) {
    return Best(results, prefix, {"closed-1"}, &Measurement::p50_us, true);
  };
  const auto saturated = [&](absl::string_view prefix) {
    return Best(results, prefix, {"closed-16", "closed-64"}, &Measurement::qps, false);
  };
  return {Quotient(p50("curtail-"), p50("raw-")), Quotient(p50("curtail-"), p50("grpc-")),
          Quotient(saturated("curtail-"), saturated("grpc-"))};
}

std::string ToTable(const Options& options, const Machine& machine,
                    const std::vector<StackResults>& results) {
  std::vector<Row> rows = Rows(options, results);
  rows.insert(rows.begin(), Header());
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out = MachineLine(options, machine);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const int width = static_cast<int>(widths[i]);
      absl::StrAppendFormat(&out, "%*s%s", i < 2 ? -width : width, row[i], i + 1 < row.size() ? "  " : "\n");
    }
  }
  for (const std::string& line : Failures(results)) absl::StrAppend(&out, line, "\n");
  return absl::StrCat(out, "\n", RatioLines(RatiosOf(results)));
}

std::string ToMarkdown(const Options& options, const Machine& machine,
                       const std::vector<StackResults>& results) {
  std::string out = "# The null fan-out, stack by stack\n\n";
  absl::StrAppend(
      &out,
      "Load generator, mid-tier, 4 leaves, unary null RPC, 64 bytes each way, loopback TCP; medians of ",
      "interleaved rounds. `mid`: what the mid-tier consumed per request.\n\n", MachineLine(options, machine),
      "\n");
  absl::StrAppend(&out, "| ", absl::StrJoin(Header(), " | "), " |\n|", std::string(" --- |"), " --- |");
  for (size_t i = 2; i < Header().size(); ++i) absl::StrAppend(&out, " ---: |");
  out += "\n";
  for (const Row& row : Rows(options, results))
    absl::StrAppend(&out, "| ", absl::StrJoin(row, " | "), " |\n");
  for (const std::string& line : Failures(results)) absl::StrAppend(&out, "\n", line, "\n");
  return absl::StrCat(out, "\n```\n", RatioLines(RatiosOf(results)), "```\n");
}

std::string ToJson(const Options& options, const Machine& machine, const std::vector<StackResults>& results) {
  std::vector<std::string> stacks;
  for (const StackResults& stack : results) stacks.push_back(JsonStack(options, stack));
  const Ratios ratios = RatiosOf(results);
  return absl::StrCat(
      "{\n  \"schema_version\": 1,\n  \"benchmark\": \"fanout\",\n",
      absl::StrFormat(
          "  \"cpus\": %d,\n  \"load_average\": %.2f,\n  \"busy_cpus_before\": %.2f,\n  \"disturbed\": %s,\n",
          machine.cpus, machine.load_average, machine.busy_cpus, machine.Disturbed() ? "true" : "false"),
      absl::StrFormat("  \"rounds\": %d,\n  \"cell_seconds\": %.3f,\n  \"seed\": %d,\n", options.rounds,
                      options.seconds, options.seed),
      "  \"leaf_config\": ", Quoted(options.leaf_config), ",\n  \"stacks\": [\n",
      absl::StrJoin(stacks, ",\n"),
      "\n  ],\n  \"ratios\": {\"curtail_p50_to_raw\": ", JsonNumber(ratios.p50_to_raw),
      ", \"curtail_p50_to_grpc\": ", JsonNumber(ratios.p50_to_grpc),
      ", \"curtail_saturated_to_grpc\": ", JsonNumber(ratios.saturated_to_grpc), "}\n}\n");
}

}  // namespace curtail::bench
