// SPDX-License-Identifier: Apache-2.0
//
// instructions_bench: what a policy adds to the instructions of an application's mid-tier (figure 15 of muTune, OSDI'18).
//
// Each config is counted without a policy, and under it with a profile that holds only that config, so that the same
// threads do the same work. valgrind's callgrind counts; a count does not depend on what else the machine does.
//
//   1. A run sends kWarmRequests first and then, but for the base run, kRequests; only ended mid-tiers are counted.
//   2. The count of a request is that of a run less that of the base run, over the requests that the base did not have:
//      start, loading, first connections and end drop out.
//   3. Rounds take turns over configs; the median of the rounds counts. How requests share work differs from run to run.
#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/shipped/application.h"
#include "bench/common/callgrind.h"
#include "bench/common/one_config_profile.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/common/spread.h"
#include "curtail/deploy/tiers.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/report/report.h"
#include "plan.h"

namespace {

using namespace curtail;

constexpr char kExamples[] =
    R"(Configs whose network threads poll are refused: they would be charged for waiting.

Examples:
  instructions_bench --service router                       # some 5 minutes
  instructions_bench --service hdsearch --configs SDB1-16 --rounds 5 --json hdsearch.json

Exit codes: 0 ok, 1 something could not be measured or written, 104 bad flags, a missing program or data set,
105 interrupted.)";

constexpr uint64_t kWarmRequests = 300;
constexpr uint64_t kRequests = 1000;
// How many requests are under way: one, and enough that threads share work.
constexpr int kOutstanding[] = {1, 16};
constexpr Nanos kRunLimit = std::chrono::seconds(120);
constexpr Nanos kEndLimit = std::chrono::seconds(60);

struct Flags : bench::CommonFlags {
  std::string service, configs = "SIB1,SDB1-16,ADB1-2-2", policy = "mutune";
  apps::ApplicationOptions tiers;
};

// Ends a closed loop after so many requests.
class CountDown final : public RunObserver {
 public:
  explicit CountDown(uint64_t requests) : left_(requests) {}
  void Started(TimePoint) override {}
  void Ended(Nanos, Nanos, bool ok) override {
    ++ended_;
    failed_ += ok ? 0 : 1;
    if (ended_ >= left_) stop_ = true;
  }
  const std::atomic<bool>& stop() const { return stop_; }
  uint64_t ended() const { return ended_; }
  uint64_t failed() const { return failed_; }

 private:
  const uint64_t left_;
  uint64_t ended_ = 0, failed_ = 0;
  std::atomic<bool> stop_{false};
};

// A config, with a policy or without, and what the rounds counted.
struct Subject {
  Config config;
  bool policy = false;
  std::vector<std::vector<double>> counts;  // instructions a request, by kOutstanding
};

class Counter {
 public:
  Counter(const apps::Application& service, deploy::Tiers& tiers, bench::Callgrind callgrind,
          const deploy::LogFolder& logs, std::string policy, const std::atomic<bool>& stop)
      : service_(service),
        tiers_(tiers),
        callgrind_(std::move(callgrind)),
        logs_(logs),
        policy_(std::move(policy)),
        stop_(stop) {}

  // One round.
  absl::Status Count(Subject* subject) {
    deploy::MidTierSetup setup{.config = subject->config.ToString()};
    if (subject->policy) {
      const absl::StatusOr<std::string> profile = bench::OneConfigProfile(subject->config, service_.service);
      if (!profile.ok()) return profile.status();
      setup.policy = policy_;
      setup.profile = absl::StrCat(logs_.path(), "/", setup.config, ".profile.json");
      if (absl::Status status = WriteFile(setup.profile, *profile); !status.ok()) return status;
    }
    uint64_t none = 0;
    const absl::StatusOr<double> base = Run(setup, 0, &none);
    if (!base.ok()) return base.status();
    for (size_t i = 0; i < std::size(kOutstanding); ++i) {
      uint64_t requests = 0;
      const absl::StatusOr<double> total = Run(setup, kOutstanding[i], &requests);
      if (!total.ok()) return total.status();
      subject->counts[i].push_back((*total - *base) / static_cast<double>(requests));
    }
    return absl::OkStatus();
  }

 private:
  // The instructions in all the life of a mid-tier that answers the warm-up, and kRequests unless outstanding is 0.
  absl::StatusOr<double> Run(deploy::MidTierSetup setup, int outstanding, uint64_t* requests) {
    setup.wrapper = callgrind_.NextWrapper();
    const absl::StatusOr<std::unique_ptr<deploy::MidTier>> mid_tier = tiers_.StartMidTier(std::move(setup));
    if (!mid_tier.ok()) return mid_tier.status();
    absl::StatusOr<uint64_t> sent = Send((*mid_tier)->address(), kOutstanding[1], kWarmRequests);
    if (sent.ok() && outstanding > 0) sent = Send((*mid_tier)->address(), outstanding, kRequests);
    if (!sent.ok()) return sent.status();
    *requests = *sent;
    if (stop_) return absl::CancelledError("interrupted");
    if (absl::Status status = tiers_.CheckLeaves(); !status.ok()) return status;
    if (absl::Status status = (*mid_tier)->End(kEndLimit); !status.ok()) return status;
    return callgrind_.Total();
  }

