// SPDX-License-Identifier: Apache-2.0
//
// training.h - the order of measurements of a training, the profile that follows, and its
// checkpoint.
//
// A Training gives the next measurement and takes its result; at any time it makes a profile of the
// results. It knows no clock, file or server: `curtail train` sends the requests. `curtail train`
// appends each measurement to a checkpoint, from which an interrupted training continues.
//
// The method is muTune's (section 4) with three changes. The configs take turns at each load
// instead of one running all its loads. A config that saturates at a load is not measured at higher
// ones. Low loads get longer cells. docs/design/adaptation.md explains the terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/adapt/machine.h"
#include "curtail/adapt/profile.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail {

// The configs, loads and times of a training.
struct TrainingPlan {
  std::string service;  // its full gRPC name
  std::vector<Config> configs;
  std::vector<double> loads;  // ascending, in requests a second
  int repeats = 3;
  Nanos cell{std::chrono::seconds(2)};  // the measured part of a cell, at least
  Nanos warmup{std::chrono::milliseconds(500)};
  // The other time of a cell: the switch, and the wait for the last replies. Enters the estimates
  // only.
  Nanos between{std::chrono::milliseconds(100)};
  // A p99 of few requests is uncertain. Cells at low loads last until this many are due, but at
  // most max_stretch x `cell`.
  double wanted_requests = 300;
  double max_stretch = 4;
  uint64_t seed = 1;
  std::string workload;  // the requests, in words; a training is not resumed with another workload

  // The measured part of a cell at this load.
  Nanos CellLength(double load_per_s) const;
  // The time of all cells, with warm-up and the time between them.
  Nanos MostTime() const;
  // Presumes that no config gets to the upper third of the loads (rounded down), because each
  // saturates before. A ladder that reaches beyond the best config is about like that.
  Nanos ExpectedTime() const;
  friend bool operator==(const TrainingPlan&, const TrainingPlan&) = default;
};

// Errors: INVALID_ARGUMENT with the part of the plan that cannot be carried out or kept in a
// profile. Such are: no configs, loads that do not ascend, fewer than 3 repeats (too few for a
// spread), times that are not positive, ...
absl::Status CheckPlan(const TrainingPlan& plan);

// Plans without service and workload, for a machine with that many CPUs. The full one is expected
// to take half an hour; the quick one takes three minutes at most. Both measure "auto", with which
// servers begin, and not FIB1, which is "auto" without stand-ins. Remove the configs under which
// the service cannot run.
TrainingPlan DefaultTraining(int cpus);
TrainingPlan QuickTraining(int cpus);
std::vector<Config> DefaultTrainingConfigs(int cpus, bool quick);
// 50/s to 13,000/s in half octaves; quick: 100/s to 13,000/s in octaves.
std::vector<double> DefaultLoads(bool quick);
// `rungs` loads from `from_per_s` up, each 2^(1/per_octave) times the one before, rounded to two
// significant digits. REQUIRES: from_per_s > 0, per_octave from 1 to 12.
std::vector<double> LoadLadder(double from_per_s, int per_octave, int rungs);

// True if a config did not sustain the load: fewer than 97 % of the requests were answered, or more
// than 1 % failed. Its latency then grows with the length of the run and means nothing.
// `offered_per_s` is the rate that was due in the measured part, not the requested rate: of 100
// Poisson arrivals three fewer are chance. `achieved_per_s` is the rate of good replies in the same
// time, those to earlier requests included.
bool IsSaturated(double offered_per_s, double achieved_per_s, double failed_share);

// The seed of the index-th arrivals under a training's seed; no two indices below 2^33 share one.
uint64_t ArrivalsSeed(uint64_t seed, uint64_t index);

// One measurement to be made.
struct TrainingCell {
  size_t config_index = 0;
  size_t load_index = 0;
  int repeat = 0;
  Config config;
  double load_per_s = 0;
  Nanos length{0};  // the measured part, after the plan's warm-up
  // Of the arrivals: one for all configs of a load and repeat, and for no others
  uint64_t seed = 0;
};

struct TrainingProgress {
  size_t done = 0;
  size_t skipped = 0;       // beyond the loads that their config sustained
  size_t left_at_most = 0;  // done + skipped + left_at_most are all cells of the plan
  Nanos time_left_at_most{0};
  // Presumes that each config saturates where it did in earlier repeats, or else as ExpectedTime().
  Nanos time_left_expected{0};
};

