// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/compare_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "curtail/adapt/envelope.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/cpus.h"
#include "curtail/base/strings.h"

namespace curtail::tool {
namespace {

constexpr Nanos kWarmup = std::chrono::seconds(1);
// Profiles have the highest load that was sustained in training; this share of it is sustained on other days, too.
constexpr double kSafe = 0.85;

// True if the service is not of continuations alone: then some config without them is in the profile.
bool CanRunAuto(const Profile& profile) {
  const ConfigFilter runs = RunsUnder(ServiceStyle::kStraightLine);
  return std::any_of(profile.configs.begin(), profile.configs.end(),
                     [&runs](const ConfigSummary& of) { return runs(of.config); });
}

Nanos Scaled(double seconds, double scale) { return Nanos(static_cast<int64_t>(seconds * scale * 1e9)); }

}  // namespace

absl::StatusOr<LoadRange> RangeOf(const Profile& profile) {
  const absl::StatusOr<Envelope> envelope = Envelope::Make(profile);
  if (!envelope.ok()) return envelope.status();
  LoadRange range{.low_per_s = profile.loads.front()};
  double highest = 0;
  for (const Config& config : envelope->configs()) {
    highest = std::max(highest, std::min(*envelope->Sustains(config), profile.loads.back()));
  }
  if (highest < range.low_per_s) {
    return absl::InvalidArgumentError(
        "no config of the profile sustains its lowest load: train again with lower --loads");
  }
  range.low = envelope->Best(range.low_per_s);
  range.peak = envelope->Best(highest);
  range.high_per_s = std::max(range.low_per_s, kSafe * highest);
  // Beyond what the best config at the low load sustains, if that is possible: a flash crowd is to be one.
  const double gives_up = *envelope->Sustains(range.low);
  if (gives_up < highest) range.high_per_s = std::max(range.high_per_s, std::min(highest, 1.1 * gives_up));
  return range;
}

std::vector<std::string> UsualPolicies(std::span<const std::string> fixed) {
  std::vector<std::string> policies;
  for (const PolicyKind* kind : LibraryPolicies()) {
    if (kind->compared) policies.emplace_back(kind->name);
  }
  policies.insert(policies.begin() + 1, fixed.begin(), fixed.end());
  return policies;
}

std::vector<std::string> DefaultPolicies(const LoadRange& range, const Profile& profile) {
  std::vector<std::string> fixed;
  if (CanRunAuto(profile)) fixed.push_back(FixedPolicy(Config::Auto()));
  for (const Config& end : {range.low, range.peak}) {
    if (std::find(fixed.begin(), fixed.end(), FixedPolicy(end)) == fixed.end()) {
      fixed.push_back(FixedPolicy(end));
    }
  }
  std::vector<std::string> policies = UsualPolicies(fixed);
  std::erase_if(policies, [&](const std::string& label) {
    return !CheckPolicy(ParsePolicyChoice(label), &profile).ok();
  });
  return policies;
}

absl::Status CheckPolicy(const PolicyChoice& choice, const Profile* profile, bool own_program) {
  if (choice.wants_profile && profile == nullptr) {
    return absl::InvalidArgumentError(Join(
        "policy ", choice.label, " goes by a profile: make one by curtail train and name it with --profile"));
  }
  if (!ParsePolicy(choice.policy).ok() && own_program) return absl::OkStatus();
  PolicyOptions options{.style = ServiceStyle::kCoroutine, .cpus = UsableCpus()};
  if (!choice.wants_profile) options.configs = {Config{}};  // the server has some to choose from
  const auto made = MakePolicy(choice.policy, choice.wants_profile ? profile : nullptr, options);
  if (made.ok()) return absl::OkStatus();
  const std::string_view hint =
      ParsePolicy(choice.policy).ok() ? "" : "; name the program of one of your own with --program";
  // A policy's own errors begin with its name.
  const std::string name =
      Message(made.status()).starts_with("policy ") ? "" : Join("policy ", choice.label, ": ");
  return absl::InvalidArgumentError(Join(name, Message(made.status()), hint));
}

absl::StatusOr<Scenario> MakeScenario(std::string_view name, double low_per_s, double high_per_s,
                                      const std::vector<double>& loads, Nanos each, double scale) {
  if (name == "steady") return SteadyScenario(loads, each, kWarmup);
  if (name == "flash-crowd") {
    return FlashCrowdScenario(low_per_s, high_per_s, Scaled(3, scale), std::chrono::seconds(1),
                              std::max<Nanos>(Scaled(4, scale), std::chrono::seconds(2)), kWarmup);
  }
  if (name == "ramp") return RampScenario(low_per_s, high_per_s, Scaled(12, scale), kWarmup);
  if (name == "diurnal") return DiurnalScenario(low_per_s, high_per_s, Scaled(20, scale), kWarmup);
  return absl::InvalidArgumentError(absl::StrCat("no scenario \"", std::string(name),
                                                 "\"; there are steady, flash-crowd, ramp and diurnal"));
}

}  // namespace curtail::tool
