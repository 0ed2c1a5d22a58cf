// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the first table is what was measured; the others read it as the paper's figures do: the
// ratio between families (figures 6 and 7), each family normalised to its best at each load (figures 8 and
// 11), and pool sizes (figure 12). A cell that may not be believed carries its mark and stays.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "results.h"

namespace curtail::models {
namespace {

using bench::Cell;
using bench::Field;
using bench::Fixed;
using bench::kHidden;
using bench::Median;
using bench::Short;
using bench::Table;
using bench::Values;

constexpr char kSaturatedMark[] = " sat";
constexpr char kGeneratorMark[] = " gen";

struct Family {
  Waiting waiting;
  const char* name;
  const char* figure;
};
constexpr Family kFamilies[] = {{Waiting::kSync, "S (sync)", " (figure 8 of the paper)"},
                                {Waiting::kAsync, "A (async)", " (figure 11 of the paper)"},
                                {Waiting::kFiber, "F (fiber)", ""}};

std::string Marks(const Summary& s) {
  return absl::StrCat(s.saturated ? kSaturatedMark : "", s.generator_bound ? kGeneratorMark : "");
}

std::string LoadName(const Load& load) {
  return load.closed() ? absl::StrCat("closed-", load.outstanding)
                       : absl::StrCat(Short(load.rate_per_s), "/s");
}

size_t OpenLoads(const Results& r) { return r.loads.empty() ? 0 : r.loads.size() - 1; }

// The highest open load: the last that is not a closed loop.
size_t HighLoad(const Results& r) { return OpenLoads(r) - 1; }

std::string Conditions(const Results& r) {
  std::vector<std::string> rates;
  for (const Load& load : r.loads) rates.push_back(LoadName(load));
  return absl::StrFormat(
      "%d round%s, every config once at each load in a round; %.3g s a cell, up to %.3g s at low loads. "
      "Loads: %s. "
      "Open loop with Poisson arrivals, latency from the intended send time; seed %d. Pool sizes picked by "
      "%d "
      "requests under way and at %.0f/s.",
      r.timing.rounds, r.timing.rounds == 1 ? "" : "s", r.timing.cell_s,
      r.timing.cell_s * r.timing.max_stretch, absl::StrJoin(rates, ", "), r.flags.seed, r.pick_outstanding,
      r.pick_rate_per_s);
}

using Line = std::vector<Field>;

// A column a load, which only people read.
void AddOpenLoads(const Results& r, const std::function<Cell(size_t load)>& cell, Line* line,
                  const std::string& prefix = "") {
  for (size_t l = 0; l < OpenLoads(r); ++l) line->push_back({"", prefix + LoadName(r.loads[l]), cell(l)});
}

Line MainLine(const Results& r, const Row& row) {
  Line line = {{"", "model", ModelName(row.model)}, {"", "config", row.config}};
  const auto latency = [&row](size_t load) -> Cell {
    const std::optional<Summary> s = Summarize(row.cells[load]);
    if (!s) return {};
    return absl::StrCat(Short(s->p50_us.median), " / ", Short(s->p99_us.median), Marks(*s));
  };
  AddOpenLoads(r, latency, &line);
  const std::optional<Summary> full = Summarize(row.cells.back());
  line.push_back({"", "saturation, answers/s",
                  full ? Cell(absl::StrCat(Short(full->achieved_per_s.median), Marks(*full))) : Cell()});
  for (const size_t load : {size_t{0}, HighLoad(r)}) {
    line.push_back({"", absl::StrCat(load == 0 ? "switches/request at " : "at ", LoadName(r.loads[load])),
                    Values(row.cells[load], &Measurement::context_switches), Median(Fixed(2))});
  }
  return line;
}

// Empty for a model that has a row, or that was not asked for.
std::string WhyNoRow(const Results& r, const Model& model) {
  for (const Row& row : r.rows) {
    if (row.model == model) return {};
  }
  std::string why;
  for (const Candidate& c : r.candidates) {
    if (c.config.model != model) continue;
    if (c.available) return "failed";
    why = "not available";
  }
  return why;
}

void AddMainTable(const Results& r, bench::Report* report) {
  Table table("", 2);
  for (const Row& row : r.rows) table.Add(MainLine(r, row));
  for (const Model& model : AllModels()) {
    const std::string why = WhyNoRow(r, model);
    if (!why.empty()) table.Add({{"", "model", ModelName(model)}, {"", "config", why}});
  }
  report->Say("## Latency p50 / p99 in us, and saturation").Add(std::move(table));
  report->Say(
      absl::StrFormat("`%s`: saturated, under %.0f %% of the offered requests were answered in time; the "
                      "latency then means nothing. "
                      "`%s`: the load generator was late or had no CPU left, so the cell says little about "
                      "the server. Both when at "
                      "least half of the rounds were so. Context switches are those of the mid-tier.",
                      kSaturatedMark + 1, 100 * kSustainedShare, kGeneratorMark + 1));
}

// Figure 6 in its first column of numbers, figure 7 in the others.
void AddFamilyTable(const Results& r, bench::Report* report) {
  Table table;
  const auto add = [&](const std::string& name, const std::function<Cell(size_t load)>& cell) {
    Line line = {{"", "family", name}, {"", "saturation, answers/s", cell(r.loads.size() - 1)}};
    AddOpenLoads(r, cell, &line, "p99 at ");
    table.Add(std::move(line));
  };
  for (const Family& family : kFamilies) {
    add(family.name, [&](size_t load) -> Cell {
      const std::optional<Best> best = BestOf(r, family.waiting, load);
      if (!best) return {};
      const Row& row = r.rows[best->row];
      return absl::StrCat(Short(best->value), " ", row.config, Marks(*Summarize(row.cells[load])));
    });
  }
  for (const Family& family : {kFamilies[1], kFamilies[2]}) {
    add(absl::StrCat("S to ", std::string(1, family.name[0])), [&](size_t load) -> Cell {
      const std::optional<Best> sync = BestOf(r, Waiting::kSync, load),
                                other = BestOf(r, family.waiting, load);
      if (!sync || !other || other->value <= 0) return {};
      return Fixed(2)(sync->value / other->value);
    });
  }
  report->Say("## Families: the best of each, and S as a multiple of A and F (figures 6 and 7 of the paper)");
  report->Add(std::move(table)).Say("Saturated cells are left out.");
}

// p99 as a multiple of the family's best at the load.
void AddNormalisedTable(const Results& r, const Family& family, bench::Report* report) {
  Table table;
  for (const Row& row : r.rows) {
    if (row.model.waiting != family.waiting) continue;
    Line line = {{"", "config", row.config}};
    const auto multiple = [&](size_t load) -> Cell {
      const std::optional<Summary> s = Summarize(row.cells[load]);
      if (s && s->saturated) return kSaturatedMark + 1;
      const std::optional<Best> best = BestOf(r, family.waiting, load);
      if (!s || !best || best->value <= 0) return {};
      const std::string ratio = Fixed(2)(s->p99_us.median / best->value);
      return &row == &r.rows[best->row] ? absl::StrCat("**", ratio, "**") : ratio;
    };
    AddOpenLoads(r, multiple, &line);
    table.Add(std::move(line));
  }
  if (table.empty()) return;
  report->Say(
      absl::StrCat("## p99 of ", family.name, " models, normalised to the best of the load", family.figure));
  report->Add(std::move(table));
}

// Everything, a row a load and config.
Table CellTable(const Results& r) {
  Table table("cells", 2);
  for (size_t l = 0; l < r.loads.size(); ++l) {
    for (const Row& row : r.rows) {
      const std::vector<Measurement>& rounds = row.cells[l];
      const std::optional<Summary> s = Summarize(rounds);
      if (!s) continue;
      const auto of = [&rounds](auto field) { return Values(rounds, field); };
      table.Add({{"model", kHidden, ModelName(row.model)},
                 {"config", "config", row.config},
                 {"load", "load", LoadName(r.loads[l])},
                 {"outstanding_requests", kHidden, r.loads[l].outstanding},
                 {"rate_per_s", kHidden, r.loads[l].rate_per_s},
                 {"offered_per_s", kHidden, of(&Measurement::offered_per_s)},
                 {"p50_us", kHidden, of(&Measurement::p50_us)},
                 {"p99_us", kHidden, of(&Measurement::p99_us)},
                 {"", "p99 smallest-largest", absl::StrCat(bench::MinToMax(Short)(s->p99_us), Marks(*s))},
                 {"achieved_per_s", "answers/s", of(&Measurement::achieved_per_s)},
                 {"mid_context_switches_per_request", "switches/request", of(&Measurement::context_switches),
                  Median(Fixed(2))},
                 {"mid_involuntary_switches_per_request", "of these involuntary",
                  of(&Measurement::involuntary_switches), Median(Fixed(2))},
                 {"mid_cpu_us_per_request", "CPU us/request", of(&Measurement::cpu_us)},
                 {"mid_runqueue_delay_us_per_request", "waiting for a CPU us/request",
                  of(&Measurement::runqueue_us)},
                 {"requests", kHidden, of(&Measurement::requests)},
                 {"failed_requests", kHidden, of(&Measurement::failed)},
                 {"saturated", kHidden, s->saturated},
                 {"generator_bound", kHidden, s->generator_bound}});
    }
  }
  return table;
}

Table PoolTable(const Results& r) {
  Table table("candidates", 2);
  for (size_t i = 0; i < r.candidates.size(); ++i) {
    const Candidate& c = r.candidates[i];
    const bool chosen = std::find(r.chosen.begin(), r.chosen.end(), i) != r.chosen.end();
    const char* const state = c.measured          ? (chosen ? "yes" : "")
                              : !c.available      ? "not available"
                              : c.problem.empty() ? "not tried"
                                                  : "failed";
    const auto measured = [&c](double value) { return c.measured ? Cell(value) : Cell(); };
    table.Add({{"config", "config", c.config.ToString()},
               {"", "chosen", state},
               {"chosen", kHidden, chosen},
               {"saturation_per_s", "answers/s", measured(c.saturation_per_s)},
               {"low_load_p99_us", absl::StrCat("p99 at ", Short(r.pick_rate_per_s), "/s, us"),
                measured(c.low_p99_us)},
               {"available", kHidden, c.available}});
  }
  return table;
}

// Where several pools of a model were measured at every load: which was best where.
void AddPoolsByLoadTable(const Results& r, bench::Report* report) {
  Table table;
  bool several = false;
  for (const Model& model : AllModels()) {
    const auto of_model = [&](const Row& row) { return row.model == model; };
    const auto pools = std::count_if(r.rows.begin(), r.rows.end(), of_model);
    if (pools == 0) continue;
    several |= pools > 1;
    Line line = {{"", "model", ModelName(model)}};
    const auto best_pool = [&](size_t load) -> Cell {
      const std::optional<size_t> best = BestPool(r, model, load);
      if (!best) return {};
      const Row& row = r.rows[*best];
      return row.config + (Summarize(row.cells[load])->saturated ? kSaturatedMark : "");
    };
    AddOpenLoads(r, best_pool, &line);
    table.Add(std::move(line));
  }
  if (!several) return;
  report->Say("## The pools with the lowest p99 at each load (figure 12 of the paper)").Add(std::move(table));
}

Table ProblemTable(const Results& r) {
  Table table("problems", 2);
  const auto add = [&table](const std::string& config, const std::string& problem) {
    if (!problem.empty()) table.Add({{"config", "config", config}, {"problem", "problem", problem}});
  };
  for (const Candidate& c : r.candidates) add(c.config.ToString(), c.problem);
  for (const Row& row : r.rows) add(row.config, row.problem);
  return table;
}

}  // namespace

bench::Report ReportOf(const Results& r) {
  bench::Report report("models", r.flags, r.machine);
  report.Set("service", r.service).Set("description", r.description).Set("interrupted", r.interrupted);
  report.Set("cell_s", r.timing.cell_s).Set("warmup_s", r.timing.warmup_s).Set("pick_s", r.timing.pick_s);
  report.Set("pick_outstanding_requests", r.pick_outstanding).Set("pick_rate_per_s", r.pick_rate_per_s);
  report.Say("# Threading models: " + r.service).Say(r.description + ".");
  report.Say(
      absl::StrFormat("%s, %s; %s before the run. Load generator, mid-tier and leaves share the machine.",
                      r.machine.cpu_model, r.machine.kernel, bench::ToString(r.machine)));
  report.Say(Conditions(r)).Say(r.interrupted ? "**Interrupted: the tables are partial.**" : "");
  if (!r.rows.empty() && OpenLoads(r) > 0) {
    AddMainTable(r, &report);
    AddFamilyTable(r, &report);
    for (const Family& family : kFamilies) AddNormalisedTable(r, family, &report);
    AddPoolsByLoadTable(r, &report);
    report.Say("## What the mid-tier consumed, and the spread over rounds").Add(CellTable(r));
  }
  report.Say("## Pool sizes (figure 12 of the paper, at two loads)").Add(PoolTable(r));
  report.Say(
      absl::StrFormat("Chosen: of the pools within %.0f %% of a model's highest throughput, the one with the "
                      "lowest p99; of equals the smallest.",
                      100 * kSaturationMargin));
  Table problems = ProblemTable(r);
  return report.Say(problems.empty() ? "" : "## Not measured").Add(std::move(problems));
}

}  // namespace curtail::models