  // Returns how many were answered: those under way at the end come on top.
  absl::StatusOr<uint64_t> Send(const std::string& address, int outstanding, uint64_t requests) {
    if (requests_ == nullptr) {
      absl::StatusOr<std::shared_ptr<const Workload>> made = service_.requests();
      if (!made.ok()) return made.status();
      requests_ = *std::move(made);
    }
    CountDown count(requests);
    RunOptions options;
    options.targets = {address};
    options.workload_name = service_.name;
    options.warmup = Nanos::zero();
    options.timeout = std::chrono::seconds(10);  // valgrind takes some fifty times as long
    options.stop = &count.stop();
    options.observer = &count;
    const absl::StatusOr<LoadResult> result = RunClosedLoop(options, *requests_, outstanding, kRunLimit);
    if (!result.ok()) return result.status();
    if (count.failed() > 0) {
      return absl::UnavailableError(absl::StrCat(count.failed(), " of ", count.ended(), " requests failed"));
    }
    if (count.ended() < requests) {
      return absl::DeadlineExceededError(
          absl::StrCat("only ", count.ended(), " requests in ", ToSeconds(kRunLimit), " s"));
    }
    return count.ended();
  }
  static double ToSeconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

  const apps::Application& service_;
  deploy::Tiers& tiers_;
  bench::Callgrind callgrind_;
  const deploy::LogFolder& logs_;
  const std::string policy_;
  const std::atomic<bool>& stop_;
  std::shared_ptr<const Workload> requests_;  // null until the first call: see Application::requests
};

std::string NameOf(const Subject& subject, const std::string& policy) {
  return subject.config.ToString() + (subject.policy ? "+" + policy : "");
}

// subjects[i + 1] is subjects[i] with the policy, for every even i.
bench::Table TableOf(const std::vector<Subject>& subjects, const std::string& policy) {
  const auto thousands = [](double count) { return bench::Fixed(1)(count / 1000); };
  const auto percent = [](double added) { return absl::StrFormat("%+.1f", added); };
  bench::Table table("counts");
  for (size_t s = 0; s < subjects.size(); ++s) {
    std::vector<bench::Field> row = {{"config", "config", NameOf(subjects[s], policy)}};
    for (size_t i = 0; i < std::size(kOutstanding); ++i) {
      const std::vector<double>& counts = subjects[s].counts[i];  // none if interrupted before
      const std::string load = absl::StrCat(kOutstanding[i], " under way");
      row.push_back({absl::StrCat("closed_", kOutstanding[i], ".user_instructions_per_request"),
                     "thousand instructions/request, " + load, counts, bench::Median(thousands)});
      bench::Cell added = "";
      if (subjects[s].policy && !counts.empty()) {
        const double base = bench::SpreadOf(subjects[s - 1].counts[i]).median;
        added = 100 * (bench::SpreadOf(counts).median / base - 1);
      }
      row.push_back({absl::StrCat("closed_", kOutstanding[i], ".added_percent"), "added, %", added,
                     bench::Median(percent)});
    }
    table.Add(std::move(row));
  }
  return table;
}

absl::StatusOr<std::vector<Subject>> MakeSubjects(const Flags& flags) {
  const absl::StatusOr<std::vector<Config>> configs = models::ParseConfigs(flags.configs);
  if (!configs.ok())
    return absl::InvalidArgumentError(absl::StrCat("--configs: ", configs.status().message()));
  std::vector<Subject> subjects;
  for (const Config& config : *configs) {
    if (config.model.reception == Reception::kPoll) {
      return absl::InvalidArgumentError(
          absl::StrCat("--configs: ", config.ToString(), " polls; take one that blocks"));
    }
    for (const bool policy : {false, true}) {
      subjects.push_back({config, policy, std::vector<std::vector<double>>(std::size(kOutstanding))});
    }
  }
  return subjects;
}

int Fail(const absl::Status& status) { return bench::Fail("instructions_bench", status); }

int Run(const Flags& flags, const deploy::LogFolder& logs) {
  bench::Session session(flags);
  absl::StatusOr<std::vector<Subject>> subjects = MakeSubjects(flags);
  if (!subjects.ok()) return Fail(subjects.status());
  const absl::StatusOr<bench::Callgrind> callgrind = bench::Callgrind::Find(logs.path());
  if (!callgrind.ok()) return Fail(callgrind.status());
  const auto service = apps::MakeApplication(flags.service, flags.tiers);
  if (!service.ok()) return Fail(service.status());
  const auto tiers = deploy::Tiers::Start((*service)->topology, logs, session.stop());
  if (!tiers.ok()) return Fail(tiers.status());
  Counter counter(**service, **tiers, *callgrind, logs, flags.policy, session.stop());
  const bench::RoundPlan plan{.rounds = flags.rounds, .subjects = subjects->size(), .stop = &session.stop()};
  const absl::Status status = bench::RunRounds(plan, [&](const bench::Turn& turn) {
    Subject& subject = (*subjects)[turn.subject];
    const std::string name = NameOf(subject, flags.policy);
    session.Progress(absl::StrCat(bench::RoundText(plan, turn), name));
    const absl::Status counted = counter.Count(&subject);
    return counted.ok() ? counted : absl::Status(counted.code(), absl::StrCat(name, ": ", counted.message()));
  });
  bench::Report report("instructions", flags, bench::LookAtMachine());
  report.Set("service", flags.service).Set("policy", flags.policy).Say((*service)->description);
  report.Say(absl::StrCat("User-level instructions of the mid-tier; medians of ", flags.rounds, " rounds"));
  return session.Finish("instructions_bench", report.Add(TableOf(*subjects, flags.policy)), status, kOk);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Counts what a policy adds to the instructions of an application's mid-tier.",
               "instructions_bench");
  app.footer(kExamples);
  Flags flags;
  flags.rounds = 3;
  app.add_option("--service", flags.service, apps::ApplicationNames())->required();
  app.add_option("--configs", flags.configs, "Of the mid-tier; all block")->capture_default_str();
  app.add_option("--policy", flags.policy, "One that goes by a profile")->capture_default_str();
  app.add_option("--data", flags.tiers.data, "The data of the application [as in its topology]");
  bench::AddCommonFlags(app, &flags, {});
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  return Run(flags, deploy::LogFolder());
}
