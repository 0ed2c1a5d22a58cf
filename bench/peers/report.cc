// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "instructions.h"
#include "measure.h"
#include "ratios.h"

namespace curtail::bench {
namespace {

using Rounds = std::vector<Measurement>;

std::string Kilo(double instructions) { return Fixed(0)(instructions / 1000); }
std::string KiloAndTenth(double instructions) { return Fixed(1)(instructions / 1000); }

bool Varied(const Options& options) { return !options.vary.empty(); }

std::string VariedName(const Options& options) { return options.vary.substr(0, options.vary.find('=')); }

std::string VariedValue(const std::string& label) { return label.substr(label.find('=') + 1); }

std::string NameOf(const StackResults& one) {
  return absl::StrCat(one.stack.name, one.setup.label.empty() ? "" : " ", one.setup.label);
}

std::vector<Field> FieldsOf(const Options& options, const StackResults& one, const std::string& load,
                            const Rounds& rounds) {
  const auto of = [&rounds](auto field) { return Values(rounds, field); };
  const Cell p50 = of(&Measurement::p50_us), p99 = of(&Measurement::p99_us), per_s = of(&Measurement::qps);
  const std::string varied = VariedName(options);
  return {
      {"stack", "stack", one.stack.name},
      {"load", "load", load},
      {varied, Varied(options) ? std::optional(varied) : kHidden, VariedValue(one.setup.label)},
      {"p50_us", "p50 us", p50, Median(Grouped)},
      {"", "(min-max)", p50, MinToMax(Grouped)},
      {"p99_us", "p99 us", p99, Median(Grouped)},
      {"", "(min-max)", p99, MinToMax(Grouped)},
      {"answers_per_s", "answers/s", per_s, Median(Grouped)},
      {"", "(min-max)", per_s, MinToMax(Grouped)},
      {"mid_cpu_us_per_request", "mid CPU us", of(&Measurement::mid_cpu_us), Median(Fixed(1))},
      {"mid_context_switches_per_request", "mid switches", of(&Measurement::mid_switches), Median(Fixed(2))},
      {"mid_resident_mib", "mid MiB", of(&Measurement::mid_resident_mib), Median(Fixed(1))},
      {"mid_user_instructions_per_request", "mid K instr u", of(&Measurement::mid_user_instructions),
       Median(Kilo)},
      {"mid_kernel_instructions_per_request", "mid K instr k", of(&Measurement::mid_kernel_instructions),
       Median(Kilo)},
      {"failed_requests", kHidden, of(&Measurement::failed)}};
}

// Grouped by load, so that the stacks are below each other, and what varies is below its stack. Then stacks that were not
// built.
Table CellTable(const Options& options, const std::vector<StackResults>& results) {
  Table table("cells", 2);
  for (const Load& cell : options.cells) {
    for (const std::string& stack : options.stacks) {
      for (const StackResults& one : results) {
        const Rounds* rounds = one.stack.name == stack ? Find(one, cell.Name()) : nullptr;
        if (rounds != nullptr) table.Add(FieldsOf(options, one, cell.Name(), *rounds));
      }
    }
  }
  for (const StackResults& one : results) {
    const bool first = one.setup.label == options.setups[0].label;
    if (first && !one.stack.missing.empty())
      table.Add({{"stack", "stack", one.stack.name}, {"missing", "load", one.stack.missing}});
  }
  return table;
}

Table RatioTable(const Options& options, const std::vector<StackResults>& results) {
  Table table("ratios", 3);
  for (const Ratio& r : RatiosOf(options, results)) {
    table.Add({{"load", "load", r.load},
               {"metric", "metric", r.metric},
               {"varied", Varied(options) ? std::optional(VariedName(options)) : kHidden, r.setup},
               {"kind", "kind", r.kind},
               {"curtail", "curtail's best", r.curtail},
               {"curtail_value", "", r.curtail_value, Median(Grouped)},
               {"against", "against", r.against},
               {"other", "the best", r.other},
               {"other_value", "", r.other_value, Median(Grouped)},
               {"ratio", "ratio", r.value(), Median(Fixed(2))},
               {"rounds_overlap", "rounds", r.overlap, YesNo("overlap", "apart")}});
  }
  return table;
}

std::string MachineLine(const Options& options, const Machine& machine) {
  return absl::StrFormat(
      "%s before the run; %d rounds, %.2g s a cell, twice that below 100 requests a second; seed %d",
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
  return line + ".";
}

std::string Title(const Options& options) {
  return options.setup.leaves == 1 ? "# The null echo" : "# The null fan-out";
}

Report ReportOnSetup(const char* benchmark, const Options& options, const Machine& machine) {
  Report report(benchmark, options, machine);
  const Setup& setup = options.setup;
  report.Set("leaves", setup.leaves).Set("payload_bytes", setup.payload);
  report.Set("connections", setup.connections)
      .Set("idle_connections", setup.idle)
      .Set("varied", options.vary);
  return report;
}

// "+0.7 % and +0.5 %": what the policy of curtail-CONFIG+POLICY adds to curtail-CONFIG, by load.
std::string PolicyShare(const Instructions& one, const std::vector<Instructions>& results) {
  const std::string& name = one.stack.name;
  const size_t plus = name.find('+');
  if (plus == std::string::npos) return "";
  for (const Instructions& base : results) {
    if (base.stack.name != name.substr(0, plus) || base.setup.label != one.setup.label) continue;
    std::vector<std::string> shares;
    for (size_t i = 0; i < one.counts.size(); ++i) {
      if (one.counts[i].empty() || base.counts[i].empty()) return "";
      const double ratio = SpreadOf(one.counts[i]).median / SpreadOf(base.counts[i]).median;
      shares.push_back(absl::StrFormat("%+.1f %%", 100 * (ratio - 1)));
    }
    return absl::StrCat(absl::StrJoin(shares, " and "), " to ", base.stack.name);
  }
  return "";
}

Table InstructionsTable(const Options& options, const std::vector<Instructions>& results) {
  Table table("counts", 2);
  const std::string work = options.setup.leaves == 1 ? "echo" : "fanout";
  for (const Instructions& one : results) {
    std::vector<Field> row = {{"stack", "stack", one.stack.name},
                              {"work", Varied(options) ? VariedName(options) : "work",
                               Varied(options) ? VariedValue(one.setup.label) : work}};
    for (size_t i = 0; i < std::size(kCountedLoads); ++i) {
      const std::string load = absl::StrCat("closed-", kCountedLoads[i]);
      row.push_back({load + ".user_instructions_per_request", "K instr/request, " + load, one.counts[i],
                     Median(KiloAndTenth)});
    }
    row.push_back({"note", "note", one.note.empty() ? PolicyShare(one, results) : one.note});
    table.Add(std::move(row));
  }
  return table;
}

}  // namespace

Report ReportOf(const Options& options, const Machine& machine, const std::vector<StackResults>& results) {
  Report report = ReportOnSetup("peers", options, machine);
  report.Set("cell_seconds", options.seconds).Set("leaf_config", options.leaf_config);
  report.Say(absl::StrCat(Title(options), ", stack by stack")).Say(SetupLine(options));
  report.Say(
      "Medians of interleaved rounds. `mid`: what the mid-tier consumed per request, and held in memory.");
  report.Say(MachineLine(options, machine)).Add(CellTable(options, results));
  Table errors("errors", 2);
  for (const StackResults& one : results) {
    if (one.first_error.ok()) continue;
    errors.Add({{"stack", "stack", NameOf(one)}, {"first_error", "first error", one.first_error.ToString()}});
  }
  report.Add(std::move(errors));
  return report.Add(RatioTable(options, results));
}

Table ShortTable(const std::vector<StackResults>& results) {
  Table table;
  for (const StackResults& one : results) {
    std::vector<Field> row = {{"", "stack", NameOf(one)}};
    const auto add = [&](const char* title, const char* load, double Measurement::* field) {
      const Rounds* rounds = Find(one, load);
      Cell cell = rounds == nullptr ? Cell() : Cell(Values(*rounds, field));
      if (row.size() == 1 && !one.stack.missing.empty()) cell = one.stack.missing;
      row.push_back({"", title, std::move(cell), Median(Grouped)});
    };
    add("p50 us, one at a time", "closed-1", &Measurement::p50_us);
    add("p99 us, 2,000 a second", "open-2000", &Measurement::p99_us);
    add("answers/s, 64 at a time", "closed-64", &Measurement::qps);
    table.Add(std::move(row));
  }
  return table;
}

Report ReportOf(const Options& options, const Machine& machine, const std::vector<Instructions>& results) {
  Report report = ReportOnSetup("peers instructions", options, machine);
  report.Say(Title(options) + " in instructions");
  report.Say(
      absl::StrFormat("User-level instructions of the mid-tier for each request (valgrind's callgrind): the "
                      "difference between "
                      "runs of %d and %d requests; rounds: %d.",
                      kFewRequests, kManyRequests, options.rounds));
  return report.Say(SetupLine(options)).Add(InstructionsTable(options, results));
}

}  // namespace curtail::bench
