// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/common/report.h"

namespace curtail::fences {
namespace {

using Line = bench::Row;

std::string Number(double value) {
  if (value >= 100) return absl::StrFormat("%.0f", value);
  return value >= 10 ? absl::StrFormat("%.1f", value) : absl::StrFormat("%.2f", value);
}

std::string Median(const std::optional<Spread>& s) { return s ? Number(s->median) : "-"; }

std::string Range(const std::optional<Spread>& s) {
  if (!s) return "-";
  if (s->min == s->max) return Number(s->median);
  return absl::StrCat(Number(s->median), " (", Number(s->min), "-", Number(s->max), ")");
}

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

std::string Marks(const Row& row) {
  const bool late = std::any_of(row.rounds.begin(), row.rounds.end(),
                                [](const Cell& cell) { return !cell.generator_note.empty(); });
  return late ? "gen" : "";
}

std::string Head(const Results& r) {
  return absl::StrFormat(
      "# Fences\n\n"
      "All processes and the load generator share %d CPUs. A variant is the threading model of the shared "
      "services, and their guards: +strict or +borrow for fences, +queueN for a queue of N requests, +codel "
      "and +lifo for one that sheds or serves the newest first, +priorities for a server that refuses the "
      "least important first, +credits for clients that wait for credits, +deadline for a short one of each "
      "request. %d rounds over all variants in "
      "turns, seed %d, phases of %g s. Cells are medians (lowest-highest) over the rounds; latency counts "
      "from the intended send time, and a request that was dropped counts as the timeout of 1 s in a "
      "p99.%s\n\n",
      r.machine.cpus, r.rounds, r.seed, r.phase_s,
      r.interrupted ? " **Interrupted: some rounds are missing.**" : "");
}

std::string Offered(const Part& part) {
  std::vector<std::string> texts;
  for (size_t c = 0; c < part.rates_per_s.size(); ++c) {
    texts.push_back(absl::StrFormat("%s %.0f/s", part.classes[c], part.rates_per_s[c]));
  }
  return absl::StrJoin(texts, ", ");
}

double BusiestCell(const Part& part) {
  double most = 0;
  for (const Row& row : part.rows) {
    for (const Cell& cell : row.rounds) most = std::max(most, cell.cpus);
  }
  return most;
}

// A row a class and variant: p99 of each phase, and the phase `main` in detail.
std::string PhaseTable(const Part& part, size_t main) {
  Line head = {"path", "variant"};
  for (const std::string& phase : part.phases) head.push_back(absl::StrCat("p99 ms ", phase));
  head.insert(head.end(), {"mean ms", "p99 answered", "answered/s", "dropped", "marks"});
  std::vector<Line> lines = {std::move(head)};
  for (size_t c = 0; c < part.classes.size(); ++c) {
    for (const Row& row : part.rows) {
      if (row.rounds.empty()) continue;
      Line line = {part.classes[c], row.variant.name()};
      for (size_t p = 0; p < part.phases.size(); ++p) {
        const auto p99 = SpreadOf(row, c, p, &PhaseResult::p99_ms);
        line.push_back(p == main ? Range(p99) : Median(p99));
      }
      line.push_back(Median(SpreadOf(row, c, main, &PhaseResult::mean_ms)));
      line.push_back(Median(SpreadOf(row, c, main, &PhaseResult::answered_p99_ms)));
      line.push_back(Median(SpreadOf(row, c, main, &PhaseResult::answered_per_s)));
      line.push_back(Dropped(row, c, main));
      line.push_back(Marks(row));
      lines.push_back(std::move(line));
    }
  }
  return bench::Table{2, std::move(lines)}.ToMarkdown();
}

std::string StallVerdict(const Part& part) {
  std::vector<Line> lines = {{"variant", "p99 during / alone", "bar", ""}};
  const std::string slack = part.slack_ms > 0 ? absl::StrFormat(", or %g ms more", part.slack_ms) : "";
  for (const Row& row : part.rows) {
    const std::optional<Verdict> verdict = JudgeStall(part, row);
    if (!verdict) continue;
    lines.push_back({row.variant.name(), Range(verdict->ratio),
                     verdict->isolates ? absl::StrFormat("<= %g%s", kIsolatedBar, slack)
                                       : absl::StrFormat(">= %g", kCollapsedBar),
                     verdict->held ? "held" : "missed"});
  }
  return absl::StrCat("Path ", part.classes.front(), ", ratios taken round by round:\n\n",
                      bench::Table{1, std::move(lines)}.ToMarkdown());
}

std::string TraceVerdict(const Part& part) {
  std::vector<Line> lines = {
      {"variant", "answered/s", "p99", absl::StrCat("p99 of ", part.classes.front()), "bar", ""}};
  for (const Row& row : part.rows) {
    const std::optional<Parity> parity = JudgeTrace(part, row);
    if (!parity) continue;
    lines.push_back(
        {row.variant.name(), Range(parity->throughput), Range(parity->p99), Range(parity->guarded_p99),
         absl::StrFormat(">= %g, <= %g", kParityThroughput, kParityP99), parity->held ? "held" : "missed"});
  }
  return absl::StrCat("Over the first variant that holds no thread, ratios taken round by round:\n\n",
                      bench::Table{1, std::move(lines)}.ToMarkdown());
}

std::string LoadTable(const Part& part) {
  std::vector<Line> lines = {{"load", "variant", "good/s", "p99 answered", "dropped"}};
  for (size_t p = 0; p < part.phases.size(); ++p) {
    for (const Row& row : part.rows) {
      if (row.rounds.empty()) continue;
      lines.push_back({part.phases[p], row.variant.name(),
                       Range(SpreadOf(row, 0, p, &PhaseResult::good_per_s)),
                       Range(SpreadOf(row, 0, p, &PhaseResult::answered_p99_ms)), Dropped(row, 0, p)});
    }
  }
  return bench::Table{2, std::move(lines)}.ToMarkdown();
}

std::string OverloadVerdict(const Part& part) {
  std::vector<Line> lines = {
      {"variant", "goodput at the highest load / peak", "p99 answered, ms", "bar", ""}};
  for (const Row& row : part.rows) {
    const std::optional<Goodput> goodput = JudgeOverload(part, row, part.slo_ms);
    if (!goodput) continue;
    lines.push_back({row.variant.name(), Range(goodput->ratio), Range(goodput->answered_p99_ms),
                     absl::StrFormat(">= %g, <= %g ms", kGoodputBar, part.slo_ms),
                     goodput->held ? "held" : "missed"});
  }
  return bench::Table{1, std::move(lines)}.ToMarkdown();
}

std::string PartText(const Part& part) {
  std::string text = absl::StrFormat("## %s\n\n%s Offered: %s. The busiest run took %.2f CPUs.\n\n",
                                     part.name, part.title, Offered(part), BusiestCell(part));
  switch (part.kind) {
    case Part::Kind::kStall:
      absl::StrAppend(&text, "Columns after the p99s are of the phase `during`.\n\n",
                      PhaseTable(part, kDuring), "\n", StallVerdict(part), "\n");
      break;
    case Part::Kind::kTrace:
      absl::StrAppend(&text, PhaseTable(part, 0), "\n", TraceVerdict(part), "\n");
      break;
    case Part::Kind::kOverload:
      absl::StrAppend(&text, LoadTable(part), "\n", OverloadVerdict(part), "\n");
      break;
  }
  return text;
}

}  // namespace

std::string ToMarkdown(const Results& r) {
  std::string text = Head(r);
  for (const Part& part : r.parts) {
    if (!part.rows.front().rounds.empty()) absl::StrAppend(&text, PartText(part));
  }
  absl::StrAppend(&text, "Mark gen: the load generator was late in a round.\n");
  return text;
}

}  // namespace curtail::fences
