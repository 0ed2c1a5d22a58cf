// SPDX-License-Identifier: Apache-2.0
//
// transport_bench: which way of using the kernel suits a mid-tier that asks four leaves. Raw sockets, messages
// of 64 bytes, no RPC layer.

#include <CLI/CLI.hpp>

#include "absl/strings/str_format.h"
#include "bench/common/program.h"
#include "measure.h"
#include "report.h"
#include "variants.h"

namespace curtail::bench {
namespace {

constexpr char kExamples[] = R"(
Loads: closed-N keeps N requests under way; open-QPS sends at random intervals whatever the answers do, and
latency counts from the moment a request was due; echo-BYTES is for the large-* variants.

Examples:
  transport_bench --quick
  transport_bench --variants epoll-et,uring-all --cells closed-1,open-500 --rounds 15
  transport_bench --variants large-copy,large-writev,large-zero --cells echo-65536,echo-1048576
  transport_bench --json transport.json
)";

std::string VariantList() {
  std::string text = "Variants:\n";
  for (const Variant& each : AllVariants()) text += absl::StrFormat("  %-13s %s\n", each.name, each.what);
  return text;
}

struct CommandLine {
  std::vector<std::string> cells = {"closed-1",  "open-500",   "open-2000",   "closed-16",
                                    "closed-64", "echo-65536", "echo-1048576"};
  Options options;
};

void AddFlags(CLI::App& app, CommandLine& line) {
  for (const Variant& each : AllVariants()) line.options.variants.push_back(each.name);
  app.add_option("--variants", line.options.variants, "which, in this order [all]")->delimiter(',');
  app.add_option("--cells", line.cells, "loads")->delimiter(',')->capture_default_str();
  app.add_option("--seconds", line.options.seconds, "a cell")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--callers", line.options.callers,
                 "connections, a mid-tier thread each, of all but blocking")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  AddCommonFlags(app, &line.options,
                 {.quick = "1 round, 0.05 s a cell: that it works, not how fast",
                  .seed = "Of the random intervals",
                  .markdown = ""});
  app.footer(VariantList() + kExamples);
}

absl::Status Check(CommandLine& line) {
  for (const std::string& name : line.options.variants) {
    if (FindVariant(name) == nullptr)
      return absl::InvalidArgumentError("no variant '" + name + "': see --help");
  }
  absl::StatusOr<std::vector<Load>> cells =
      ParseLoads(line.cells, {.closed = 64, .open = 100'000, .echo = 64 << 20});
  if (!cells.ok()) return cells.status();
  line.options.cells = *std::move(cells);
  if (line.options.quick) line.options.rounds = 1, line.options.seconds = 0.05;
  return absl::OkStatus();
}

// True if everything was measured that this build and this kernel have. io_uring that is refused is no failure.
bool AllWell(const std::vector<VariantResults>& results) {
  const bool uring = UringAvailable().ok();
  for (const VariantResults& each : results) {
    if (!each.first_error.ok() && (uring || !FindVariant(each.variant)->uring)) return false;
  }
  return true;
}

int RunBenchmark(const Options& options) {
  Session session(options);
  const Machine before = LookAtMachine();
  session.Note(ToString(before));
  session.Note(absl::StrFormat("%d variants, %d loads, %d rounds of %.2g s, seed %d: about %.0f s",
                               options.variants.size(), options.cells.size(), options.rounds, options.seconds,
                               options.seed, ExpectedSeconds(options)));
  const absl::StatusOr<std::vector<VariantResults>> results = Measure(options, session);
  if (!results.ok()) return Fail("transport_bench", results.status());
  const Machine after = LookAtMachine();
  const absl::Status written =
      session.Report(ToTable(options, before, after, *results), ToJson(options, before, after, *results), "");
  if (!written.ok()) return Fail("transport_bench", written);
  if (session.stop()) return tool::kInterrupted;
  return AllWell(*results) ? tool::kOk : tool::kFailed;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Which way of using the kernel suits a mid-tier that asks four leaves: raw sockets, no RPC layer.",
      "transport_bench");
  CommandLine line;
  line.options.rounds = 7;
  AddFlags(app, line);
  if (const std::optional<int> code = ParseFlags(app, argc, argv, &line.options)) return *code;
  if (absl::Status checked = Check(line); !checked.ok()) return Fail("transport_bench", checked);
  return RunBenchmark(line.options);
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
