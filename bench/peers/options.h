// SPDX-License-Identifier: Apache-2.0
//
// options.h - the command line of peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "setup.h"

namespace curtail::bench {

// One load: "closed-16" keeps 16 requests under way, "open-500" sends 500 a second.
struct Cell {
  bool open = false;
  uint32_t load = 1;

  std::string Name() const;
};

struct Options {
  bool help = false;
  std::string role;  // "", "leaf" or "mid"; the two are how the benchmark starts its own servers

  // Of the benchmark.
  std::vector<std::string> stacks;
  std::vector<Cell> cells;
  Setup setup;
  std::string vary;           // NAME=LIST, as given
  std::vector<Setup> setups;  // `setup`, or its variations
  int rounds = 0;             // as given; ParseOptions() makes it 5, or 1 for instructions
  double seconds = 0.9;       // a cell; see CellSeconds()
  uint64_t seed = 1;
  bool check = false;         // whether every mid-tier calls every leaf, before the first round
  bool instructions = false;  // count them, instead of measuring times
  std::string json;           // files to write, if not empty
  std::string markdown;
  std::string markdown_short;
  bool quiet = false;

  // Of the servers.
  std::string leaf_config = "SIB1";
  std::string stack;
  std::vector<std::string> leaves;
};

// How long a cell lasts: at small rates twice as long, so that there is something to take a p99 of.
double CellSeconds(const Options& options, const Cell& cell);

// Errors: INVALID_ARGUMENT that names the flag and what it takes.
absl::StatusOr<Options> ParseOptions(int argc, char** argv);
std::string HelpText();

}  // namespace curtail::bench
