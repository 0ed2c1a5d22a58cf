// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/compare_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/adapt/verification.h"
#include "curtail/base/internal/output_path.h"
#include "curtail/base/strings.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_page.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/compare/compare_plan.h"
#include "tools/curtail/compare/policy_report.h"
#include "tools/curtail/compare/policy_trial.h"
#include "tools/curtail/load/load_results.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"
#include "tools/curtail/train/profile_file.h"
#include "tools/curtail/train/subject_flags.h"

namespace curtail::tool {
namespace {

constexpr int kSteadyLoads = 6;
constexpr double kQuickScale = 0.4;
constexpr int kMaxRounds = 12;

absl::Status Invalid(const char* flag, const absl::Status& why) {
  return absl::InvalidArgumentError(Join(flag, ": ", Message(why)));
}

// The range of loads: from the flag, else from the profile.
struct Ends {
  double low = 0;
  double high = 0;
};
absl::StatusOr<Ends> MakeEnds(const CompareFlags& flags, const std::optional<LoadRange>& range) {
  if (flags.flash_crowd.empty() && flags.scenarios == "steady" && !flags.loads.empty()) return Ends{};
  if (flags.flash_crowd.empty()) {
    if (range) return Ends{range->low_per_s, range->high_per_s};
    return absl::InvalidArgumentError(
        "say with --flash-crowd LOW..HIGH between which rates, as there is no profile that would tell");
  }
  const std::vector<std::string> parts = absl::StrSplit(flags.flash_crowd, "..");
  Ends ends;
  const auto read = [](const std::string& text, double* rate) {
    const absl::StatusOr<std::vector<double>> rates = ParseRates(text);
    if (!rates.ok() || rates->size() != 1) return false;
    *rate = rates->front();
    return true;
  };
  if (parts.size() != 2 || !read(parts[0], &ends.low) || !read(parts[1], &ends.high)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--flash-crowd: \"", flags.flash_crowd, "\" is not a range of rates like 100..8k"));
  }
  return ends;
}

absl::StatusOr<std::vector<double>> MakeLoads(const CompareFlags& flags, const Profile* profile,
                                              const Ends& ends) {
  if (flags.loads.empty()) {
    std::vector<double> loads;
    if (profile != nullptr) loads = HeldOutLoads(*profile, flags.quick ? 3 : kSteadyLoads);
    if (loads.empty()) loads = {ends.low, ends.high};
    return loads;
  }
  absl::StatusOr<std::vector<double>> loads = ParseRates(flags.loads);
  if (!loads.ok()) return Invalid("--loads", loads.status());
  return loads;
}

absl::StatusOr<std::vector<PolicyChoice>> MakePolicies(const CompareFlags& flags, const Profile* profile,
                                                       const std::optional<LoadRange>& range) {
  std::vector<std::string> labels;
  if (!flags.policies.empty()) {
    labels = SplitPolicies(flags.policies);
  } else if (range) {
    labels = DefaultPolicies(*range, *profile);
  } else {
    return absl::InvalidArgumentError("give --policies, or --profile for the usual ones");
  }
  std::vector<PolicyChoice> choices;
  for (const std::string& label : labels) {
    choices.push_back(ParsePolicyChoice(label));
    for (size_t i = 0; i + 1 < choices.size(); ++i) {
      if (choices[i].label == label)
        return absl::InvalidArgumentError(absl::StrCat("--policies names ", label, " twice: leave one out"));
    }
    if (absl::Status status = CheckPolicy(choices.back(), profile, !flags.options.program.empty());
        !status.ok())
      return Invalid("--policies", status);
  }
  return choices;
}

absl::StatusOr<ComparisonPlan> MakePlan(const CompareFlags& flags, const Profile* profile) {
  std::optional<LoadRange> range;
  if (profile != nullptr) {
    absl::StatusOr<LoadRange> of = RangeOf(*profile);
    if (!of.ok()) return Invalid("--profile", of.status());
    range = *of;
  }
  ComparisonPlan plan;
  plan.rounds = flags.quick && flags.rounds == CompareFlags().rounds ? 1 : flags.rounds;
  plan.max_rounds = flags.max_rounds > 0 ? flags.max_rounds
                    : flags.quick        ? plan.rounds
                                         : std::max(kMaxRounds, plan.rounds);
  if (plan.max_rounds < plan.rounds) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--max-rounds %d is below --rounds %d: raise it", plan.max_rounds, plan.rounds));
  }
  plan.max_time = Nanos(static_cast<int64_t>(flags.max_minutes * 60e9));
  plan.seed = flags.seed;
  plan.options.profile = flags.profile;
  plan.options.any_machine = flags.any_machine;
  plan.options.slo = Nanos(static_cast<int64_t>(flags.slo_ms * 1e6));
  plan.options.cpu_weight = flags.cpu_weight;
  absl::StatusOr<std::vector<PolicyChoice>> policies = MakePolicies(flags, profile, range);
  if (!policies.ok()) return policies.status();
  plan.policies = *std::move(policies);
  const absl::StatusOr<Ends> ends = MakeEnds(flags, range);
  if (!ends.ok()) return ends.status();
  const absl::StatusOr<std::vector<double>> loads = MakeLoads(flags, profile, *ends);
  if (!loads.ok()) return loads.status();
  const double scale = flags.quick ? kQuickScale : 1;
  const Nanos each(static_cast<int64_t>(flags.seconds * scale * 1e9));
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(flags.scenarios, ','))) {
    absl::StatusOr<Scenario> scenario = MakeScenario(name, ends->low, ends->high, *loads, each, scale);
    if (!scenario.ok()) return scenario.status();
    plan.scenarios.push_back(*std::move(scenario));
  }
  return plan;
}

