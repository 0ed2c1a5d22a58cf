// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/policy_testing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Scenario> Scenarios() {
  return {*SteadyScenario({100, 1000}, seconds(1), seconds(1)),
          *FlashCrowdScenario(100, 2000, seconds(3), seconds(1), seconds(4), seconds(1)),
          *RampScenario(100, 900, seconds(4), seconds(1))};
}

PolicyRun MadeUpRun(const PolicyComparison& c, size_t policy, size_t scenario, int round,
                    const MadeUpLatency& latency) {
  PolicyMeasurement measured{.policy = c.policies[policy], .scenario = scenario, .round = round};
  measured.first_config = policy == 0 ? "SIP1" : absl::StrCat("SDB1-", 48 + policy);
  measured.server_cores = 0.25 * static_cast<double>(policy + 1);
  measured.server_cpu = milliseconds(2500) * static_cast<int>(policy + 1);
  for (const Phase& phase : c.scenarios[scenario].phases) {
    const Nanos took = latency(policy, phase, round);
    if (took < Nanos::zero()) measured.invalid = {"the generator was <late>"};
    const Nanos gap(static_cast<int64_t>(1e9 / phase.rate_per_s));
    for (Nanos due = phase.from; due < phase.to; due += gap)
      measured.samples.push_back({due, std::max(took, Nanos::zero()), took < seconds(1)});
    if (policy == 0 && phase.name == "spike") {
      measured.changes = {
          {phase.from + milliseconds(2), 1900, "SIP1", "SDB1-16", "SIP1 does not sustain the load"},
          {phase.to + milliseconds(50), 120, "SDB1-16", "SIP1", "cheaper"}};
    }
  }
  measured.switches = measured.changes.size();
  return Evaluate(std::move(measured), c.scenarios[scenario]);
}

}  // namespace

PolicyComparison MadeUpComparison(const std::vector<std::string>& policies, int rounds,
                                  const MadeUpLatency& latency) {
  PolicyComparison c;
  c.application = "hdsearch";
  c.data = "10000 made-up points";
  c.profile = "profile.json (5 configs)";
  c.machine = Machine{8, "Test CPU", "Linux 6.1.0", 0.5};
  c.curtail_version = "0.1.0";
  c.seed = 7;
  c.slo = milliseconds(10);
  c.scenarios = Scenarios();
  c.policies = policies;
  c.rounds = rounds;
  for (int round = 0; round < rounds; ++round) {
    for (size_t scenario = 0; scenario < c.scenarios.size(); ++scenario) {
      for (size_t policy = 0; policy < policies.size(); ++policy)
        c.runs.push_back(MadeUpRun(c, policy, scenario, round, latency));
    }
  }
  return c;
}

PolicyComparison SampleComparison() {
  constexpr microseconds kBase[] = {microseconds(1000), microseconds(1300), microseconds(1000),
                                    microseconds(1500)};
  return MadeUpComparison({"mutune", "fm", "static:SIP1", "static:SDB1-50"}, 5,
                          [&](size_t policy, const Phase& phase, int round) -> Nanos {
                            const microseconds noise(5 * round);
                            if (policy != 2) return kBase[policy] + noise;
                            if (phase.name == "spike" || phase.name == "first second after")
                              return milliseconds(1200);
                            // Below mutune in one round of five.
                            if (phase.name.starts_with("100/s"))
                              return kBase[0] + noise + microseconds(round == 2 ? -8 : 18);
                            return 2 * (kBase[policy] + noise);
                          });
}

PolicyComparison BareComparison(size_t policies, int rounds, size_t phases, const MadeUpP99& p99_us) {
  PolicyComparison c;
  Scenario scenario = *SteadyScenario({100}, seconds(1), seconds(0));
  scenario.phases.clear();
  for (size_t phase = 0; phase < phases; ++phase) scenario.phases.push_back({absl::StrCat(phase, "/s")});
  c.scenarios = {scenario};
  c.rounds = rounds;
  for (size_t policy = 0; policy < policies; ++policy) c.policies.push_back(absl::StrCat("policy-", policy));
  for (int round = 0; round < rounds; ++round) {
    for (size_t policy = 0; policy < policies; ++policy) {
      PolicyRun run{.policy = c.policies[policy], .round = round};
      const std::string config = absl::StrCat("SDB1-", policy + 1);
      for (size_t phase = 0; phase < phases; ++phase) {
        const double p99 = p99_us(policy, round, phase);
        if (p99 < 0) run.invalid = {"late"};
        run.phases.push_back({.due = 1, .p99_us = p99, .config = config, .config_share = 1});
      }
      run.whole = run.phases.front();
      c.runs.push_back(std::move(run));
    }
  }
  return c;
}

}  // namespace curtail::tool
