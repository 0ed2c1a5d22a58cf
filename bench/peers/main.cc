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
#include "measure.h"
#include "options.h"
#include "report.h"
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

// The reports, to the screen and to the files asked for. Returns `code`, unless that fails or the run was interrupted.
int Report(const Options& options, Session& session, const std::string& table, const std::string& json,
           const std::string& markdown, const std::string& markdown_short, int code) {
  session.Progress("");
  absl::Status written = session.Report(table, json, markdown);
  if (!options.markdown_short.empty() && !WriteFile(options.markdown_short, markdown_short)) {
    written.Update(absl::UnavailableError("cannot write " + options.markdown_short));
  }
  if (!written.ok()) return Fail("peers", written);
  return session.stop() ? tool::kInterrupted : code;
}

int RunInstructions(const Options& options, const Machine& machine, Session& session) {
  const std::vector<Instructions> results = CountInstructions(options, session);
  const std::string markdown = InstructionsToMarkdown(options, results);
  // That valgrind cannot run a stack is a result; that it can run none is not.
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const Instructions& one) { return one.per_request[0].has_value(); });
  return Report(options, session, InstructionsToTable(options, results),
                InstructionsToJson(options, machine, results), markdown, markdown,
                any ? tool::kOk : tool::kFailed);
}

int RunBenchmark(const Options& options) {
  Session session(options);
  const Machine machine = LookAtMachine();
  if (options.instructions) return RunInstructions(options, machine, session);
  session.Note(ToString(machine));
  session.Note(PlanLine(options));
  const std::vector<StackResults> results = Measure(options, session);
  return Report(options, session, ToTable(options, machine, results), ToJson(options, machine, results),
                ToMarkdown(options, machine, results), ToShortMarkdown(results),
                AllWell(results) ? tool::kOk : tool::kFailed);
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
