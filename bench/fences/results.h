// SPDX-License-Identifier: Apache-2.0
//
// results.h - what the study measured, and what follows from it. Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/machine.h"
#include "bench/common/report.h"
#include "bench/common/spread.h"
#include "bench/common/variant.h"
#include "bench/fences/mix.h"
#include "curtail/load/report/result.h"

namespace curtail::fences {

using bench::Spread;
using bench::Variant;

// One variant in one round.
struct Cell {
  std::vector<std::vector<PhaseResult>> classes;  // by class and phase
  uint64_t refused = 0;                           // RESOURCE_EXHAUSTED, of all classes
  uint64_t late = 0;                              // DEADLINE_EXCEEDED
  double cpus = 0;             // that all processes and the generator together kept busy, on average
  std::string generator_note;  // why the load generator was not what it should be; empty when it was
};

struct Row {
  Variant variant;
  std::vector<Cell> rounds;
};

// One table of the study: variants under the same arrivals.
struct Part {
  enum class Kind {
    kStall,     // phases alone, before, during, after
    kTrace,     // one phase; the last class is all requests
    kOverload,  // one class; the phases are loads
  };
  Kind kind = Kind::kStall;
  std::string name;   // for --only
  std::string title;  // one sentence
  std::vector<std::string> classes;
  std::vector<std::string> phases;
  std::vector<double> rates_per_s;  // of the classes, at their peak
  double phase_s = 0;
  // A guarded class that takes some microseconds alone may take so much more, whatever the ratio.
  double slack_ms = 0;
  double slo_ms = 0;  // of a part with loads
  std::vector<Row> rows;
};

struct Results : bench::CommonFlags {
  bench::Machine machine;
  double phase_s = 1.2;
  std::vector<Part> parts;
  bool interrupted = false;
};

// A number of one class in one phase, of each round in which a request of the class was due.
template <class Number>
std::vector<double> Values(const Row& row, size_t of_class, size_t phase, Number PhaseResult::* field) {
  std::vector<double> values;
  for (const Cell& cell : row.rounds) {
    const PhaseResult& result = cell.classes[of_class][phase];
    if (result.due > 0) values.push_back(static_cast<double>(result.*field));
  }
  return values;
}

// The p99 of a class in one phase over that in another, round by round.
std::optional<Spread> P99Ratio(const Row& row, size_t of_class, size_t phase, size_t to_phase);

// The rounds of a run in the order of the phases of a part that stalls a leaf.
enum StallPhase : size_t { kAlone, kBefore, kDuring, kAfter, kStallPhases };

// The bars that a part with a slow leaf is held to: the p99 of the guarded class during the stall over its value alone.
inline constexpr double kIsolatedBar = 1.15;
inline constexpr double kCollapsedBar = 10;

// A row against its bar, by its median ratio: at most kIsolatedBar for fences and models that hold no thread, at least
// kCollapsedBar for the others.
struct Verdict {
  Spread ratio;
  bool isolates = false;  // which bar
  bool held = false;
};
std::optional<Verdict> JudgeStall(const Part& part, const Row& row);

// A row of a trace against the first variant that holds no thread: its throughput, and its p99, of all requests and of
// the guarded class.
inline constexpr double kParityThroughput = 0.9;
inline constexpr double kParityP99 = 1.1;
struct Parity {
  Spread throughput, p99, guarded_p99;
  bool held = false;  // the first two, by their medians
};
// Nothing without such a variant, or without rounds of both.
std::optional<Parity> JudgeTrace(const Part& part, const Row& row);

// Goodput and the tail of what is accepted at the highest load, over the highest goodput of the row at any load.
inline constexpr double kGoodputBar = 0.9;
struct Goodput {
  Spread ratio;
  Spread answered_p99_ms;
  bool held = false;  // the ratio, by its median, and the p99, which is at most `slo_ms`
};
std::optional<Goodput> JudgeOverload(const Part& part, const Row& row, double slo_ms);

// Requests of the guarded class, the first, that failed while no leaf was slow and no other class was overloaded.
uint64_t Faults(const Part& part);

// Adds the only phase of `from` to those of `to`, of the same classes.
void AddPhase(const Cell& from, Cell* to);

// Evaluates what is not of a phase.
void Judge(const LoadResult& result, Cell* cell);

// A table and a verdict for each part that was measured.
bench::Report ReportOf(const Results& results);

}  // namespace curtail::fences
