// SPDX-License-Identifier: Apache-2.0
//
// peers: the null fan-out on curtail and on what one would take instead. The same program is the benchmark, the
// mid-tier and the leaf.

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/machine.h"
#include "measure.h"
#include "net.h"
#include "options.h"
#include "report.h"
#include "stack.h"

namespace curtail::bench {
namespace {

constexpr int kBadFlag = 104;

int Fail(const absl::Status& status, int code) {
  std::cerr << "peers: " << status.message() << "\n";
  return code;
}

// A server's life: says where it listens, then serves until it is killed.
int RunServer(const Options& options) {
  absl::StatusOr<std::unique_ptr<Stack>> stack = MakeStack(options.stack, options.leaf_config);
  if (!stack.ok()) return Fail(stack.status(), kBadFlag);
  const Ready ready = [](const std::string& address) {
    const std::string line = address + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(1);  // the benchmark has ended
  };
  const absl::Status status =
      options.role == "leaf" ? (*stack)->RunLeaf(ready) : (*stack)->RunMid(options.leaves, ready);
  return Fail(status, 1);
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

std::string PlanLine(const Options& options) {
  return absl::StrFormat("%d stacks x %d setups x %d loads x %d rounds of %.2g s, seed %d: about %.0f s\n",
                         options.stacks.size(), options.setups.size(), options.cells.size(), options.rounds,
                         options.seconds, options.seed, ExpectedSeconds(options));
}

// The reports, to the screen and to the files asked for.
int Report(const Options& options, const std::string& table, const std::string& json,
           const std::string& markdown, const std::string& markdown_short) {
  std::cout << table;
  absl::Status written = WriteFile(options.json, json);
  written.Update(WriteFile(options.markdown, markdown));
  written.Update(WriteFile(options.markdown_short, markdown_short));
  return written.ok() ? 0 : Fail(written, 1);
}

int RunInstructions(const Options& options, const std::function<void(const std::string&)>& progress) {
  const std::vector<Instructions> results = CountInstructions(options, progress);
  const std::string markdown = InstructionsToMarkdown(options, results);
  const int code = Report(options, InstructionsToTable(options, results),
                          InstructionsToJson(options, results), markdown, markdown);
  // That valgrind cannot run a stack is a result; that it can run none is not.
  bool any = false;
  for (const Instructions& one : results) any = any || one.per_request[0].has_value();
  return any ? code : 1;
}

int RunBenchmark(const Options& options) {
  const auto progress = [&options](const std::string& line) {
    if (!options.quiet) std::cerr << line << "\n";
  };
  if (options.instructions) return RunInstructions(options, progress);
  const Machine machine = LookAtMachine();
  std::cerr << absl::StrFormat("load average %.2f, %.2f of %d CPUs in use by others\n", machine.load_average,
                               machine.busy_cpus, machine.cpus);
  if (machine.Disturbed()) std::cerr << "WARNING: the machine is busy; the times will not mean much\n";
  std::cerr << PlanLine(options);
  const std::vector<StackResults> results = Measure(options, progress);
  const int code = Report(options, ToTable(options, machine, results), ToJson(options, machine, results),
                          ToMarkdown(options, machine, results), ToShortMarkdown(results));
  return code == 0 && AllWell(results) ? 0 : 1;
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  absl::StatusOr<Options> options = ParseOptions(argc, argv);
  if (!options.ok()) return Fail(options.status(), kBadFlag);
  if (options->help) {
    std::cout << HelpText();
    return 0;
  }
  return options->role.empty() ? RunBenchmark(*options) : RunServer(*options);
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
