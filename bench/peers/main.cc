// SPDX-License-Identifier: Apache-2.0
//
// peers: the null fan-out on curtail and on what one would take instead. The same program is the benchmark, the
// mid-tier and the leaf.

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "bench/common/machine.h"
#include "bench/common/net.h"
#include "bench/common/program.h"
#include "bench/common/scratch.h"
#include "instructions.h"
#include "measure.h"
#include "options.h"
#include "stack.h"

namespace curtail::bench {
namespace {

// A server's life: says where it listens, then serves until it is killed.
int RunServer(const Options& options) {
  absl::StatusOr<std::unique_ptr<Stack>> stack = MakeStack(options.stack, options.leaf_config);
  if (!stack.ok()) return Fail("peers", stack.status());
  const Ready ready = [](const std::string& address) {
    const std::string line = address + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(1);  // the benchmark has ended
  };
  const absl::Status status =
      options.role == "leaf" ? (*stack)->RunLeaf(ready) : (*stack)->RunMid(options.leaves, ready);
  return Fail("peers", status);
}

std::string PlanLine(const Options& options) {
  return absl::StrFormat("%d stacks x %d setups x %d loads x %d rounds of %.2g s, seed %d: about %.0f s",
                         options.stacks.size(), options.setups.size(), options.cells.size(), options.rounds,
                         options.seconds, options.seed, ExpectedSeconds(options));
}

int Finish(const Options& options, Session& session, const Report& report, const std::string& markdown_short,
           bool all_well) {
  absl::Status written;
  if (!options.markdown_short.empty() && !WriteFile(options.markdown_short, markdown_short)) {
    written = absl::UnavailableError("cannot write " + options.markdown_short);
  }
  return session.Finish("peers", report, written, all_well ? kOk : kFailed);
}

int RunBenchmark(const Options& options) {
  Session session(options);
  const Machine machine = LookAtMachine();
  if (options.instructions) {
    const std::vector<Instructions> results = CountInstructions(options, session);
    const Report report = ReportOf(options, machine, results);
    // That valgrind cannot run a stack is a result; that it can run none is not.
    const bool any = std::any_of(results.begin(), results.end(),
                                 [](const Instructions& one) { return !one.counts[0].empty(); });
    return Finish(options, session, report, report.ToMarkdown(), any);
  }
  session.Note(ToString(machine));
  session.Note(PlanLine(options));
  const std::vector<StackResults> results = Measure(options, session);
  return Finish(options, session, ReportOf(options, machine, results), ShortTable(results).ToMarkdown(),
                AllWell(results));
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  Options options;
  if (const std::optional<int> code = ParseOptions(argc, argv, &options)) return *code;
  return options.role.empty() ? RunBenchmark(options) : RunServer(options);
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
