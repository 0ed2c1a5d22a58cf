// SPDX-License-Identifier: Apache-2.0
//
// options.h - the command line of the fan-out benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

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
  int rounds = 5;
  double seconds = 2;  // a cell
  uint64_t seed = 1;
  std::string json;  // files to write, if not empty
  std::string markdown;
  bool quiet = false;

  // Of the servers.
  std::string leaf_config = "SIB1";
  std::string stack;
  std::vector<std::string> leaves;
  int ready_fd = -1;
};

// Errors: INVALID_ARGUMENT that names the flag and what it takes.
absl::StatusOr<Options> ParseOptions(int argc, char** argv);
std::string HelpText();

}  // namespace curtail::bench
