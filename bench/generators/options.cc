// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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
A generator that is not there is named and left out. Exit codes: 0 ok, 1 something failed, 104 bad flags.)";

// Where ./dev puts ghz; otherwise it is looked for in PATH.
std::string DefaultGhz() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path built = self.parent_path() / "external" / "ghz";
  return !error && std::filesystem::exists(built, error) ? built.string() : "ghz";
}

// Empty when the text is none.
std::optional<Load> ParseLoad(absl::string_view text) {
  Load load;
  load.open = absl::ConsumePrefix(&text, "open-");
  if (!load.open && !absl::ConsumePrefix(&text, "closed-")) return std::nullopt;
  const uint32_t most = load.open ? 1'000'000 : 1000;
  if (!absl::SimpleAtoi(text, &load.number) || load.number == 0 || load.number > most) return std::nullopt;
  return load;
}

// What is wrong with the list, or nothing.
std::string ReadLoads(const std::string& text, Options* options) {
  options->loads.clear();
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    std::optional<Load> load = ParseLoad(word);
    if (!load)
      return absl::StrCat("\"", word, "\" is no load; write closed-16 or open-500, separated by commas");
    load->seconds = options->seconds;
    options->loads.push_back(*load);
  }
  return "";
}

struct Flags {
  Options options;
  std::string loads = "closed-1,closed-16,closed-64,open-500,open-2000,open-10000";
};

void AddFlags(CLI::App& app, Flags* flags) {
  Options& o = flags->options;
  app.add_option("--work", o.work, "truth or cost")
      ->check(CLI::IsMember({"truth", "cost"}))
      ->capture_default_str();
  app.add_option("--loads", flags->loads, "cost: of closed-N (N under way) and open-N (N a second)")
      ->capture_default_str();
  app.add_option("--rounds", o.rounds, "cost: printed are medians over them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", o.seconds, "cost: of a run")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "truth: of the service times")->capture_default_str();
  app.add_option("--programs", o.programs, "Which take part: of curtail, ghz, h2load")
      ->delimiter(',')
      ->check(CLI::IsMember({"curtail", "ghz", "h2load"}))
      ->capture_default_str();
  app.add_option("--curtail", o.tools.curtail, "The curtail command")->capture_default_str();
  app.add_option("--ghz", o.tools.ghz, "The ghz command")->capture_default_str();
  app.add_option("--h2load", o.tools.h2load, "The h2load command")->capture_default_str();
  app.add_option("--json", o.json, "Results for machines");
  app.add_option("--markdown", o.markdown, "Results for people");
  app.add_flag("--quick", o.quick, "One short round: that it works, not how well");
  app.add_flag("--quiet", o.quiet, "No progress");
}

}  // namespace

bool TakesPart(const Options& options, Generator::Program program) {
  constexpr const char* kNames[] = {"curtail", "ghz", "h2load"};
  const bool asked =
      std::count(options.programs.begin(), options.programs.end(), kNames[static_cast<size_t>(program)]) > 0;
  return asked && Find(options.tools, program);
}

Parsed ParseOptions(int argc, char** argv) {
  Flags flags;
  flags.options.tools = {CURTAIL_COMMAND, DefaultGhz(), "h2load"};
  CLI::App app(kAbout);
  app.footer(kFooter);
  AddFlags(app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {flags.options, app.exit(error) == 0 ? 0 : kBadFlag};
  }
  Options& options = flags.options;
  if (options.quick) {
    options.rounds = 1;
    options.seconds = 0.2;
    if (app.count("--loads") == 0) flags.loads = "closed-16,open-500";
  }
  if (const std::string wrong = ReadLoads(flags.loads, &options); !wrong.empty()) {
    std::cerr << "generators: --loads: " << wrong << "\n";
    return {options, kBadFlag};
  }
  return {options, std::nullopt};
}

}  // namespace curtail::bench
