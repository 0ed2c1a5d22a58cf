// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/common/report.h"
#include "ratios.h"
#include "report.h"

namespace curtail::bench {
namespace {

using Rounds = std::vector<Measurement>;

std::string Kilo(std::optional<double> instructions) {
  return instructions ? absl::StrFormat("%.0f", *instructions / 1000) : "-";
}

std::string Range(const Spread& spread) {
  return absl::StrCat(Grouped(spread.min), "-", Grouped(spread.max));
}

bool Varied(const Options& options) { return !options.vary.empty(); }

std::string VariedName(const Options& options) { return options.vary.substr(0, options.vary.find('=')); }

std::string VariedValue(const std::string& label) { return label.substr(label.find('=') + 1); }

Row Header() {
  return {"stack",     "load",          "p50 us",       "(min-max)",  "p99 us",
          "(min-max)", "answers/s",     "(min-max)",    "mid CPU us", "mid switches",
          "mid MiB",   "mid K instr u", "mid K instr k"};
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
          absl::StrFormat("%.1f", SpreadOf(rounds, &Measurement::mid_resident_mib).median),
          Kilo(Median(rounds, &Measurement::mid_user_instructions)),
          Kilo(Median(rounds, &Measurement::mid_kernel_instructions))};
}

// A stack that was not built, as a row of `columns`.
Row MissingRow(const StackInfo& stack, size_t columns) {
  Row row(columns, "-");
  row[0] = stack.name;
  row[1] = stack.missing;
  return row;
}

// Grouped by load, so that the stacks stand below each other, and what varies below its stack.
Table MakeTable(const Options& options, const std::vector<StackResults>& results) {
  Table table{2, {Header()}};
  for (const Load& cell : options.cells) {
    for (const std::string& stack : options.stacks) {
      for (const StackResults& one : results) {
        const Rounds* rounds = one.stack.name == stack ? Find(one, cell.Name()) : nullptr;
        if (rounds == nullptr) continue;
        Row& row = table.rows.emplace_back(RowOf(stack, cell.Name(), *rounds));
        if (Varied(options)) row.insert(row.begin() + 2, VariedValue(one.setup.label));
      }
    }
  }
  if (Varied(options)) table.rows[0].insert(table.rows[0].begin() + 2, VariedName(options));
  for (const StackResults& one : results) {
    const bool first = one.setup.label == options.setups[0].label;
    if (first && !one.stack.missing.empty())
      table.rows.push_back(MissingRow(one.stack, table.rows[0].size()));
  }
  return table;
}

std::vector<std::string> Failures(const std::vector<StackResults>& results) {
  std::vector<std::string> lines;
  for (const StackResults& one : results) {
    if (one.first_error.ok()) continue;
    lines.push_back(absl::StrCat(one.stack.name, one.setup.label.empty() ? "" : " ", one.setup.label,
                                 " failed: ", one.first_error.ToString()));
  }
  return lines;
}

std::string RatioLines(const Options& options, const std::vector<StackResults>& results) {
  std::string out;
  for (const Ratio& ratio : RatiosOf(options, results)) absl::StrAppend(&out, ratio.ToString(), "\n");
  return out;
}

std::string MachineLine(const Options& options, const Machine& machine) {
  return absl::StrFormat(
      "%s before the run; %d rounds, %.2g s a cell, twice that below 100 requests a second; seed %d\n",
      ToString(machine), options.rounds, options.seconds, options.seed);
}

std::string SetupLine(const Options& options) {
  const Setup& setup = options.setup;
  std::string line =
      absl::StrCat("Load generator, mid-tier, ", setup.leaves, setup.leaves == 1 ? " leaf" : " leaves",
                   ", unary null RPC, ", setup.payload, " bytes each way, loopback TCP");
  if (setup.connections > 0) absl::StrAppend(&line, ", ", setup.connections, " connections in use");
  if (setup.idle > 0) absl::StrAppend(&line, ", ", setup.idle, " idle connections");
  if (Varied(options)) absl::StrAppend(&line, "; varied: ", options.vary);
  return absl::StrCat(line, ".\n");
}

std::string Title(const Options& options) {
  return options.setup.leaves == 1 ? "# The null echo" : "# The null fan-out";
}

std::string ShortCell(const StackResults& one, const char* cell, double Measurement::* field) {
  const Rounds* rounds = Find(one, cell);
  return rounds == nullptr ? "-" : Grouped(SpreadOf(*rounds, field).median);
}

// "+0.7 % and +0.5 %": what the policy of curtail-CONFIG+POLICY adds to curtail-CONFIG, by load.
std::string PolicyShare(const Instructions& one, const std::vector<Instructions>& results) {
  const size_t plus = one.stack.find('+');
  if (plus == std::string::npos) return "";
  for (const Instructions& base : results) {
    if (base.stack != one.stack.substr(0, plus) || base.setup != one.setup) continue;
    std::vector<std::string> shares;
    for (size_t i = 0; i < one.per_request.size(); ++i) {
      if (!one.per_request[i] || !base.per_request[i]) return "";
      shares.push_back(absl::StrFormat("%+.1f %%", 100 * (*one.per_request[i] / *base.per_request[i] - 1)));
    }
    return absl::StrCat(absl::StrJoin(shares, " and "), " to ", base.stack);
  }
  return "";
}

Table InstructionsTable(const Options& options, const std::vector<Instructions>& results) {
  Table table{2, {{"stack", Varied(options) ? VariedName(options) : "work"}}};
  for (const uint32_t load : kCountedLoads)
    table.rows[0].push_back(absl::StrCat("K instr/request, closed-", load));
  table.rows[0].push_back("note");
  for (const Instructions& one : results) {
    Row row = {one.stack, Varied(options)             ? VariedValue(one.setup)
                          : options.setup.leaves == 1 ? "echo"
                                                      : "fanout"};
    for (const std::optional<double>& count : one.per_request) {
      row.push_back(count ? absl::StrFormat("%.1f", *count / 1000) : "-");
    }
    row.push_back(one.note.empty() ? PolicyShare(one, results) : one.note);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string InstructionsLine(const Options& options) {
  return absl::StrFormat(
      "User-level instructions of the mid-tier for each request (valgrind's callgrind): the difference "
      "between runs "
      "of %d and %d requests; rounds: %d.\n",
      kFewRequests, kManyRequests, options.rounds);
}

}  // namespace

std::string ToTable(const Options& options, const Machine& machine,
                    const std::vector<StackResults>& results) {
  std::string out =
      absl::StrCat(MachineLine(options, machine), SetupLine(options), MakeTable(options, results).ToText());
  for (const std::string& line : Failures(results)) absl::StrAppend(&out, line, "\n");
  return absl::StrCat(out, "\n", RatioLines(options, results));
}

std::string ToMarkdown(const Options& options, const Machine& machine,
                       const std::vector<StackResults>& results) {
  std::string out = absl::StrCat(
      Title(options), ", stack by stack\n\n", SetupLine(options),
      "Medians of interleaved rounds. `mid`: what the mid-tier consumed per request, and held in memory.\n\n",
      MachineLine(options, machine), "\n", MakeTable(options, results).ToMarkdown());
  for (const std::string& line : Failures(results)) absl::StrAppend(&out, "\n", line, "\n");
  return absl::StrCat(out, "\n```\n", RatioLines(options, results), "```\n");
}

std::string ToShortMarkdown(const std::vector<StackResults>& results) {
  Table table{1, {{"stack", "p50 us, one at a time", "p99 us, 2,000 a second", "answers/s, 64 at a time"}}};
  for (const StackResults& one : results) {
    const std::string name =
        absl::StrCat(one.stack.name, one.setup.label.empty() ? "" : " ", one.setup.label);
    if (!one.stack.missing.empty()) {
      table.rows.push_back({name, one.stack.missing, "-", "-"});
    } else {
      table.rows.push_back({name, ShortCell(one, "closed-1", &Measurement::p50_us),
                            ShortCell(one, "open-2000", &Measurement::p99_us),
                            ShortCell(one, "closed-64", &Measurement::qps)});
    }
  }
  return table.ToMarkdown();
}

std::string InstructionsToTable(const Options& options, const std::vector<Instructions>& results) {
  return absl::StrCat(InstructionsLine(options), SetupLine(options),
                      InstructionsTable(options, results).ToText());
}

std::string InstructionsToMarkdown(const Options& options, const std::vector<Instructions>& results) {
  return absl::StrCat(Title(options), " in instructions\n\n", InstructionsLine(options), SetupLine(options),
                      "\n", InstructionsTable(options, results).ToMarkdown());
}

}  // namespace curtail::bench
