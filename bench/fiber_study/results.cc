// SPDX-License-Identifier: Apache-2.0
#include "results.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/base/clock.h"

namespace curtail::study {
namespace {

// Below this share of the offered requests answered in time a variant counts as saturated.
constexpr double kSustainedShare = 0.97;

// The highest throughput of a round in any closed loop; nothing if one was not measured.
std::optional<double> RoundPeak(const Results& results, const Row& row, size_t round) {
  double peak = 0;
  for (size_t l = 0; l < results.loads.size(); ++l) {
    if (!results.loads[l].closed()) continue;
    if (row.cells[l].size() <= round) return std::nullopt;
    peak = std::max(peak, row.cells[l][round].achieved_per_s);
  }
  return peak > 0 ? std::optional(peak) : std::nullopt;
}

std::optional<size_t> LowestOpenLoad(const Results& results) {
  std::optional<size_t> lowest;
  for (size_t l = 0; l < results.loads.size(); ++l) {
    if (results.loads[l].closed()) continue;
    if (!lowest || results.loads[l].rate_per_s < results.loads[*lowest].rate_per_s) lowest = l;
  }
  return lowest;
}

std::optional<Spread> PeakRatio(const Results& results, const Row& row) {
  std::vector<double> ratios;
  for (size_t round = 0; round < static_cast<size_t>(results.rounds); ++round) {
    const auto mine = RoundPeak(results, row, round);
    const auto base = RoundPeak(results, results.rows.front(), round);
    if (mine && base) ratios.push_back(*mine / *base);
  }
  return bench::SpreadIfAny(std::move(ratios));
}

std::optional<Spread> LowP99Ratio(const Results& results, const Row& row) {
  const std::optional<size_t> load = LowestOpenLoad(results);
  if (!load) return std::nullopt;
  const std::vector<Measurement>& mine = row.cells[*load];
  const std::vector<Measurement>& base = results.rows.front().cells[*load];
  std::vector<double> ratios;
  for (size_t round = 0; round < std::min(mine.size(), base.size()); ++round) {
    if (base[round].p99_us > 0) ratios.push_back(mine[round].p99_us / base[round].p99_us);
  }
  return bench::SpreadIfAny(std::move(ratios));
}

}  // namespace

std::string Load::name() const {
  return closed() ? absl::StrCat(outstanding, " under way")
                  : absl::StrFormat("%.2g x (%.0f/s)", share, rate_per_s);
}

Measurement Evaluate(const LoadResult& result, const Consumed& before, const Consumed& after) {
  Measurement m;
  m.offered_per_s = result.plan.closed() ? result.good_per_s : result.scheduled_per_s;
  m.achieved_per_s = result.good_per_s;
  m.requests = result.ok + result.failed;
  m.failed = result.failed;
  m.p50_us = InMicros(result.all.Percentile(50));
  m.p99_us = InMicros(result.all.Percentile(99));
  const auto requests = static_cast<double>(std::max<uint64_t>(1, after.requests - before.requests));
  m.context_switches = static_cast<double>(after.switches - before.switches) / requests;
  m.cpu_us = static_cast<double>(after.cpu_us - before.cpu_us) / requests;
  m.saturated = !result.plan.closed() && m.achieved_per_s < kSustainedShare * m.offered_per_s;
  m.generator_note = absl::StrJoin(result.invalid, "; ");
  return m;
}

std::vector<Comparison> Compare(const Results& results) {
  std::vector<Comparison> all;
  for (size_t i = 1; i < results.rows.size(); ++i) {
    const Row& row = results.rows[i];
    all.push_back(
        {row.variant.name(), row.variant.fibers(), PeakRatio(results, row), LowP99Ratio(results, row)});
  }
  return all;
}

uint64_t Faults(const Results& results) {
  uint64_t faults = 0;
  for (const Row& row : results.rows) {
    for (size_t l = 0; l < row.cells.size(); ++l) {
      if (!results.loads[l].must_not_fail()) continue;
      for (const Measurement& round : row.cells[l]) faults += round.failed;
    }
  }
  return faults;
}

}  // namespace curtail::study
