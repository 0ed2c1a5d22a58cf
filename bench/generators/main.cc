// SPDX-License-Identifier: Apache-2.0
//
// generators: curtail load beside ghz and h2load. The service that all of them call runs in this process.

#include <signal.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "bench/common/machine.h"
#include "options.h"
#include "report.h"
#include "scratch.h"
#include "work.h"

namespace curtail::bench {
namespace {

int Fail(const std::string& message) {
  std::cerr << "generators: " << message << "\n";
  return 1;
}

// To the screen and to the files asked for.
template <class Results>
int Report(const Options& options, const Machine& machine, const Results& results) {
  std::cout << ToText(machine, results);
  if (!options.json.empty() && !WriteFile(options.json, ToJson(options, machine, results))) {
    return Fail("cannot write " + options.json);
  }
  if (!options.markdown.empty() && !WriteFile(options.markdown, ToMarkdown(machine, results))) {
    return Fail("cannot write " + options.markdown);
  }
  return AllWell(results) ? 0 : 1;
}

// Those that were asked for and are not there are left out, and named.
void NameMissing(const Options& options) {
  const auto note = [&options](const std::string& name, Generator::Program program, const std::string& hint) {
    const bool asked = std::count(options.programs.begin(), options.programs.end(), name) > 0;
    if (asked && !TakesPart(options, program))
      std::cerr << "note: going on without " << name << ": " << hint << "\n";
  };
  note("curtail", Generator::Program::kCurtail, "cannot run " + options.tools.curtail + ", see --curtail");
  note("ghz", Generator::Program::kGhz, "cannot run " + options.tools.ghz + ", see --ghz");
  note("h2load", Generator::Program::kH2load, "install nghttp2-client, or see --h2load");
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const Parsed parsed = ParseOptions(argc, argv);
  if (parsed.exit) return *parsed.exit;
  const Options& options = parsed.options;
  NameMissing(options);
  const Progress progress = [&options](const std::string& line) {
    if (!options.quiet) std::cerr << line << "\n";
  };
  const Machine machine = LookAtMachine();
  std::cerr << absl::StrFormat("load average %.2f, %.2f of %d CPUs in use by others\n", machine.load_average,
                               machine.busy_cpus, machine.cpus);
  if (machine.Disturbed()) std::cerr << "WARNING: the machine is busy; the times will not mean much\n";
  if (options.work == "truth") return Report(options, machine, MeasureTruth(options, progress));
  const absl::StatusOr<CostResults> results = MeasureCost(options, progress);
  if (!results.ok()) return Fail(std::string(results.status().message()));
  return Report(options, machine, *results);
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