// The results of a config at a load.
struct TrainingPoint {
  enum class State {
    kUntouched,
    kMeasured,
    kSaturated,  // in at least half of the repeats that measured it
    kStopped,    // not measured, because the config saturated at a lower load
  };
  State state = State::kUntouched;
  int measured = 0;   // repeats
  double p99_us = 0;  // their median
};

// A Training orders the cells of a plan and collects the results. Thread-compatible.
//
// Order: repeats are outermost; in a repeat the loads ascend; at a load the configs take turns.
// Each turn begins with another config and goes in the other direction, so that a disturbance of
// some seconds falls on neighbours alike. All get the same arrivals.
//
// Early stop: a config that saturates at a load is not measured at higher ones in the same repeat;
// the next repeat measures it again. The repeats that measured a point decide its saturation in the
// profile, and half of them are enough (Summarize()). With three repeats that is the majority of
// all, wherever they stopped. A config counts as saturated from the second lowest of the three
// loads at which it saturated.
//
// One hiccup therefore marks a point as unstable, leaves two repeats for the loads above, and hides
// nothing. Two in different repeats look like the truth. With more repeats the rule is the same as
// long as a hiccup ended no more than one of them.
class Training {
 public:
  // REQUIRES: CheckPlan(plan) is OK.
  explicit Training(TrainingPlan plan);

  // The next measurement; none when all are done.
  std::optional<TrainingCell> Next() const;
  // The result of that measurement. Errors: INVALID_ARGUMENT, with no effect, if it is of another
  // config, load or repeat, or has numbers that no profile can hold.
  absl::Status Tell(const ProfileCell& cell);

  TrainingProgress Progress() const;
  // REQUIRES: indices into the plan's configs and loads.
  TrainingPoint At(size_t config_index, size_t load_index) const;
  // The profile of the measurements so far. Loads at the upper end without a measurement are left
  // out. REQUIRES: at least one cell was told, if the profile is to be stored. `created` as in
  // "2026-11-22T08:30:00Z".
  Profile MakeProfile(std::string_view version, const MachineFingerprint& machine,
                      std::string_view created) const;

  const TrainingPlan& plan() const { return plan_; }
  // In the order in which they were told.
  const std::vector<ProfileCell>& cells() const { return cells_; }

 private:
  size_t ConfigAt(size_t slot) const;
  // To the next cell whose config has not stopped.
  void StepPastStopped();
  // The first load at which the config is not expected to be measured in a repeat to come.
  size_t ExpectedEnd(size_t config) const;

  // Immutable after construction.
  TrainingPlan plan_;

  std::vector<ProfileCell> cells_;
  // stops_[repeat][config]: the load at which it was saturated, or loads.size().
  std::vector<std::vector<size_t>> stops_;
  // measured_[config][load]: indices into cells_.
  std::vector<std::vector<std::vector<size_t>>> measured_;
  // The next cell: the slot-th config of this load and repeat.
  int repeat_ = 0;
  size_t load_ = 0;
  size_t slot_ = 0;
};

// A checkpoint is a text of JSON lines. A header has the plan, machine and version; a line for each
// cell follows, in the order of Tell(). Both functions give a line with its newline.
// REQUIRES: CheckPlan(plan) is OK.
std::string CheckpointHeader(const TrainingPlan& plan, const MachineFingerprint& machine,
                             std::string_view version);
std::string CheckpointLine(const ProfileCell& cell);

struct Checkpoint {
  std::vector<ProfileCell> cells;  // to be told to a Training of the same plan, in this order
  // The length of the whole lines. A file must be cut to that before a line is appended.
  size_t whole_bytes = 0;
};
// Takes any bytes. A last line without its newline was cut off by a crash, and is dropped.
// REQUIRES: CheckPlan(plan) is OK.
// Errors: INVALID_ARGUMENT that names the line: not a cell, or not the one that the plan measures
// there. FAILED_PRECONDITION that names every field in which the plan, machine or version differs.
absl::StatusOr<Checkpoint> ReadCheckpoint(std::string_view text, const TrainingPlan& plan,
                                          const MachineFingerprint& machine, std::string_view version);

}  // namespace curtail
