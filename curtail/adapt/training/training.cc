// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Where the training stands is a repeat, a load and a slot, and which config has which slot follows
// from these; so the order depends on nothing but the plan and which cells were saturated. That is why a
// checkpoint needs no more than the cells: told again, they lead to the same place.
#include "curtail/adapt/training.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "curtail/adapt/internal/limits.h"
#include "curtail/adapt/internal/median.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

using internal::kMaxCores;
using internal::kMaxRate;
using internal::kMaxUs;

using internal::Median;

std::string Number(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string Name(const Config& config, double load_per_s, int repeat) {
  return Join(config.ToString(), " at ", Number(load_per_s), "/s in repeat ", repeat);
}

absl::Status CheckNumbers(const ProfileCell& cell) {
  const auto within = [](double value, double most) { return value >= 0 && value <= most; };
  const char* wrong = nullptr;
  if (!within(cell.p50_us, kMaxUs)) wrong = "p50_us";
  if (!within(cell.p99_us, kMaxUs) || cell.p99_us < cell.p50_us) wrong = "p99_us";
  if (!within(cell.mean_us, kMaxUs)) wrong = "mean_us";
  if (!within(cell.achieved_per_s, kMaxRate)) wrong = "achieved_per_s";
  if (!within(cell.failed_share, 1)) wrong = "failed_share";
  if (!within(cell.cpu_cores.value_or(0), kMaxCores)) wrong = "cpu_cores";
  if (wrong == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join(Name(cell.config, cell.load_per_s, cell.repeat), " has a ", wrong, " that no measurement gives"));
}

}  // namespace

Training::Training(TrainingPlan plan) : plan_(std::move(plan)) {
  const size_t configs = plan_.configs.size(), loads = plan_.loads.size();
  stops_.assign(static_cast<size_t>(plan_.repeats), std::vector<size_t>(configs, loads));
  measured_.assign(configs, std::vector<std::vector<size_t>>(loads));
}

size_t Training::ConfigAt(size_t slot) const {
  const size_t configs = plan_.configs.size(), repeat = static_cast<size_t>(repeat_);
  // Repeats begin as far from each other as they can.
  const size_t stride = std::max<size_t>(1, configs / static_cast<size_t>(plan_.repeats));
  const size_t first = load_ + repeat * stride;
  const bool backwards = (load_ + repeat) % 2 == 1;
  return (first + (backwards ? configs - slot : slot)) % configs;
}

std::optional<TrainingCell> Training::Next() const {
  if (repeat_ == plan_.repeats) return std::nullopt;
  const size_t config = ConfigAt(slot_);
  const double load = plan_.loads[load_];
  const uint64_t index = static_cast<uint64_t>(repeat_) * plan_.loads.size() + load_;
  return TrainingCell{config,
                      load_,
                      repeat_,
                      plan_.configs[config],
                      load,
                      plan_.CellLength(load),
                      ArrivalsSeed(plan_.seed, index)};
}

absl::Status Training::Tell(const ProfileCell& cell) {
  const std::optional<TrainingCell> next = Next();
  const std::string name = Name(cell.config, cell.load_per_s, cell.repeat);
  if (!next) return absl::InvalidArgumentError(Join(name, " was not asked for: all cells are measured"));
  if (cell.config != next->config || cell.load_per_s != next->load_per_s || cell.repeat != next->repeat) {
    return absl::InvalidArgumentError(
        Join(name, " was not asked for: ", Name(next->config, next->load_per_s, next->repeat), " is next"));
  }
  if (absl::Status status = CheckNumbers(cell); !status.ok()) return status;
  measured_[next->config_index][next->load_index].push_back(cells_.size());
  cells_.push_back(cell);
  if (cell.saturated) stops_[static_cast<size_t>(repeat_)][next->config_index] = load_;
  StepPastStopped();
  return absl::OkStatus();
}

void Training::StepPastStopped() {
  do {
    if (++slot_ < plan_.configs.size()) continue;
    slot_ = 0;
    if (++load_ < plan_.loads.size()) continue;
    load_ = 0;
    ++repeat_;
  } while (repeat_ < plan_.repeats && stops_[static_cast<size_t>(repeat_)][ConfigAt(slot_)] < load_);
}

size_t Training::ExpectedEnd(size_t config) const {
  const size_t loads = plan_.loads.size();
  size_t end = 0;
  for (int repeat = 0; repeat < plan_.repeats && repeat <= repeat_; ++repeat) {
    const size_t stop = stops_[static_cast<size_t>(repeat)][config];
    // A repeat that is under way says nothing until the config has stopped in it.
    if (stop < loads || repeat < repeat_) end = std::max(end, std::min(stop + 1, loads));
  }
  return end > 0 ? end : loads - loads / 3;
}

TrainingProgress Training::Progress() const {
  const size_t configs = plan_.configs.size(), loads = plan_.loads.size();
  TrainingProgress progress{.done = cells_.size()};
  std::vector<Nanos> until = {Nanos::zero()};  // of all cells of a config below a load
  for (double load : plan_.loads) {
    until.push_back(until.back() + plan_.warmup + plan_.between + plan_.CellLength(load));
  }
  std::vector<size_t> from(configs, load_);  // the present repeat
  for (size_t slot = 0; slot < slot_; ++slot) from[ConfigAt(slot)] = load_ + 1;
  for (int repeat = repeat_; repeat < plan_.repeats; ++repeat) {
    for (size_t config = 0; config < configs; ++config) {
      const size_t begin = repeat == repeat_ ? from[config] : 0;
      if (stops_[static_cast<size_t>(repeat)][config] < loads || begin == loads) continue;
      // A config that has not stopped is measured at the next load, whatever was expected.
      const size_t end = std::max(ExpectedEnd(config), begin + 1);
      progress.left_at_most += loads - begin;
      progress.time_left_at_most += until[loads] - until[begin];
      progress.time_left_expected += until[end] - until[begin];
    }
  }
  const size_t all = configs * loads * static_cast<size_t>(plan_.repeats);
  progress.skipped = all - progress.done - progress.left_at_most;
  return progress;
}

TrainingPoint Training::At(size_t config_index, size_t load_index) const {
  TrainingPoint point;
  const std::vector<size_t>& measured = measured_[config_index][load_index];
  if (measured.empty()) {
    const bool stopped = std::any_of(stops_.begin(), stops_.end(), [&](const std::vector<size_t>& stops) {
      return stops[config_index] < load_index;
    });
    if (stopped) point.state = TrainingPoint::State::kStopped;
    return point;
  }
  std::vector<double> p99_us;
  size_t saturated = 0;
  for (size_t index : measured) {
    p99_us.push_back(cells_[index].p99_us);
    saturated += cells_[index].saturated;
  }
  point.measured = static_cast<int>(measured.size());
  point.p99_us = Median(std::move(p99_us));
  point.state =
      2 * saturated >= measured.size() ? TrainingPoint::State::kSaturated : TrainingPoint::State::kMeasured;
  return point;
}

Profile Training::MakeProfile(std::string_view version, const MachineFingerprint& machine,
                              std::string_view created) const {
  Profile profile{.service = plan_.service,
                  .curtail_version = std::string(version),
                  .machine = machine,
                  .seed = plan_.seed,
                  .created = std::string(created)};
  profile.cells = cells_;
  double highest = 0;
  for (const ProfileCell& cell : cells_) highest = std::max(highest, cell.load_per_s);
  for (double load : plan_.loads) {
    if (load <= highest) profile.loads.push_back(load);
  }
  Summarize(profile);
  return profile;
}

}  // namespace curtail
