// SPDX-License-Identifier: Apache-2.0
//
// The plan of a training: what it may be, what it is by default, and how long it takes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>

#include "absl/strings/str_cat.h"
#include "curtail/adapt/internal/limits.h"
#include "curtail/adapt/training.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/mix.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

using internal::kMaxCells;
using internal::kMaxConfigs;
using internal::kMaxLoads;
using internal::kMaxRate;
using internal::kMaxString;
using internal::kMinRate;

constexpr int kMaxRepeats = 1000;

constexpr int kMinRepeats = 3;
// These keep the sum over all cells below 2^63 nanoseconds.
constexpr Nanos kMaxTime = std::chrono::minutes(10);
constexpr double kMaxStretch = 20;

constexpr double kSustainedShare = 0.97;
constexpr double kFailedShare = 0.01;

// The pools that muTune found best: 50 workers in synchronous models, 4 threads in asynchronous
// ones.
constexpr int kPaperSyncWorkers = 50;
constexpr int kPaperAsyncThreads = 4;
constexpr int kMaxInlineThreads = 64;

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(Join("the plan ", what)); }

absl::Status CheckText(const char* name, const std::string& text) {
  if (text.size() > kMaxString) return Bad(Join("has a ", name, " of more than ", kMaxString, " bytes"));
  try {
    (void)internal::Json(text).dump();
  } catch (const internal::Json::exception&) {
    return Bad(Join("has a ", name, " that is not UTF-8"));
  }
  return absl::OkStatus();
}

