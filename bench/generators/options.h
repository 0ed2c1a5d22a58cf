// SPDX-License-Identifier: Apache-2.0
//
// options.h - the command line of generators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generator.h"

namespace curtail::bench {

inline constexpr int kBadFlag = 104;

struct Options {
  std::string work = "truth";  // or "cost"
  Tools tools;
  std::vector<std::string> programs = {"curtail", "ghz", "h2load"};  // those that take part
  int rounds = 5;                                                    // cost
  double seconds = 2;                                                // cost: of a run
  std::vector<Load> loads;                                           // cost
  uint64_t seed = 1;                                                 // truth: of the service times
  bool quick = false;
  bool quiet = false;
  std::string json;
  std::string markdown;
};

// Whether it was asked for and is there.
bool TakesPart(const Options& options, Generator::Program program);

// Reads the command line; or the code to exit with, when it was --help or could not be read (which is said on stderr).
struct Parsed {
  Options options;
  std::optional<int> exit;
};
Parsed ParseOptions(int argc, char** argv);

}  // namespace curtail::bench
