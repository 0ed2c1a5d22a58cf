// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "output.h"
#include "target.h"
#include "truth.h"
#include "work.h"

namespace curtail::bench {
namespace {

using Program = Generator::Program;
using std::chrono::milliseconds;

// A service, and the users whose latencies are the truth.
struct Scenario {
  std::string name;
  TargetOptions target;
  TimedLoad users;    // open loop
  TimedLoad waiting;  // the same service in a closed loop
  bool fifo = false;
};

std::vector<Scenario> Scenarios(const Options& options) {
  const double seconds = options.quick ? 1 : 10;
  // 20 in flight on average. A closed loop of 16 sends 320 a second.
  Scenario exponential{
      .name = "exponential",
      .target = {.workers = 400, .service = milliseconds(50), .exponential = true, .seed = options.seed},
      .users = {{Load::Kind::kOpen, 400}, seconds},
      .waiting = {{Load::Kind::kClosed, 16}, seconds}};
  // The k-th request after the one that stalls takes (201 - k) ms, so of 1000 users 200 see it, and the 100th of
  // them, the p90, waits for 101 ms. 100 are due while the server stands still, more than some generators will have
  // in flight.
  Scenario stall{.name = "stall",
                 .target = {.service = milliseconds(1), .stall_at = 300, .stall = milliseconds(200)},
                 .users = {{Load::Kind::kOpen, 500}, 2},
                 .waiting = {{Load::Kind::kClosed, 1}, 2},
                 .fifo = true};
  return {exponential, stall};
}

struct TruthContestant {
  Generator generator;
  bool open = true;
  bool one_at_a_time = false;  // too slow for a service where many run at once
};

std::vector<TruthContestant> TruthContestants() {
  // Equal distances, as those that the others keep.
  return {{{"curtail load", Program::kCurtail, {"--arrivals", "constant"}}, true},
          {{"ghz --rps", Program::kGhz, {}}, true},
          {{"ghz --rps --async", Program::kGhz, {"--async"}}, true},
          {{"h2load --rps", Program::kH2load, {}}, true},
          {{"h2load --rps -m 1", Program::kH2load, {"-m", "1"}}, true, true},
          {{"h2load", Program::kH2load, {}}, false}};
}

// The p99 of how late requests began that were due every `gap`; none is early by the start that is chosen.
double LateP99Ms(const std::vector<ServedRequest>& log, Nanos gap) {
  std::vector<Nanos> late;
  for (size_t i = 0; i < log.size(); ++i) {
    late.push_back(log[i].began.time_since_epoch() - gap * static_cast<int64_t>(i));
  }
  if (late.empty()) return 0;
  const Nanos first = *std::min_element(late.begin(), late.end());
  return static_cast<double>((PercentileOf(late, 99) - first).count()) / 1e6;
}

TruthRow MeasureOne(const Options& options, const Scenario& scenario, const TruthContestant& contestant,
                    Target& target) {
  const TimedLoad& load = contestant.open ? scenario.users : scenario.waiting;
  TruthRow row{.scenario = scenario.name, .generator = contestant.generator.name, .load = load.load.Name()};
  target.TakeLog();
  const absl::StatusOr<GeneratorRun> run =
      Observe(options.tools, contestant.generator, target.address(), load);
  if (!run.ok()) {
    row.error = std::string(run.status().message());
    return row;
  }
  row.said = *run;
  const std::vector<ServedRequest> log = LastOf(target.TakeLog(), run->answered);
  const Nanos gap(1'000'000'000 / scenario.users.load.number);
  row.truth = PercentilesOf(scenario.fifo ? FifoLatencies(gap, ServiceTimes(log), OccupiedTimes(log))
                                          : ServiceTimes(log));
  if (contestant.open && !scenario.fifo) row.late_p99_ms = LateP99Ms(log, gap);
  return row;
}

}  // namespace

std::vector<TruthRow> MeasureTruth(const Options& options, Session& session) {
  std::vector<TruthRow> rows;
  for (const Scenario& scenario : Scenarios(options)) {
    const absl::StatusOr<std::unique_ptr<Target>> target = Target::Start(scenario.target);
    for (const TruthContestant& contestant : TruthContestants()) {
      if (!target.ok()) {
        rows.push_back({.scenario = scenario.name, .error = std::string(target.status().message())});
        break;
      }
      if (!TakesPart(options, contestant.generator.program)) continue;
      if (contestant.one_at_a_time && !scenario.fifo) continue;
      if (session.stop()) return rows;
      session.Progress(absl::StrCat(scenario.name, ": ", contestant.generator.name));
      TruthRow row = MeasureOne(options, scenario, contestant, **target);
      if (!session.stop()) rows.push_back(std::move(row));
    }
  }
  return rows;
}

bool AllWell(const std::vector<TruthRow>& rows) {
  return !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const TruthRow& row) { return row.error.empty(); });
}

}  // namespace curtail::bench
