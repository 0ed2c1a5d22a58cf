// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: five tables. The first is what was measured; the others read it as the paper's figures do: the
// ratio between families (figures 6 and 7), each family normalised to its best at each load (figures 8 and
// 11), and pool sizes (figure 12). A cell that may not be believed carries its mark and stays.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/common/report.h"
#include "report.h"

namespace curtail::models {
namespace {

using Line = bench::Row;

constexpr char kSaturatedMark[] = " sat";
constexpr char kGeneratorMark[] = " gen";
constexpr char kNothing[] = "-";

struct Family {
  Waiting waiting;
  const char* name;
};
constexpr Family kFamilies[] = {
    {Waiting::kSync, "S (sync)"}, {Waiting::kAsync, "A (async)"}, {Waiting::kFiber, "F (fiber)"}};

// 1234567.8 as 1,234,568; below 100 with one digit more.
std::string Number(double value) {
  return value < 100 ? absl::StrFormat("%.1f", value) : bench::Grouped(value);
}

std::string Marks(const Summary& s) {
  return absl::StrCat(s.saturated ? kSaturatedMark : "", s.generator_bound ? kGeneratorMark : "");
}

std::string Table(const Line& header, size_t text_columns, std::vector<Line> lines) {
  lines.insert(lines.begin(), header);
  return bench::Table{text_columns, std::move(lines)}.ToMarkdown() + "\n";
}

std::string LoadName(const Load& load) {
  return load.closed() ? absl::StrCat("closed-", load.outstanding)
                       : absl::StrCat(Number(load.rate_per_s), "/s");
}

size_t OpenLoads(const Results& r) { return r.loads.empty() ? 0 : r.loads.size() - 1; }

// The highest open load: the last that is no closed loop.
size_t HighLoad(const Results& r) { return OpenLoads(r) - 1; }

std::string Head(const Results& r) {
  std::vector<std::string> rates;
  for (const Load& load : r.loads) rates.push_back(LoadName(load));
  std::string out = absl::StrFormat(
      "# Threading models: %s\n\n%s.\n\n%s, %s; %s before the run. Load generator, mid-tier and leaves "
      "share the "
      "machine.\n\n",
      r.service, r.description, r.machine.cpu_model, r.machine.kernel, bench::ToString(r.machine));
  absl::StrAppendFormat(&out,
                        "%d round%s, every config once at each load in a round; %.3g s a cell, up to %.3g s "
                        "at low loads. Loads: %s. "
                        "Open loop with Poisson arrivals, latency from the intended send time; seed %d. Pool "
                        "sizes picked by %d requests "
                        "under way and at %.0f/s.\n\n",
                        r.timing.rounds, r.timing.rounds == 1 ? "" : "s", r.timing.cell_s,
                        r.timing.cell_s * r.timing.max_stretch, absl::StrJoin(rates, ", "), r.flags.seed,
                        r.pick_outstanding, r.pick_rate_per_s);
  if (r.interrupted) out += "**Interrupted: the tables are partial.**\n\n";
  return out;
}

std::string P50P99(const Summary& s) {
  return absl::StrCat(Number(s.p50_us.median), " / ", Number(s.p99_us.median), Marks(s));
}

std::string SwitchesAt(const Row& row, size_t load) {
  const std::optional<Summary> s = Summarize(row.cells[load]);
  return s ? absl::StrFormat("%.2f", s->context_switches) : kNothing;
}

Line MainLine(const Results& r, const Row& row) {
  Line line = {ModelName(row.model), row.config};
  for (size_t l = 0; l < OpenLoads(r); ++l) {
    const std::optional<Summary> s = Summarize(row.cells[l]);
    line.push_back(s ? P50P99(*s) : kNothing);
  }
  const std::optional<Summary> full = Summarize(row.cells.back());
  line.push_back(full ? absl::StrCat(Number(full->achieved_per_s.median), Marks(*full)) : kNothing);
  line.push_back(SwitchesAt(row, 0));
  line.push_back(SwitchesAt(row, HighLoad(r)));
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

std::string MainTable(const Results& r) {
  Line header = {"model", "config"};
  for (size_t l = 0; l < OpenLoads(r); ++l) header.push_back(LoadName(r.loads[l]));
  header.push_back("saturation, answers/s");
  header.push_back(absl::StrCat("switches/request at ", LoadName(r.loads[0])));
  header.push_back(absl::StrCat("at ", LoadName(r.loads[HighLoad(r)])));
  std::vector<Line> lines;
  for (const Row& row : r.rows) lines.push_back(MainLine(r, row));
  for (const Model& model : AllModels()) {
    const std::string why = WhyNoRow(r, model);
    if (why.empty()) continue;
    Line line = {ModelName(model), why};
    line.resize(header.size(), kNothing);
    lines.push_back(std::move(line));
  }
  return absl::StrCat("## Latency p50 / p99 in us, and saturation\n\n", Table(header, 2, lines), "`",
                      kSaturatedMark + 1, "`: saturated, under ",
                      absl::StrFormat("%.0f", 100 * kSustainedShare),
                      " % of the offered requests were answered in time; the latency then means nothing. `",
                      kGeneratorMark + 1,
                      "`: the load generator was late or had no CPU left, so the cell says little about the "
                      "server. Both when at "
                      "least half of the rounds were so. Context switches are those of the mid-tier.\n\n");
}

// Figure 6 in its first column of numbers, figure 7 in the others.
std::string FamilyTable(const Results& r) {
  Line header = {"family", "saturation, answers/s"};
  for (size_t l = 0; l < OpenLoads(r); ++l) header.push_back(absl::StrCat("p99 at ", LoadName(r.loads[l])));
  std::vector<size_t> columns = {r.loads.size() - 1};
  for (size_t l = 0; l < OpenLoads(r); ++l) columns.push_back(l);
  std::vector<Line> lines;
  for (const Family& family : kFamilies) {
    Line line = {family.name};
    for (size_t load : columns) {
      const std::optional<Best> best = BestOf(r, family.waiting, load);
      line.push_back(best ? absl::StrCat(Number(best->value), " ", r.rows[best->row].config,
                                         Marks(*Summarize(r.rows[best->row].cells[load])))
                          : kNothing);
    }
    lines.push_back(std::move(line));
  }
  for (const Family& family : {kFamilies[1], kFamilies[2]}) {
    Line line = {absl::StrCat("S to ", std::string(1, family.name[0]))};
    for (size_t load : columns) {
      const std::optional<Best> sync = BestOf(r, Waiting::kSync, load),
                                other = BestOf(r, family.waiting, load);
      line.push_back(sync && other && other->value > 0 ? absl::StrFormat("%.2f", sync->value / other->value)
                                                       : kNothing);
    }
    lines.push_back(std::move(line));
  }
  return absl::StrCat(
      "## Families: the best of each, and S as a multiple of A and F (figures 6 and 7 of the paper)\n\n",
      Table(header, 1, lines), "Saturated cells are left out.\n\n");
}

// p99 as a multiple of the family's best at the load.
std::string NormalisedTable(const Results& r, const Family& family, const char* figure) {
  Line header = {"config"};
  for (size_t l = 0; l < OpenLoads(r); ++l) header.push_back(LoadName(r.loads[l]));
  std::vector<Line> lines;
  for (const Row& row : r.rows) {
    if (row.model.waiting != family.waiting) continue;
    Line line = {row.config};
    for (size_t l = 0; l < OpenLoads(r); ++l) {
      const std::optional<Summary> s = Summarize(row.cells[l]);
      const std::optional<Best> best = BestOf(r, family.waiting, l);
      if (!s || s->saturated || !best || best->value <= 0) {
        line.push_back(s && s->saturated ? kSaturatedMark + 1 : kNothing);
        continue;
      }
      const std::string ratio = absl::StrFormat("%.2f", s->p99_us.median / best->value);
      line.push_back(&row == &r.rows[best->row] ? absl::StrCat("**", ratio, "**") : ratio);
    }
    lines.push_back(std::move(line));
  }
  if (lines.empty()) return {};
  return absl::StrCat("## p99 of ", family.name, " models, normalised to the best of the load", figure,
                      "\n\n", Table(header, 1, lines));
}

std::string CostTable(const Results& r) {
  const Line header = {"config",
                       "load",
                       "p99 smallest-largest",
                       "answers/s",
                       "switches/request",
                       "of these involuntary",
                       "CPU us/request",
                       "waiting for a CPU us/request"};
  std::vector<Line> lines;
  for (size_t l = 0; l < r.loads.size(); ++l) {
    for (const Row& row : r.rows) {
      const std::optional<Summary> s = Summarize(row.cells[l]);
      if (!s) continue;
      lines.push_back({row.config, LoadName(r.loads[l]),
                       absl::StrCat(Number(s->p99_us.min), "-", Number(s->p99_us.max), Marks(*s)),
                       Number(s->achieved_per_s.median), absl::StrFormat("%.2f", s->context_switches),
                       absl::StrFormat("%.2f", s->involuntary_switches), Number(s->cpu_us),
                       Number(s->runqueue_us)});
    }
  }
  return absl::StrCat("## What the mid-tier consumed, and the spread over rounds\n\n",
                      Table(header, 2, lines));
}

std::string PoolTable(const Results& r) {
  const Line header = {"config", "chosen", "answers/s",
                       absl::StrCat("p99 at ", Number(r.pick_rate_per_s), "/s, us")};
  std::vector<Line> lines;
  for (size_t i = 0; i < r.candidates.size(); ++i) {
    const Candidate& c = r.candidates[i];
    const bool chosen = std::find(r.chosen.begin(), r.chosen.end(), i) != r.chosen.end();
    if (c.measured) {
      lines.push_back(
          {c.config.ToString(), chosen ? "yes" : "", Number(c.saturation_per_s), Number(c.low_p99_us)});
    } else {
      lines.push_back({c.config.ToString(),
                       !c.available        ? "not available"
                       : c.problem.empty() ? "not tried"
                                           : "failed",
                       kNothing, kNothing});
    }
  }
  return absl::StrCat(
      "## Pool sizes (figure 12 of the paper, at two loads)\n\n", Table(header, 2, lines),
      absl::StrFormat("Chosen: of the pools within %.0f %% of a model's highest throughput, the one with "
                      "the lowest p99; of equals the smallest.\n",
                      100 * kSaturationMargin));
}

// Where several pools of a model were measured at every load: which was best where.
std::string PoolsByLoadTable(const Results& r) {
  Line header = {"model"};
  for (size_t l = 0; l < OpenLoads(r); ++l) header.push_back(LoadName(r.loads[l]));
  std::vector<Line> lines;
  bool several = false;
  for (const Model& model : AllModels()) {
    const auto of_model = [&](const Row& row) { return row.model == model; };
    const auto pools = std::count_if(r.rows.begin(), r.rows.end(), of_model);
    if (pools == 0) continue;
    several |= pools > 1;
    Line line = {ModelName(model)};
    for (size_t l = 0; l < OpenLoads(r); ++l) {
      const std::optional<size_t> best = BestPool(r, model, l);
      const bool saturated = best && Summarize(r.rows[*best].cells[l])->saturated;
      line.push_back(best ? absl::StrCat(r.rows[*best].config, saturated ? kSaturatedMark : "") : kNothing);
    }
    lines.push_back(std::move(line));
  }
  if (!several) return {};
  return absl::StrCat("## The pools with the lowest p99 at each load (figure 12 of the paper)\n\n",
                      Table(header, 1, lines));
}

std::string Problems(const Results& r) {
  std::string out;
  for (const Candidate& c : r.candidates) {
    if (!c.problem.empty()) absl::StrAppend(&out, "- ", c.config.ToString(), ": ", c.problem, "\n");
  }
  for (const Row& row : r.rows) {
    if (!row.problem.empty()) absl::StrAppend(&out, "- ", row.config, ": ", row.problem, "\n");
  }
  return out.empty() ? out : absl::StrCat("\n## Not measured\n\n", out);
}

}  // namespace

std::string ToMarkdown(const Results& r) {
  std::string out = Head(r);
  if (!r.rows.empty() && OpenLoads(r) > 0) {
    absl::StrAppend(&out, MainTable(r), FamilyTable(r),
                    NormalisedTable(r, kFamilies[0], " (figure 8 of the paper)"),
                    NormalisedTable(r, kFamilies[1], " (figure 11 of the paper)"),
                    NormalisedTable(r, kFamilies[2], ""), PoolsByLoadTable(r), CostTable(r));
  }
  return absl::StrCat(out, PoolTable(r), Problems(r));
}

}  // namespace curtail::models
