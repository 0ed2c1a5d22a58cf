// SPDX-License-Identifier: Apache-2.0
//
// models_bench: every threading model at every load, on one service (figures 6 to 8, 11 and 12 of muTune,
// OSDI'18).
//
// It starts the service's tiers as processes of their own, finds the best pool size of each model, and
// measures these configs at six loads and at saturation. sweep.h says how the turns are ordered and why each
// config has its own mid-tier.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "apps/shipped/application.h"
#include "bench/common/program.h"
#include "curtail/deploy/tiers.h"
#include "curtail/load/report/report.h"
#include "plan.h"
#include "pools.h"
#include "results.h"
#include "sweep.h"

namespace {

using namespace curtail;
using namespace curtail::models;

constexpr char kAbout[] =
    "Measures a service under the twelve threading models: p50 and p99 at six loads, saturation, context "
    "switches.";

constexpr char kExamples[] =
    R"(Without --configs, pool sizes that suit this machine's CPUs are tried for each of the twelve models. The
best pool of a model goes on: of those within 10 % of the model's highest throughput, the one with the lowest
p99 at 200 requests a second. Configs that the server does not have are reported as not available. The report
goes to standard output.

Examples:
  models_bench --service fanout --quick                       # about a minute: that it works, not how fast
  models_bench --service fanout --markdown fanout.md --json fanout.json    # under 15 minutes
  models_bench --service hdsearch --configs SIB1,SIP1,SDB1-16 --loads 100,500,80% --rounds 5
  models_bench --service hdsearch --data fashion-mnist

Exit codes: 0 ok, 1 something could not be measured or written, 104 bad flags, a missing program or data set,
105 interrupted (what was measured is reported).)";

struct Flags : bench::CommonFlags {
  std::string service;
  std::string configs;
  std::string loads = kDefaultLoads;
  double seconds = 0;
  int outstanding = 64;
  bool all_pools = false;
  apps::ApplicationOptions tiers;
};

void AddFlags(CLI::App& app, Flags* f) {
  app.add_option("--service", f->service, apps::ApplicationNames())
      ->required()
      ->check([](const std::string& name) {
        return apps::IsApplication(name)
                   ? ""
                   : "there is no service " + name + "; there are " + apps::ApplicationNames();
      });
  app.add_option("--configs", f->configs, "Configs to try, several for a model let the best one go on");
  app.add_option("--loads", f->loads, "Requests a second, or percent of the best throughput of any config")
      ->capture_default_str();
  app.add_option("--seconds", f->seconds, "Length of a cell; low loads take up to four times that [1.5]")
      ->check(CLI::Range(0.05, 3600.0));
  app.add_option("--outstanding", f->outstanding, "Requests in flight at saturation")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--data", f->tiers.data,
                 "The data of the application [hdsearch: synthetic:N=20000,D=128; else as in its topology]");
  app.add_option("--leaves", f->tiers.leaves, "Leaves [4]")->check(CLI::Range(1, 64));
  app.add_option("--leaf-config", f->tiers.leaf_config, "Threading model of the leaves [as in its topology]");
  app.add_option("--program", f->tiers.program, "The program of the tiers; found in the build by default");
  app.add_flag("--all-pools", f->all_pools,
               "Every pool size at every load, not only the best: three times as long");
  bench::AddCommonFlags(
      app, f,
      {.quick = "1 round of 0.4 s a cell, two pool sizes a model at most", .seed = "Of the arrivals"});
}

int Fail(const absl::Status& status) { return bench::Fail("models_bench", status); }

// The plan that the flags ask for, before anything runs.
struct Plan {
  Results results;
  std::vector<LoadSpec> loads;
};

absl::StatusOr<Plan> MakePlan(const Flags& flags) {
  Plan plan;
  Results& r = plan.results;
  r.service = flags.service;
  r.flags = flags;
  r.pick_outstanding = flags.outstanding;
  r.pick_rate_per_s = kPickRate;
  if (flags.quick) r.timing = Timing::Quick();
  r.timing.rounds = flags.rounds;
  if (flags.seconds > 0) r.timing.cell_s = flags.seconds;
  const bool quick_loads = flags.quick && flags.loads == kDefaultLoads;
  absl::StatusOr<std::vector<LoadSpec>> loads = ParseLoads(quick_loads ? kQuickLoads : flags.loads);
  if (!loads.ok()) return absl::InvalidArgumentError(absl::StrCat("--loads: ", loads.status().message()));
  plan.loads = *std::move(loads);
  const std::string& leaf_config = flags.tiers.leaf_config;
  if (const auto leaf = Config::Parse(leaf_config); !leaf_config.empty() && !leaf.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--leaf-config: ", leaf.status().message()));
  }
  r.machine = bench::LookAtMachine();
  std::vector<Config> configs = DefaultCandidates(r.machine.cpus, flags.quick);
  if (!flags.configs.empty()) {
    absl::StatusOr<std::vector<Config>> given = ParseConfigs(flags.configs);
    if (!given.ok()) return absl::InvalidArgumentError(absl::StrCat("--configs: ", given.status().message()));
    configs = *std::move(given);
  }
  for (const Config& config : configs) {
    Candidate candidate;
    candidate.config = config;
    r.candidates.push_back(std::move(candidate));
  }
  return plan;
}

