// SPDX-License-Identifier: Apache-2.0
//
// options.h - the command line of generators.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/common/program.h"
#include "generator.h"

namespace curtail::bench {

struct Options : CommonFlags {
  std::string work = "truth";  // or "cost"
  Tools tools;
  std::vector<std::string> programs = {"curtail", "ghz", "h2load"};  // those that take part
  double seconds = 2;                                                // cost: of a run
  std::vector<Load> loads;                                           // cost
};

// True if it was asked for and is there.
bool TakesPart(const Options& options, Generator::Program program);

// Reads the command line; or returns the code to end with, after --help or a flag that is wrong.
std::optional<int> ParseOptions(int argc, char** argv, Options* options);

}  // namespace curtail::bench