std::string PlanText(const CompareFlags& flags, const ComparisonPlan& plan) {
  std::vector<std::string> policies;
  for (const PolicyChoice& policy : plan.policies) policies.push_back(policy.label);
  const std::string most = plan.max_rounds > plan.rounds ? absl::StrCat(" to ", plan.max_rounds) : "";
  std::string text =
      absl::StrFormat("%s: %s\n%d%s round%s of %.0f s of load, seed %d\n", flags.application,
                      absl::StrJoin(policies, ", "), plan.rounds, most,
                      plan.rounds == 1 && most.empty() ? "" : "s", InSeconds(plan.RoundLength()), plan.seed);
  for (const Scenario& scenario : plan.scenarios) absl::StrAppend(&text, "  ", scenario.text, "\n");
  return text;
}

int FailCompare(Console& console, const absl::Status& status) {
  const bool flags = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  console.Error(std::string(Message(status)), flags ? "see curtail compare --help" : "");
  return flags ? kBadConfig : kFailed;
}

}  // namespace

int RunCompare(const CompareFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (deploy::IsTopologyFile(flags.application)) {
    return FailCompare(console, absl::InvalidArgumentError(absl::StrCat(
                                    "compare takes shipped applications only: ", apps::ApplicationNames())));
  }
  if (!apps::IsApplication(flags.application))
    return FailCompare(console, apps::NoApplication(flags.application));
  std::optional<Profile> profile;
  if (!flags.profile.empty()) {
    absl::StatusOr<Profile> read = ReadProfileFile(flags.profile, flags.any_machine);
    if (!read.ok()) return FailCompare(console, read.status());
    profile = *std::move(read);
  }
  const absl::StatusOr<ComparisonPlan> plan = MakePlan(flags, profile ? &*profile : nullptr);
  if (!plan.ok()) return FailCompare(console, plan.status());
  if (absl::Status status = CheckPaths({flags.json, flags.html}, console); !status.ok())
    return FailCompare(console, status);
  console.PrintWrapped(absl::StrCat(console.Bold("compare"), " ", PlanText(flags, *plan)));
  if (flags.dry_run) return kOk;
  PolicyComparison comparison = DescribeComparison(*plan);
  comparison.profile = profile ? absl::StrCat(flags.profile, ", trained ", profile->created) : "";
  const absl::StatusOr<std::unique_ptr<apps::Application>> application =
      apps::MakeApplication(flags.application, flags.options);
  if (!application.ok()) return FailCompare(console, application.status());
  if (profile && profile->service != (*application)->service) {
    return FailCompare(console, absl::InvalidArgumentError(
                                    absl::StrCat("the profile is of ", profile->service, ", and not of ",
                                                 std::string((*application)->service))));
  }
  comparison.application = (*application)->name;
  comparison.data = (*application)->description;
  deploy::LogFolder logs;
  if (logs.path().empty()) {
    return FailCompare(
        console, absl::InternalError("cannot make a folder for logs; set TMPDIR to one that can be written"));
  }
  const absl::Status status = RunTrials(**application, logs, *plan, console, stop, comparison);
  comparison.interrupted = !status.ok();  // by the user, or by a process that died
  if (!status.ok() && !absl::IsCancelled(status)) {
    logs.Keep();
    console.Note(absl::StrCat("the logs of the processes are in ", logs.path()));
    if (comparison.runs.empty()) return FailCompare(console, status);
    console.Error(std::string(Message(status)), "");  // what was measured is not lost
  }
  if (!status.ok()) {
    console.Print(
        absl::StrFormat("INTERRUPTED: partial, %d runs of at least %d\n", comparison.runs.size(),
                        plan->policies.size() * plan->scenarios.size() * static_cast<size_t>(plan->rounds)));
  }
  const int reported = ReportComparison(comparison, flags.json, flags.html, console);
  if (absl::IsCancelled(status)) return kInterrupted;
  return status.ok() ? reported : kFailed;
}

PolicyComparison DescribeComparison(const ComparisonPlan& plan) {
  PolicyComparison comparison;
  comparison.machine = ThisOrigin(CURTAIL_VERSION).machine;
  comparison.curtail_version = CURTAIL_VERSION;
  comparison.seed = plan.seed;
  comparison.slo = plan.options.slo;
  comparison.scenarios = plan.scenarios;
  comparison.rounds = plan.rounds;
  comparison.looks = plan.looks();
  for (const PolicyChoice& policy : plan.policies) comparison.policies.push_back(policy.label);
  return comparison;
}