// The best pools, or all, and the loads that follow from what they reach. Errors: INVALID_ARGUMENT when
// nothing is left.
absl::Status Choose(bool all_pools, Plan* plan) {
  Results& r = plan->results;
  r.chosen = ChooseBest(r.candidates);
  if (all_pools) {
    r.chosen.clear();
    for (size_t i = 0; i < r.candidates.size(); ++i) {
      if (r.candidates[i].measured) r.chosen.push_back(i);
    }
  }
  if (r.chosen.empty()) {
    std::string why;
    for (const Candidate& c : r.candidates)
      absl::StrAppend(&why, "\n  ", c.config.ToString(), ": ", c.problem);
    return absl::InvalidArgumentError(absl::StrCat("no config could be measured:", why));
  }
  double highest = 0;
  for (size_t i : r.chosen) highest = std::max(highest, r.candidates[i].saturation_per_s);
  for (double rate : ResolveLoads(plan->loads, highest)) r.loads.push_back({.rate_per_s = rate});
  r.loads.push_back({.outstanding = r.pick_outstanding});
  return absl::OkStatus();
}

std::string ChoiceLine(const Results& r) {
  std::vector<std::string> configs;
  std::vector<double> rates;
  for (size_t i : r.chosen) configs.push_back(r.candidates[i].config.ToString());
  for (const Load& load : r.loads) {
    if (!load.closed()) rates.push_back(load.rate_per_s);
  }
  return absl::StrFormat("%s at %s requests a second and at saturation; rounds: %d, about %.0f s",
                         absl::StrJoin(configs, ", "), absl::StrJoin(rates, ", "), r.timing.rounds,
                         r.timing.TotalSeconds(0, configs.size(), rates));
}

absl::Status Run(const apps::Application& service, const Flags& flags, const deploy::LogFolder& logs,
                 bench::Session& session, Plan* plan) {
  Results& r = plan->results;
  session.Note(absl::StrFormat("%s\n%s; seed %d; configs to try: %d, about %.0f s", service.description,
                               bench::ToString(r.machine), flags.seed, r.candidates.size(),
                               r.timing.TotalSeconds(r.candidates.size(), 0, {})));
  absl::StatusOr<std::unique_ptr<deploy::Tiers>> tiers =
      deploy::Tiers::Start(service.topology, logs, session.stop());
  if (!tiers.ok()) return tiers.status();
  Sweep sweep(service, **tiers, r.timing, flags.seed, session.stop(),
              [&session](const std::string& line) { session.Progress(line); });
  absl::Status status = sweep.MeasureCandidates(&r);
  if (status.ok()) status = Choose(flags.all_pools, plan);
  if (status.ok()) {
    session.Note(ChoiceLine(r));
    status = sweep.MeasureRows(&r);
  }
  return status;
}

// True if all that the server has was measured.
bool AllWell(const Results& r) {
  for (const Candidate& c : r.candidates) {
    if (c.available && !c.measured) return false;
  }
  for (const Row& row : r.rows) {
    if (!row.problem.empty()) return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<apps::Application>> MakeService(const Flags& flags) {
  apps::ApplicationOptions options = flags.tiers;
  // Small, so that the work of a leaf leaves the threading something to decide.
  if (flags.service == "hdsearch" && options.data.empty()) options.data = "synthetic:N=20000,D=128";
  return apps::MakeApplication(flags.service, options);
}

int RunBench(const Flags& flags) {
  bench::Session session(flags);
  absl::StatusOr<Plan> plan = MakePlan(flags);
  if (!plan.ok()) return Fail(plan.status());
  const absl::StatusOr<std::unique_ptr<apps::Application>> service = MakeService(flags);
  if (!service.ok()) return Fail(service.status());
  plan->results.description = (*service)->description;
  deploy::LogFolder logs;
  if (logs.path().empty()) {
    return Fail(absl::InternalError("cannot make a folder for logs; set TMPDIR to one that can be written"));
  }
  const absl::Status status = Run(**service, flags, logs, session, &*plan);
  Results& results = plan->results;
  results.interrupted = status.code() == absl::StatusCode::kCancelled;
  if (!status.ok() && !results.interrupted && results.rows.empty()) {
    if (status.code() == absl::StatusCode::kInvalidArgument) return Fail(status);
    logs.Keep();
    return Fail(
        absl::Status(status.code(), absl::StrCat(status.message(), "\nthe logs are in ", logs.path())));
  }
  return session.Finish("models_bench", ReportOf(results), status, AllWell(results) ? kOk : kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout, "models_bench");
  app.footer(kExamples);
  Flags flags;
  flags.rounds = Timing().rounds;
  AddFlags(app, &flags);
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  if (flags.quick && app.count("--rounds") == 0) flags.rounds = Timing::Quick().rounds;
  return RunBench(flags);
}
