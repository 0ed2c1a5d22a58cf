// SPDX-License-Identifier: Apache-2.0
//
// generators: curtail load beside ghz and h2load. The service that all of them call runs in this process.

#include <algorithm>
#include <iostream>

#include "bench/common/machine.h"
#include "options.h"
#include "work.h"

namespace curtail::bench {
namespace {

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
  Options options;
  if (const std::optional<int> code = ParseOptions(argc, argv, &options)) return *code;
  NameMissing(options);
  Session session(options);
  const Machine machine = LookAtMachine();
  session.Note(ToString(machine));
  const auto finish = [&](const auto& results) {
    return session.Finish("generators", ReportOf(options, machine, results), absl::OkStatus(),
                          AllWell(results) ? kOk : kFailed);
  };
  if (options.work == "truth") return finish(MeasureTruth(options, session));
  const absl::StatusOr<CostResults> results = MeasureCost(options, session);
  return results.ok() ? finish(*results) : Fail("generators", results.status());
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
