// SPDX-License-Identifier: Apache-2.0
//
// program.h - what all benchmark programs do alike: flags, progress, interruption, files.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"

namespace CLI {
class App;
}

namespace curtail::bench {

class Report;

struct CommonFlags {
  int rounds = 5;
  uint64_t seed = 1;
  bool seeded = false;  // has --seed; filled in by AddCommonFlags()
  bool quick = false;
  bool quiet = false;
  std::string json;
  std::string markdown;
  std::string command;  // the command line, filled in by ParseFlags()
};

// The texts of --help for the flags that not every program has; it has those with a text.
struct CommonTexts {
  const char* quick = "";
  const char* seed = "";
  const char* markdown = "Write the report here, for people";
};
void AddCommonFlags(CLI::App& app, CommonFlags* flags, const CommonTexts& texts);

// Reads the command line; or returns the code to end with, after --help or a flag that is wrong.
std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv, CommonFlags* flags);

// Says "PROGRAM: why" on stderr and returns the exit code for it. REQUIRES: not OK.
int Fail(const std::string& program, const absl::Status& status);

// A Session is one run of a benchmark: what its user sees of it, and whether it was interrupted. Make one, in main().
class Session {
 public:
  explicit Session(const CommonFlags& flags);

  // Set by the first Ctrl-C: what was measured until then is to be reported.
  const std::atomic<bool>& stop() const { return stop_; }
  // A line that replaces the one before it, on a terminal only; an empty one clears it.
  void Progress(const std::string& line) { console_.Progress(line); }
  // A line on stderr, unless --quiet.
  void Note(const std::string& line) { console_.Note(line); }

  // Prints the report and writes it to the files that the flags ask for. Returns the exit code: `code`, unless a file
  // cannot be written, the run was interrupted, or `status` is an error.
  int Finish(const std::string& program, const Report& report, const absl::Status& status, int code);

 private:
  const CommonFlags& flags_;
  const std::atomic<bool>& stop_;
  Console console_;
};

}  // namespace curtail::bench
