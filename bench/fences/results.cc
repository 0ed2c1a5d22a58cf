// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/results.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace curtail::fences {
namespace {

uint64_t CountOf(const LoadResult& result, const char* code) {
  const auto found = result.codes.find(code);
  return found == result.codes.end() ? 0 : found->second;
}

}  // namespace

std::optional<Spread> P99Ratio(const Row& row, size_t of_class, size_t phase, size_t to_phase) {
  std::vector<double> ratios;
  for (const Cell& cell : row.rounds) {
    const std::vector<PhaseResult>& phases = cell.classes[of_class];
    if (phases[to_phase].p99_ms > 0) ratios.push_back(phases[phase].p99_ms / phases[to_phase].p99_ms);
  }
  return bench::SpreadIfAny(std::move(ratios));
}

std::optional<Verdict> JudgeStall(const Part& part, const Row& row) {
  const std::optional<Spread> ratio = P99Ratio(row, 0, kDuring, kAlone);
  if (!ratio) return std::nullopt;
  Verdict verdict{.ratio = *ratio, .isolates = row.variant.fenced() || row.variant.holds_no_thread()};
  const double more_ms = bench::SpreadOf(Values(row, 0, kDuring, &PhaseResult::p99_ms)).median -
                         bench::SpreadOf(Values(row, 0, kAlone, &PhaseResult::p99_ms)).median;
  verdict.held = verdict.isolates ? ratio->median <= kIsolatedBar || more_ms <= part.slack_ms
                                  : ratio->median >= kCollapsedBar;
  return verdict;
}

std::optional<Parity> JudgeTrace(const Part& part, const Row& row) {
  const auto other = std::find_if(part.rows.begin(), part.rows.end(),
                                  [](const Row& r) { return r.variant.holds_no_thread(); });
  if (other == part.rows.end()) return std::nullopt;
  std::vector<double> throughput, p99, guarded;
  for (size_t i = 0; i < std::min(row.rounds.size(), other->rounds.size()); ++i) {
    const PhaseResult &mine = row.rounds[i].classes.back()[0], &its = other->rounds[i].classes.back()[0];
    throughput.push_back(mine.answered_per_s / its.answered_per_s);
    p99.push_back(mine.p99_ms / its.p99_ms);
    guarded.push_back(row.rounds[i].classes.front()[0].p99_ms / other->rounds[i].classes.front()[0].p99_ms);
  }
  if (p99.empty()) return std::nullopt;
  Parity parity{bench::SpreadOf(throughput), bench::SpreadOf(p99), bench::SpreadOf(guarded)};
  parity.held = parity.throughput.median >= kParityThroughput && parity.p99.median <= kParityP99;
  return parity;
}

std::optional<Goodput> JudgeOverload(const Part& part, const Row& row, double slo_ms) {
  std::vector<double> ratios, p99;
  for (const Cell& cell : row.rounds) {
    double peak = 0;
    for (const PhaseResult& load : cell.classes[0]) peak = std::max(peak, load.good_per_s);
    if (peak > 0) ratios.push_back(cell.classes[0].back().good_per_s / peak);
    p99.push_back(cell.classes[0].back().answered_p99_ms);
  }
  if (ratios.empty() || part.phases.empty()) return std::nullopt;
  Goodput goodput{bench::SpreadOf(ratios), bench::SpreadOf(p99)};
  goodput.held = goodput.ratio.median >= kGoodputBar && goodput.answered_p99_ms.median <= slo_ms;
  return goodput;
}

uint64_t Faults(const Part& part) {
  uint64_t faults = 0;
  if (part.kind != Part::Kind::kStall) return faults;
  for (const Row& row : part.rows) {
    for (const Cell& cell : row.rounds) {
      faults += cell.classes.front()[kAlone].dropped + cell.classes.front()[kBefore].dropped;
    }
  }
  return faults;
}

void AddPhase(const Cell& from, Cell* to) {
  for (size_t c = 0; c < from.classes.size(); ++c) to->classes[c].push_back(from.classes[c][0]);
  to->refused += from.refused;
  to->late += from.late;
  to->cpus = std::max(to->cpus, from.cpus);
  if (to->generator_note.empty()) to->generator_note = from.generator_note;
}

void Judge(const LoadResult& result, Cell* cell) {
  cell->refused = CountOf(result, "RESOURCE_EXHAUSTED");
  cell->late = CountOf(result, "DEADLINE_EXCEEDED");
  cell->generator_note = absl::StrJoin(result.invalid, "; ");
}

}  // namespace curtail::fences