int ReportComparison(const PolicyComparison& comparison, const std::string& json, const std::string& html,
                     Console& console) {
  if (comparison.runs.empty()) return kFailed;
  console.Print(PolicyTables(comparison, console));
  absl::Status written;
  if (!json.empty()) written.Update(WriteResult(json, PolicyComparisonJson(comparison), console));
  if (!html.empty()) written.Update(WriteResult(html, ReportPage(PolicyComparisonJson(comparison)), console));
  if (!written.ok()) {
    console.Error(std::string(Message(written)), "free some space, or write elsewhere");
    return kFailed;
  }
  std::error_code error;
  for (const std::string& path : {json, html}) {
    if (!path.empty() && !internal::IsStdout(path))
      console.Print(absl::StrCat("written  ", std::filesystem::absolute(path, error).string(), "\n"));
  }
  return kOk;
}

namespace {

constexpr char kCompareAbout[] =
    R"(Serves the same loads under one policy after the other, each in processes started for it, in turns: steady loads up and
down, a flash crowd (a low load, 1 s beyond what the best config for it sustains, the low load again), a ramp, a day.
It adds rounds until the first policy is told from the others: better, worse, or level within 10 %.)";

constexpr char kCompareExamples[] =
    R"(A policy for which a profile is optional begins with it when "+profile" follows the name: online+profile.

Examples:
  curtail compare hdsearch --profile profile.json --html compare.html           # an hour or two
  curtail compare hdsearch --profile profile.json --quick                       # a few minutes
  curtail compare hdsearch --profile profile.json --policies mutune,static:SIP1,static:SDB1-50 \
                  --scenarios flash-crowd --flash-crowd 100..3k --max-rounds 8
  curtail compare hdsearch --policies online,static:SIB1 --scenarios steady --loads 100,1k --flash-crowd 100..1k
  curtail compare hdsearch --program ./my_hdsearch --policies mine,static:auto --flash-crowd 100..1k

Exit codes: 0 ok, 1 a process failed or no disk space, 104 bad flags or profile, 105 interrupted.)";

std::string PoliciesHelp() {
  const std::vector<std::string> fixed = {FixedPolicy(Config::Auto()), "the best fixed ones at both ends"};
  return absl::StrCat("Policies [", absl::StrJoin(UsualPolicies(fixed), ", "),
                      "]; between ';' if arguments have a ','");
}

}  // namespace

Command AddCompare(CLI::App& app) {
  const auto f = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "Compare policies: steady loads, a flash crowd, a ramp, a day");
  command->footer(absl::StrCat(kCompareAbout, "\n\nPolicies:\n", PolicyHelp("  "), "\n", kCompareExamples));
  command->add_option("APP", f->application, "The application: " + apps::ApplicationNames())->required();
  command->add_option("--profile", f->profile, "Written by curtail train; most policies go by it");
  command->add_flag("--any-machine", f->any_machine, "Take a profile of another machine, too");
  command->add_option("--policies", f->policies, PoliciesHelp());
  command->add_option("--scenarios", f->scenarios, "Loads")->capture_default_str();
  command->add_option("--loads", f->loads, "steady: requests a second [between the trained ones]");
  command->add_option("--flash-crowd", f->flash_crowd, "LOW..HIGH, of all but steady [by the profile]");
  command->add_option("--seconds", f->seconds, "Length of a steady load; low ones take longer")
      ->check(Between(0.1, 3600))
      ->capture_default_str();
  command->add_option("--rounds", f->rounds, "Times that each policy has its turn; a verdict takes 5")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--max-rounds", f->max_rounds,
                   "Rounds are added up to here while the first policy cannot be told from the others [12; "
                   "with --quick none]")
      ->check(CLI::Range(1, 100));
  command->add_option("--max-minutes", f->max_minutes, "None is added that would end later")
      ->check(Between(0, 1e5))
      ->capture_default_str();
  command->add_option("--seed", f->seed, "Of the arrivals")->check(NotNegative())->capture_default_str();
  command
      ->add_option("--slo", f->slo_ms,
                   "The p99 in ms that a policy must not endanger by trying other configs")
      ->check(Between(0.001, 3.6e6))
      ->capture_default_str();
  command
      ->add_option("--cpu-weight", f->cpu_weight,
                   "The share by which policies may leave the p99 higher to save CPU; 0: never")
      ->check(Between(0, 100))
      ->capture_default_str();
  command->add_option("--json", f->json, "Write the results here as JSON; - is the standard output");
  command->add_option("--html", f->html, "Write a report with charts here");
  command->add_flag("--quick", f->quick, "One round, shorter");
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  AddApplicationFlags(*command, &f->options);
  return {command, [f](const Invocation& given) { return RunCompare(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
