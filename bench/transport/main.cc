// SPDX-License-Identifier: Apache-2.0
//
// transport_bench: which way of using the kernel suits a mid-tier that asks four leaves. Raw sockets, messages
// of 64 bytes, no RPC layer.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "absl/strings/str_format.h"
#include "measure.h"
#include "report.h"
#include "variants.h"

namespace curtail::bench {
namespace {

constexpr int kBadFlag = 104;

constexpr char kExamples[] = R"(
Loads: closed-N keeps N requests under way; open-QPS sends at random intervals whatever the answers do, and
latency counts from the moment a request was due; echo-BYTES is for the large-* variants.

Examples:
  transport_bench --quick
  transport_bench --variants epoll-et,uring-all --cells closed-1,open-500 --rounds 15
  transport_bench --variants large-copy,large-writev,large-zero --cells echo-65536,echo-1048576
  transport_bench --json transport.json
)";

int Fail(const absl::Status& status, int code) {
  std::cerr << "transport_bench: " << status.message() << "\n";
  return code;
}

std::string VariantList() {
  std::string text = "Variants:\n";
  for (const Variant& each : AllVariants()) text += absl::StrFormat("  %-13s %s\n", each.name, each.what);
  return text;
}

struct CommandLine {
  std::vector<std::string> cells = {"closed-1",  "open-500",   "open-2000",   "closed-16",
                                    "closed-64", "echo-65536", "echo-1048576"};
  Options options;
  std::string json;
  bool quick = false;
  bool quiet = false;
};

void AddFlags(CLI::App& app, CommandLine& line) {
  for (const Variant& each : AllVariants()) line.options.variants.push_back(each.name);
  app.add_option("--variants", line.options.variants, "which, in this order [all]")->delimiter(',');
  app.add_option("--cells", line.cells, "loads")->delimiter(',')->capture_default_str();
  app.add_option("--rounds", line.options.rounds, "of every variant in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", line.options.seconds, "a cell")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--callers", line.options.callers,
                 "connections, a mid-tier thread each, of all but blocking")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--seed", line.options.seed, "of the random intervals")->capture_default_str();
  app.add_option("--json", line.json, "write the results there, for machines");
  app.add_flag("--quick", line.quick, "1 round, 0.05 s a cell: that it works, not how fast");
  app.add_flag("--quiet", line.quiet, "no progress");
  app.footer(VariantList() + kExamples);
}

absl::Status Check(CommandLine& line) {
  for (const std::string& name : line.options.variants) {
    if (FindVariant(name) == nullptr)
      return absl::InvalidArgumentError("no variant '" + name + "': see --help");
  }
  for (const std::string& name : line.cells) {
    absl::StatusOr<Cell> cell = ParseCell(name);
    if (!cell.ok()) return cell.status();
    line.options.cells.push_back(*cell);
  }
  if (line.quick) line.options.rounds = 1, line.options.seconds = 0.05;
  return absl::OkStatus();
}

// Whether everything was measured that this build and this kernel have. io_uring that is refused is no failure.
bool AllWell(const std::vector<VariantResults>& results) {
  const bool uring = UringAvailable().ok();
  for (const VariantResults& each : results) {
    if (!each.first_error.ok() && (uring || !FindVariant(each.variant)->uring)) return false;
  }
  return true;
}

int RunBenchmark(const CommandLine& line) {
  const Options& options = line.options;
  const Machine before = LookAtMachine();
  std::cerr << absl::StrFormat("load average %.2f, %.2f of %d CPUs in use by others\n", before.load_average,
                               before.busy_cpus, before.cpus);
  if (before.Disturbed()) std::cerr << "WARNING: the machine is busy; the times will not mean much\n";
  std::cerr << absl::StrFormat("%d variants, %d loads, %d rounds of %.2g s, seed %d: about %.0f s\n",
                               options.variants.size(), options.cells.size(), options.rounds, options.seconds,
                               options.seed, ExpectedSeconds(options));
  const absl::StatusOr<std::vector<VariantResults>> results = Measure(options, [&](const std::string& text) {
    if (!line.quiet) std::cerr << text << "\n";
  });
  if (!results.ok()) return Fail(results.status(), 1);
  const Machine after = LookAtMachine();
  std::cout << ToTable(options, before, after, *results);
  if (!line.json.empty()) {
    std::ofstream file(line.json);
    file << ToJson(options, before, after, *results);
    file.close();
    if (!file) return Fail(absl::UnavailableError("cannot write " + line.json), 1);
  }
  return AllWell(*results) ? 0 : 1;
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  CLI::App app(
      "Which way of using the kernel suits a mid-tier that asks four leaves: raw sockets, no RPC layer.",
      "transport_bench");
  CommandLine line;
  AddFlags(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return kBadFlag;
  }
  if (absl::Status checked = Check(line); !checked.ok()) return Fail(checked, kBadFlag);
  return RunBenchmark(line);
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
