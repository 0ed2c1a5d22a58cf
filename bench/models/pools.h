// SPDX-License-Identifier: Apache-2.0
//
// pools.h - which pool sizes are tried for each model, and which of them is its best. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "curtail/exec/config.h"

namespace curtail::models {

// "SDB".
std::string ModelName(const Model& model);

// The twelve models in the order of the paper: S, A, F; in-line before dispatch, block before poll.
std::vector<Model> AllModels();

// Pool sizes for each of the twelve models that make sense on `cpus` CPUs, smallest first. A thread of an S
// model waits with its request, so S pools must be as large as the requests under way (the paper went up to
// 50); A and F pools only as large as the CPUs can use (the paper's best were 4 or fewer). `few`: at most
// two a model.
std::vector<Config> DefaultCandidates(int cpus, bool few);

// One config tried.
struct Candidate {
  Config config;
  double saturation_per_s = 0;  // answers a second with many requests under way
  double low_p99_us = 0;        // at a low load
  bool measured = false;
  bool available = true;  // false: the server refused the config
  std::string problem;    // why it could not be measured
};

// Pools within this share of a model's highest throughput count as equal to it.
inline constexpr double kSaturationMargin = 0.10;

// For each model, the index of the candidate to go on with: of those whose throughput is within the margin
// of the model's highest, the one with the lowest p99 at the low load, and of equals the one with the
// fewest threads. Models in the order of AllModels(); those without a measured candidate are left out.
std::vector<size_t> ChooseBest(const std::vector<Candidate>& candidates);

}  // namespace curtail::models
