// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/fences/results.h"

namespace curtail::fences {
namespace {

using bench::Field;
using bench::kHidden;
using bench::Range;
using bench::Short;
using bench::Table;

// The share of the requests of a phase that were dropped.
std::string Dropped(const Row& row, size_t of_class, size_t phase) {
  uint64_t due = 0, dropped = 0;
  for (const Cell& cell : row.rounds) {
    due += cell.classes[of_class][phase].due;
    dropped += cell.classes[of_class][phase].dropped;
  }
  if (dropped == 0) return "0";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(dropped) / static_cast<double>(due));
}

// Why the load generator was not what it should be, in any round.
std::string GeneratorNotes(const Row& row) {
  std::set<std::string> notes;
  for (const Cell& cell : row.rounds) notes.insert(cell.generator_note);
  notes.erase("");
  return absl::StrJoin(notes, "; ");
}

std::string Head(const Results& r) {
  return absl::StrFormat(
      "All processes and the load generator share %d CPUs. A variant is the threading model of the shared "
      "services, and their guards: +on or +strict for fences, +queueN for a queue of N requests, +codel "
      "and +lifo for one that sheds or serves the newest first, +priorities for a server that refuses the "
      "least important first, +credits for clients that wait for credits, +deadline for a short one of each "
      "request. %d rounds over all variants in "
      "turns, seed %d, phases of %g s. Cells are medians (lowest-highest) over the rounds; latency counts "
      "from the intended send time, and a request that was dropped counts as the timeout of 1 s in a "
      "p99.%s",
      r.machine.cpus, r.rounds, r.seed, r.phase_s,
      r.interrupted ? " **Interrupted: some rounds are missing.**" : "");
}

std::string PartLine(const Part& part) {
  std::vector<std::string> offered;
  for (size_t c = 0; c < part.rates_per_s.size(); ++c) {
    offered.push_back(absl::StrFormat("%s %.0f/s", part.classes[c], part.rates_per_s[c]));
  }
  double busiest = 0;
  for (const Row& row : part.rows) {
    for (const Cell& cell : row.rounds) busiest = std::max(busiest, cell.cpus);
  }
  return absl::StrFormat("%s Offered: %s. The busiest run took %.2f CPUs.", part.title,
                         absl::StrJoin(offered, ", "), busiest);
}

// The fields of a class in one phase but for its p99; those that are `shown` are printed, too.
void AddPhase(const Row& row, size_t of_class, size_t phase, const std::string& prefix, bool shown,
              std::vector<Field>* line) {
  const auto title = [shown](const char* text) { return shown ? std::optional<std::string>(text) : kHidden; };
  const auto add = [&](const char* name, std::optional<std::string> printed, auto field) {
    line->push_back({prefix + name, std::move(printed), Values(row, of_class, phase, field)});
  };
  add("mean_answered_ms", title("mean ms"), &PhaseResult::mean_ms);
  add("p99_answered_ms", title("p99 answered"), &PhaseResult::answered_p99_ms);
  add("answered_per_s", title("answered/s"), &PhaseResult::answered_per_s);
  add("good_per_s", kHidden, &PhaseResult::good_per_s);
  add("requests", kHidden, &PhaseResult::due);
  add("dropped_requests", kHidden, &PhaseResult::dropped);
}

// A row a class and variant: p99 of each phase, and the phase `main` in detail.
Table PhaseTable(const Part& part, size_t main) {
  Table table(part.name + ".phases", 2);
  for (size_t c = 0; c < part.classes.size(); ++c) {
    for (const Row& row : part.rows) {
      if (row.rounds.empty()) continue;
      std::vector<Field> line = {{"class", "path", part.classes[c]},
                                 {"variant", "variant", row.variant.name()}};
      for (size_t p = 0; p < part.phases.size(); ++p) {
        line.push_back({part.phases[p] + ".p99_ms", "p99 ms " + part.phases[p],
                        Values(row, c, p, &PhaseResult::p99_ms),
                        p == main ? Range(Short) : bench::Median(Short)});
      }
      for (size_t p = 0; p < part.phases.size(); ++p)
        AddPhase(row, c, p, part.phases[p] + ".", p == main, &line);
      line.push_back({"", "dropped", Dropped(row, c, main)});
      line.push_back({"", "marks", GeneratorNotes(row).empty() ? "" : "gen"});
      table.Add(std::move(line));
    }
  }
  return table;
}

// The same of a part whose phases are loads, of one class.
Table LoadTable(const Part& part) {
  Table table(part.name + ".phases", 2);
  for (size_t p = 0; p < part.phases.size(); ++p) {
    for (const Row& row : part.rows) {
      if (row.rounds.empty()) continue;
      std::vector<Field> line = {
          {"load", "load", part.phases[p]},
          {"variant", "variant", row.variant.name()},
          {"", "good/s", Values(row, 0, p, &PhaseResult::good_per_s), Range(Short)},
          {"", "p99 answered", Values(row, 0, p, &PhaseResult::answered_p99_ms), Range(Short)},
          {"", "dropped", Dropped(row, 0, p)},
          {"p99_ms", kHidden, Values(row, 0, p, &PhaseResult::p99_ms)}};
      AddPhase(row, 0, p, "", false, &line);
      table.Add(std::move(line));
    }
  }
  return table;
}

// The numbers that do not belong to a phase.
Table VariantTable(const Part& part) {
  Table table(part.name + ".variants");
  for (const Row& row : part.rows) {
    table.Add({{"variant", kHidden, row.variant.name()},
               {"refused_requests", kHidden, bench::Values(row.rounds, &Cell::refused)},
               {"late_requests", kHidden, bench::Values(row.rounds, &Cell::late)},
               {"busy_cpus", kHidden, bench::Values(row.rounds, &Cell::cpus)},
               {"generator_notes", kHidden, GeneratorNotes(row)}});
  }
  return table;
}

Field Held(bool held) { return {"held", "", held, bench::YesNo("held", "missed")}; }

Table StallVerdict(const Part& part) {
  Table table(part.name + ".verdict");
  const std::string slack = part.slack_ms > 0 ? absl::StrFormat(", or %g ms more", part.slack_ms) : "";
  for (const Row& row : part.rows) {
    const std::optional<Verdict> verdict = JudgeStall(part, row);
    if (!verdict) continue;
    const std::string bar = verdict->isolates ? absl::StrFormat("<= %g%s", kIsolatedBar, slack)
                                              : absl::StrFormat(">= %g", kCollapsedBar);
    table.Add({{"variant", "variant", row.variant.name()},
               {"p99_during_over_alone", "p99 during / alone", verdict->ratio, Range(Short)},
               {"bar", "bar", bar},
               Held(verdict->held)});
  }
  return table;
}

Table TraceVerdict(const Part& part) {
  Table table(part.name + ".verdict");
  for (const Row& row : part.rows) {
    const std::optional<Parity> parity = JudgeTrace(part, row);
    if (!parity) continue;
    table.Add(
        {{"variant", "variant", row.variant.name()},
         {"answered_over_async", "answered/s", parity->throughput, Range(Short)},
         {"p99_over_async", "p99", parity->p99, Range(Short)},
         {"guarded_p99_over_async", "p99 of " + part.classes.front(), parity->guarded_p99, Range(Short)},
         {"bar", "bar", absl::StrFormat(">= %g, <= %g", kParityThroughput, kParityP99)},
         Held(parity->held)});
  }
  return table;
}

Table OverloadVerdict(const Part& part) {
  Table table(part.name + ".verdict");
  for (const Row& row : part.rows) {
    const std::optional<Goodput> goodput = JudgeOverload(part, row, part.slo_ms);
    if (!goodput) continue;
    table.Add({{"variant", "variant", row.variant.name()},
               {"goodput_at_highest_load_over_peak", "goodput at the highest load / peak", goodput->ratio,
                Range(Short)},
               {"p99_answered_ms", "p99 answered, ms", goodput->answered_p99_ms, Range(Short)},
               {"bar", "bar", absl::StrFormat(">= %g, <= %g ms", kGoodputBar, part.slo_ms)},
               Held(goodput->held)});
  }
  return table;
}

void AddPart(const Part& part, bench::Report* report) {
  report->Say("## " + part.name).Say(PartLine(part));
  switch (part.kind) {
    case Part::Kind::kStall:
      report->Say("Columns after the p99s are of the phase `during`.").Add(PhaseTable(part, kDuring));
      report->Say(absl::StrCat("Path ", part.classes.front(), ", ratios taken round by round:"));
      report->Add(StallVerdict(part));
      break;
    case Part::Kind::kTrace:
      report->Add(PhaseTable(part, 0));
      report->Say("Over the first variant that holds no thread, ratios taken round by round:");
      report->Add(TraceVerdict(part));
      break;
    case Part::Kind::kOverload:
      report->Add(LoadTable(part)).Add(OverloadVerdict(part));
      break;
  }
  report->Add(VariantTable(part));
}

}  // namespace

bench::Report ReportOf(const Results& r) {
  bench::Report report("fences", r, r.machine);
  report.Set("phase_s", r.phase_s).Set("interrupted", r.interrupted);
  report.Say("# Fences").Say(Head(r));
  for (const Part& part : r.parts) {
    if (!part.rows.front().rounds.empty()) AddPart(part, &report);
  }
  report.Say("Mark gen: the load generator was late in a round.");
  return report;
}

}  // namespace curtail::fences
