// SPDX-License-Identifier: Apache-2.0
//
// training_run.h - carries a training out on a running server, with a live grid of what is known so far.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "curtail/adapt/training.h"
#include "curtail/term/console.h"
#include "tools/curtail/train/subject.h"

namespace curtail::tool {

// Takes the configs out of `configs` under which the server cannot run. Returns what was taken out, for people; empty
// if nothing was. Errors: those of calling the admin interface.
absl::StatusOr<std::string> LeaveOutRefused(Subject& subject, std::vector<Config>& configs);

// Measures what `training` asks for until it is done. `keep` hears each cell at once; its error ends the training.
// Errors: CANCELLED when interrupted, and those of Subject::Measure().
absl::Status RunTraining(Subject& subject, Training& training, Console& console,
                         const std::function<absl::Status(const ProfileCell&)>& keep);

// p99 in ms by config (rows) and load (columns); "sat" where a config did not keep up, "-" beyond that.
std::string TrainingGrid(const Training& training);

// Conclusions from a profile, a line each: which config is chosen from which load on, and how many cells are unstable.
std::string ProfileSummary(const Profile& profile);

// "0.5 s", "90 s" or "12 min".
std::string AboutText(Nanos t);

}  // namespace curtail::tool