absl::Status CheckConfigs(const TrainingPlan& plan) {
  if (plan.configs.empty()) return Bad("has no configs; name one at least");
  if (plan.configs.size() > kMaxConfigs) return Bad(Join("has more than ", kMaxConfigs, " configs"));
  std::set<std::string> seen;
  for (const Config& config : plan.configs) {
    const std::string text = config.ToString();
    if (const absl::StatusOr<Config> again = Config::Parse(text); !again.ok() || *again != config) {
      return Bad(Join("has ", text, ", which is not a config"));
    }
    if (!seen.insert(text).second) return Bad(Join("has the config ", text, " twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckLoads(const TrainingPlan& plan) {
  if (plan.loads.empty()) return Bad("has no loads; name one at least");
  if (plan.loads.size() > kMaxLoads) return Bad(Join("has more than ", kMaxLoads, " loads"));
  double before = 0;
  for (double load : plan.loads) {
    if (!(load >= kMinRate && load <= kMaxRate)) {
      return Bad(absl::StrCat("has a load of ", load, "/s; it must be from ", kMinRate, " to ", kMaxRate));
    }
    if (load <= before) {
      return Bad(absl::StrCat("has the load ", load, "/s after ", before, "/s; loads must ascend"));
    }
    before = load;
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const TrainingPlan& plan) {
  if (plan.cell <= Nanos::zero() || plan.cell > kMaxTime) {
    return Bad("has cells that are not longer than nothing and up to 10 minutes");
  }
  if (plan.warmup <= Nanos::zero() || plan.warmup > kMaxTime) {
    return Bad("has a warm-up that is not longer than nothing and up to 10 minutes");
  }
  if (plan.between < Nanos::zero() || plan.between > kMaxTime) {
    return Bad("has a time between cells that is not from 0 to 10 minutes");
  }
  if (!(plan.wanted_requests >= 0 && plan.wanted_requests <= kMaxRate)) {
    return Bad("has wanted_requests that are negative or beyond reason; 0 stretches no cell");
  }
  if (!(plan.max_stretch >= 1 && plan.max_stretch <= kMaxStretch)) {
    return Bad(
        absl::StrCat("has a max_stretch of ", plan.max_stretch, "; it must be from 1 to ", kMaxStretch));
  }
  return absl::OkStatus();
}

Nanos TimeOf(const TrainingPlan& plan, std::span<const double> loads) {
  Nanos once{0};
  for (double load : loads) once += plan.warmup + plan.between + plan.CellLength(load);
  return once * static_cast<int64_t>(plan.configs.size()) * plan.repeats;
}

double TwoDigits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  // Divided rather than multiplied below one, as 0.1 is no double.
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / std::round(1 / unit);
}

}  // namespace

Nanos TrainingPlan::CellLength(double load_per_s) const {
  const double shortest = static_cast<double>(cell.count());
  const double wanted = wanted_requests / load_per_s * 1e9;
  return Nanos(std::llround(std::clamp(wanted, shortest, max_stretch * shortest)));
}

Nanos TrainingPlan::MostTime() const { return TimeOf(*this, loads); }

Nanos TrainingPlan::ExpectedTime() const {
  return TimeOf(*this, std::span(loads).first(loads.size() - loads.size() / 3));
}

absl::Status CheckPlan(const TrainingPlan& plan) {
  if (plan.service.empty()) return Bad("names no service");
  for (const absl::Status& status : {CheckText("service", plan.service), CheckText("workload", plan.workload),
                                     CheckConfigs(plan), CheckLoads(plan), CheckTimes(plan)}) {
    if (!status.ok()) return status;
  }
  if (plan.repeats < kMinRepeats || plan.repeats > kMaxRepeats) {
    return Bad(Join("has ", plan.repeats, " repeats; fewer than ", kMinRepeats,
                    " tell no spread, and a profile holds ", kMaxRepeats, " at most"));
  }
  const size_t cells = plan.configs.size() * plan.loads.size() * static_cast<size_t>(plan.repeats);
  if (cells <= kMaxCells) return absl::OkStatus();
  return Bad(Join("has ", cells, " cells; a profile holds ", kMaxCells, " at most"));
}

TrainingPlan DefaultTraining(int cpus) {
  return {.configs = DefaultTrainingConfigs(cpus, false),
          .loads = DefaultLoads(false),
          .cell = std::chrono::milliseconds(2400)};
}

TrainingPlan QuickTraining(int cpus) {
  return {.configs = DefaultTrainingConfigs(cpus, true),
          .loads = DefaultLoads(true),
          .cell = std::chrono::milliseconds(650),
          .warmup = std::chrono::milliseconds(200),
          .wanted_requests = 200};
}

std::vector<Config> DefaultTrainingConfigs(int cpus, bool quick) {
  cpus = std::clamp(cpus, 1, kMaxInlineThreads);
  constexpr Model kSib{}, kSip{.reception = Reception::kPoll}, kSdb{.execution = Execution::kDispatch};
  constexpr Model kSdp{Waiting::kSync, Execution::kDispatch, Reception::kPoll};
  constexpr Model kFdb{Waiting::kFiber, Execution::kDispatch};
  constexpr Model kFip{.waiting = Waiting::kFiber, .reception = Reception::kPoll};
  constexpr Model kAib{.waiting = Waiting::kAsync}, kAdb{Waiting::kAsync, Execution::kDispatch};
  constexpr Model kAip{.waiting = Waiting::kAsync, .reception = Reception::kPoll};
  std::vector<Config> configs = {{kSib, 1},      {kSip, 1}, {kSdb, 1, 16}, {kSdb, 1, kPaperSyncWorkers},
                                 Config::Auto(), {kFip, 1}};
  if (!quick) {
    const int inline_threads = std::min(8 * cpus, kMaxInlineThreads);
    configs.insert(configs.end(), {{kSib, inline_threads},
                                   {kSdb, 1, 4},
                                   {kSdp, 1, 16},
                                   {kFdb, 1, cpus},
                                   {kAib, 1, 0, 1},
                                   {kAip, 1, 0, 1},
                                   {kAdb, 1, 2, 2}});
    configs.push_back({kAdb, 1, kPaperAsyncThreads, kPaperAsyncThreads});
  }
  // A poller on the only CPU takes it from the work.
  if (cpus == 1)
    std::erase_if(configs, [](const Config& c) { return c.model.reception == Reception::kPoll; });
  return configs;
}

std::vector<double> DefaultLoads(bool quick) { return quick ? LoadLadder(100, 1, 8) : LoadLadder(50, 2, 17); }

std::vector<double> LoadLadder(double from_per_s, int per_octave, int rungs) {
  std::vector<double> loads;
  for (int i = 0; i < rungs; ++i) loads.push_back(TwoDigits(from_per_s * std::exp2(1.0 * i / per_octave)));
  return loads;
}

bool IsSaturated(double offered_per_s, double achieved_per_s, double failed_share) {
  // Written so that what is no number counts as saturated.
  return !(achieved_per_s >= kSustainedShare * offered_per_s && failed_share <= kFailedShare);
}

uint64_t ArrivalsSeed(uint64_t seed, uint64_t index) { return Scramble(Mix(seed) + index); }

}  // namespace curtail
