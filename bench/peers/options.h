// SPDX-License-Identifier: Apache-2.0
//
// options.h - the command line of peers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/common/load.h"
#include "bench/common/program.h"
#include "setup.h"

namespace curtail::bench {

struct Options : CommonFlags {
  std::string role;  // "", "leaf" or "mid"; the two are how the benchmark starts its own servers

  // Of the benchmark.
  std::vector<std::string> stacks;
  std::vector<Load> cells;
  Setup setup;
  std::string vary;            // NAME=LIST, as given
  std::vector<Setup> setups;   // `setup`, or its variations
  double seconds = 0.9;        // a cell; see CellSeconds()
  bool check = false;          // whether every mid-tier calls every leaf, before the first round
  bool instructions = false;   // count them, instead of measuring times
  std::string markdown_short;  // a file to write, if not empty

  // Of the servers.
  std::string leaf_config = "SIB1";
  std::string stack;
  std::vector<std::string> leaves;
};

// How long a cell lasts: at small rates twice as long, so that there is something to take a p99 of.
double CellSeconds(const Options& options, const Load& cell);

// Reads the command line; or returns the code to end with, after --help or a flag that is wrong.
std::optional<int> ParseOptions(int argc, char** argv, Options* options);

}  // namespace curtail::bench
