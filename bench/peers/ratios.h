// SPDX-License-Identifier: Apache-2.0
//
// ratios.h - how curtail's best compares with the best of the others.
#pragma once

#include <string>
#include <vector>

#include "measure.h"
#include "options.h"

namespace curtail::bench {

// curtail's best stack of a kind against the best other one, by medians over the rounds.
struct Ratio {
  std::string setup;    // its label
  std::string load;     // "closed-1"
  std::string metric;   // "p50", "p99", "answers/s"
  std::string kind;     // of curtail's stack: "polling", "blocking", "any"
  std::string against;  // "raw" or "peers": all stacks that are neither raw nor curtail's
  std::string curtail;
  double curtail_value = 0;
  std::string other;
  double other_value = 0;
  bool overlap = false;  // of the two ranges over the rounds: the difference may be chance

  double value() const { return curtail_value / other_value; }
};

// To the raw stacks: p50 at concurrency 1, polling and blocking. To the peers: p50 and p99 at concurrency 1 and at each
// open load, answers a second at each larger concurrency. What was not measured is left out.
std::vector<Ratio> RatiosOf(const Options& options, const std::vector<StackResults>& results);

}  // namespace curtail::bench
