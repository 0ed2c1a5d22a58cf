// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

namespace curtail::bench {
namespace {

constexpr char kAbout[] =
    R"(generators - curtail load beside ghz and h2load: do their numbers tell the truth, and what CPU time do they take?

--work truth: each measures the same two services. One draws the time of each request from an exponential distribution
(mean 50 ms); the other is a single thread that takes 1 ms a request and stalls once for 200 ms. Both log what they did,
from which the latencies are computed that users at that rate have seen.
--work cost: the CPU time (user and system) of the generator's process for each request, less that of its start, against
an empty handler; the generators take turns, round after round.)";

constexpr char kFooter[] =
    R"(Examples:
  generators --work truth --markdown truth.md
  generators --work cost --rounds 9 --json cost.json
  generators --work cost --loads closed-16,open-500
A generator that is not there is named and left out. Exit codes: 0 ok, 1 something failed, 104 bad flags,
105 interrupted (what was measured is reported).)";

// Where ./dev puts ghz; otherwise it is looked for in PATH.
std::string DefaultGhz() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path built = self.parent_path() / "external" / "ghz";
  return !error && std::filesystem::exists(built, error) ? built.string() : "ghz";
}

void AddFlags(CLI::App& app, Options* o, std::vector<std::string>* loads) {
  app.add_option("--work", o->work, "truth or cost")
      ->check(CLI::IsMember({"truth", "cost"}))
      ->capture_default_str();
  app.add_option("--loads", *loads, "cost: of closed-N (N in flight) and open-N (N a second)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seconds", o->seconds, "cost: of a run")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("--programs", o->programs, "Which take part: of curtail, ghz, h2load")
      ->delimiter(',')
      ->check(CLI::IsMember({"curtail", "ghz", "h2load"}))
      ->capture_default_str();
  app.add_option("--curtail", o->tools.curtail, "The curtail command")->capture_default_str();
  app.add_option("--ghz", o->tools.ghz, "The ghz command")->capture_default_str();
  app.add_option("--h2load", o->tools.h2load, "The h2load command")->capture_default_str();
  AddCommonFlags(
      app, o,
      {.quick = "One short round: that it works, not how well", .seed = "truth: of the service times"});
}

}  // namespace

bool TakesPart(const Options& options, Generator::Program program) {
  constexpr const char* kNames[] = {"curtail", "ghz", "h2load"};
  const bool asked =
      std::count(options.programs.begin(), options.programs.end(), kNames[static_cast<size_t>(program)]) > 0;
  return asked && Find(options.tools, program);
}

std::optional<int> ParseOptions(int argc, char** argv, Options* options) {
  options->tools = {CURTAIL_COMMAND, DefaultGhz(), "h2load"};
  std::vector<std::string> names = {"closed-1", "closed-16", "closed-64",
                                    "open-500", "open-2000", "open-10000"};
  CLI::App app(kAbout, "generators");
  app.footer(kFooter);
  AddFlags(app, options, &names);
  if (std::optional<int> code = ParseFlags(app, argc, argv, options)) return code;
  if (options->quick) {
    options->rounds = 1;
    options->seconds = 0.2;
    if (app.count("--loads") == 0) names = {"closed-16", "open-500"};
  }
  absl::StatusOr<std::vector<Load>> loads = ParseLoads(names, {.closed = 1000, .open = 1'000'000});
  if (!loads.ok()) return Fail("generators", loads.status());
  options->loads = *std::move(loads);
  return std::nullopt;
}

}  // namespace curtail::bench
