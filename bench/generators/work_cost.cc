// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/common/round.h"
#include "bench/common/spread.h"
#include "target.h"
#include "work.h"

namespace curtail::bench {
namespace {

using Program = Generator::Program;

constexpr double kMostOfGhz = 1.0 / 3;
constexpr double kMostOfH2load = 1.5;

struct CostContestant {
  Generator generator;
  bool only_open = false;
};

std::vector<CostContestant> CostContestants() {
  return {{{"curtail load", Program::kCurtail, {}}},
          {{"curtail load --spin 0us", Program::kCurtail, {"--spin", "0us"}}, true},
          {{"ghz", Program::kGhz, {}}},
          {{"ghz --async", Program::kGhz, {"--async"}}, true},
          {{"h2load", Program::kH2load, {}}}};
}

// One generator's turn in a round.
void TakeTurn(const Options& options, const std::string& address, const CostContestant& contestant,
              const Load& load, const GeneratorRun& start, CostResults* results) {
  const std::string& name = contestant.generator.name;
  CostCell& cell = results->cells[load.Name()][name];
  const absl::StatusOr<GeneratorRun> run =
      Measure(options.tools, contestant.generator, address, {load, options.seconds});
  if (!run.ok()) {
    if (cell.error.empty()) cell.error = std::string(run.status().message());
    return;
  }
  const double requests = static_cast<double>(run->answered) - static_cast<double>(start.answered);
  if (requests < 1) {
    if (cell.error.empty()) cell.error = "no more requests than in a run of one; raise --seconds";
    return;
  }
  cell.cpu_us.push_back((run->cpu_us - start.cpu_us) / requests);
  cell.rate_per_s.push_back(run->rate_per_s);
  cell.void_rounds += run->valid ? 0 : 1;
}

// The starts of one round; those that fail are missing.
std::map<std::string, GeneratorRun> MeasureStarts(const Options& options, const std::string& address,
                                                  const std::vector<CostContestant>& contestants,
                                                  CostResults* results) {
  std::map<std::string, GeneratorRun> starts;
  for (const CostContestant& one : contestants) {
    const absl::StatusOr<GeneratorRun> start = MeasureStart(options.tools, one.generator, address);
    if (!start.ok()) {
      for (const Load& load : options.loads) {
        if (load.open() || !one.only_open) {
          results->cells[load.Name()][one.generator.name].error = std::string(start.status().message());
        }
      }
      continue;
    }
    starts[one.generator.name] = *start;
    results->start_ms[one.generator.name].push_back(start->cpu_us / 1e3);
  }
  return starts;
}

// The cheapest form of a program under a load: those whose names begin with `prefix`.
std::optional<double> Cheapest(const std::map<std::string, CostCell>& cells, const std::string& prefix) {
  std::optional<double> least;
  for (const auto& [name, cell] : cells) {
    if (!absl::StartsWith(name, prefix) || cell.cpu_us.empty()) continue;
    const double median = SpreadOf(cell.cpu_us).median;
    if (!least || median < *least) least = median;
  }
  return least;
}

}  // namespace

absl::StatusOr<CostResults> MeasureCost(const Options& options, Session& session) {
  const absl::StatusOr<std::unique_ptr<Target>> target = Target::Start({});
  if (!target.ok()) return target.status();
  const std::string address = (*target)->address();
  std::vector<CostContestant> contestants = CostContestants();
  std::erase_if(contestants,
                [&](const CostContestant& one) { return !TakesPart(options, one.generator.program); });
  CostResults results;
  for (const CostContestant& one : contestants) results.generators.push_back(one.generator.name);
  for (const Load& load : options.loads) results.loads.push_back(load.Name());
  std::map<std::string, GeneratorRun> starts;  // of the round
  const RoundPlan plan{.rounds = options.rounds,
                       .loads = options.loads.size(),
                       .subjects = contestants.size(),
                       .stop = &session.stop()};
  const absl::Status ended = RunRounds(plan, [&](const Turn& turn) {
    const CostContestant& one = contestants[turn.subject];
    const Load& load = options.loads[turn.load];
    session.Progress(absl::StrCat(RoundText(plan, turn), load.Name(), "  ", one.generator.name));
    if (turn.load == 0 && turn.subject == 0) starts = MeasureStarts(options, address, contestants, &results);
    const auto start = starts.find(one.generator.name);
    if (start == starts.end() || (one.only_open && !load.open()) || session.stop()) return absl::OkStatus();
    TakeTurn(options, address, one, load, start->second, &results);
    return absl::OkStatus();
  });
  if (!ended.ok()) session.Note("interrupted: the report is partial");
  return results;
}

std::vector<Bar> BarsOf(const CostResults& results) {
  std::vector<Bar> bars;
  for (const std::string& load : results.loads) {
    const auto cells = results.cells.find(load);
    if (cells == results.cells.end()) continue;
    for (const auto& [name, cell] : cells->second) {
      if (!absl::StartsWith(name, "curtail") || cell.cpu_us.empty()) continue;
      for (const auto& [other, limit] : {std::pair("ghz", kMostOfGhz), std::pair("h2load", kMostOfH2load)}) {
        const std::optional<double> least = Cheapest(cells->second, other);
        if (least) bars.push_back({load, name, other, SpreadOf(cell.cpu_us).median / *least, limit});
      }
    }
  }
  return bars;
}

bool AllWell(const CostResults& results) {
  if (results.cells.empty()) return false;
  for (const auto& [load, cells] : results.cells) {
    for (const auto& [name, cell] : cells) {
      if (!cell.error.empty()) return false;
    }
  }
  return true;
}

}  // namespace curtail::bench
