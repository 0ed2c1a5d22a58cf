// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/demo_story.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/adapt/envelope.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/load/report/statistics.h"
#include "tools/curtail/compare/policy_judge.h"
#include "tools/curtail/compare/policy_summary.h"
#include "tools/curtail/compare/policy_tables.h"

namespace curtail::tool {
namespace {

constexpr char kAdaptive[] = "mutune";
// Not more than so many times the better one's.
constexpr double kNearMedian = 1.15;
constexpr double kNearTail = 1.5;
// Of the p99 of "auto", over all cells: beyond that mutune did not choose well.
constexpr double kConfirmed = 1.25;

bool Blocks(const Config& config) { return config.model.waiting == Waiting::kSync; }

std::optional<size_t> IndexOf(const PolicyComparison& c, std::string_view policy) {
  const auto found = std::find(c.policies.begin(), c.policies.end(), policy);
  if (found == c.policies.end() || c.scenarios.empty()) return std::nullopt;
  const auto index = static_cast<size_t>(found - c.policies.begin());
  if (ValidRuns(c, 0, index).empty()) return std::nullopt;
  return index;
}

double CpuOfCrowd(const PolicyComparison& c, size_t policy) {
  return SpreadOver(ValidRuns(c, 0, policy),
                    [](const PolicyRun& run) { return std::optional(InSeconds(run.server_cpu)); })
      ->median;
}

// `confirmed`: what the training chose was no worse than "auto" in the comparison.
std::string ChoiceText(const Profile& profile, bool confirmed) {
  const absl::StatusOr<Envelope> envelope = Envelope::Make(profile);
  if (!envelope.ok()) return {};
  std::vector<std::string> pieces;
  for (const Envelope::Piece& piece : envelope->pieces()) {
    const std::string config = envelope->configs()[piece.config].ToString();
    pieces.push_back(pieces.empty() ? config
                                    : absl::StrFormat("%s from %.0f/s on", config, piece.from_per_s));
  }
  if (!confirmed) {
    return absl::StrCat("After a short training mutune chose ", absl::StrJoin(pieces, ", "),
                        ", which the comparison does not confirm: a busy machine?");
  }
  if (pieces.size() == 1)
    return absl::StrCat("One config is right for all loads here, ", pieces[0],
                        "; mutune found it and runs it.");
  return absl::StrCat("mutune found ", absl::StrJoin(pieces, ", "), ".");
}

// The first case.
std::string FiberText(const PolicyComparison& c, const Profile& profile) {
  const std::optional<size_t> adaptive = IndexOf(c, kAdaptive);
  const std::optional<size_t> fixed = IndexOf(c, FixedPolicy(Config::Auto()));
  if (!adaptive || !fixed) return {};
  const Judgement judgement = JudgePair(c, *adaptive, *fixed).overall;
  const std::string finding =
      judgement.rounds >= kRoundsToJudge ? absl::StrCat(" (", NameOf(judgement.finding), ")") : "";
  return absl::StrCat("A service that may use fibers: ", ChoiceText(profile, judgement.ratio <= kConfirmed),
                      " Against auto it has ", RatioText(judgement.ratio), " times the p99", finding, " and ",
                      RatioText(CpuOfCrowd(c, *adaptive) / std::max(CpuOfCrowd(c, *fixed), 1e-9)),
                      " times the CPU.");
}

// The numbers that the second case compares: the p50 before and after the crowd, and the p99 in it.
struct Halves {
  std::string name;
  double quiet_us = 0;
  double crowd_us = 0;
};
std::optional<Halves> HalvesOf(const PolicyComparison& c, size_t policy) {
  std::vector<double> quiet, crowd;
  for (const PolicyRun* run : ValidRuns(c, 0, policy)) {
    for (const PhaseResult& result : run->phases) {
      if (result.due == 0) continue;
      if (result.phase.steady) quiet.push_back(result.p50_us);
      if (result.phase.name == "spike") crowd.push_back(result.p99_us);
    }
  }
  if (quiet.empty() || crowd.empty()) return std::nullopt;
  return Halves{std::string(ShortName(c.policies[policy])), Median(std::move(quiet)),
                Median(std::move(crowd))};
}

std::string HalvesText(const Halves& halves) {
  return absl::StrFormat("%s %s ms and %s ms", halves.name, MsText(halves.quiet_us), MsText(halves.crowd_us));
}

// The second case.
std::string BlockingText(const PolicyComparison& c) {
  const std::optional<size_t> adaptive = IndexOf(c, kBlockingPolicy);
  if (!adaptive || FindPhase(c.scenarios[0], "spike") == nullptr) return {};
  const std::optional<Halves> own = HalvesOf(c, *adaptive);
  std::vector<Halves> fixed;
  for (size_t policy = *adaptive + 1; policy < c.policies.size(); ++policy) {
    if (ValidRuns(c, 0, policy).empty()) continue;
    if (const std::optional<Halves> halves = HalvesOf(c, policy)) fixed.push_back(*halves);
  }
  if (!own || fixed.empty()) return {};
  double quiet_us = fixed[0].quiet_us, crowd_us = fixed[0].crowd_us;
  std::vector<std::string> texts;
  for (const Halves& halves : fixed) {
    quiet_us = std::min(quiet_us, halves.quiet_us);
    crowd_us = std::min(crowd_us, halves.crowd_us);
    texts.push_back(HalvesText(halves));
  }
  const auto near = [&](const Halves& halves) {
    return halves.quiet_us <= kNearMedian * quiet_us && halves.crowd_us <= kNearTail * crowd_us;
  };
  const bool one_does = std::any_of(fixed.begin(), fixed.end(), near);
  const char* verdict = one_does     ? "One static config is as good as it gets here"
                        : near(*own) ? "No static config is near the best in both, and mutune is"
                                     : "Neither is near the best in both";
  return absl::StrCat(
      "A service whose libraries block cannot use them: p50 around the crowd and p99 in it are ",
      absl::StrJoin(texts, ", "), ", and with mutune ", MsText(own->quiet_us), " ms and ",
      MsText(own->crowd_us), " ms. ", verdict, ".");
}

}  // namespace

Profile WithoutFibers(const Profile& profile) {
  Profile blocking = profile;
  std::erase_if(blocking.cells, [](const ProfileCell& cell) { return !Blocks(cell.config); });
  Summarize(blocking);
  return blocking;
}

std::vector<PolicyChoice> DemoPolicies(const Profile& profile, const Profile& blocking,
                                       const std::string& blocking_path) {
  std::vector<PolicyChoice> policies = {ParsePolicyChoice(kAdaptive)};
  const bool has_auto = std::any_of(profile.configs.begin(), profile.configs.end(),
                                    [](const ConfigSummary& of) { return of.config == Config::Auto(); });
  if (has_auto) policies.push_back(ParsePolicyChoice(FixedPolicy(Config::Auto())));
  const absl::StatusOr<Envelope> envelope = Envelope::Make(blocking, nullptr, {.cpu_weight = 0});
  if (!envelope.ok()) return policies;
  PolicyChoice adaptive = ParsePolicyChoice(kAdaptive);
  adaptive.label = kBlockingPolicy;
  adaptive.profile = blocking_path;
  adaptive.cpu_weight = 0;
  policies.push_back(std::move(adaptive));
  const Config& low = envelope->Best(0);
  const Config& high = envelope->Best(profile.loads.back());
  policies.push_back(ParsePolicyChoice(FixedPolicy(low)));
  if (high != low) policies.push_back(ParsePolicyChoice(FixedPolicy(high)));
  return policies;
}

void BelieveIfNoneCanBe(PolicyComparison& comparison) {
  bool missing = false;
  for (size_t s = 0; s < comparison.scenarios.size(); ++s) {
    for (size_t policy = 0; policy < comparison.policies.size(); ++policy) {
      const bool ran = std::any_of(comparison.runs.begin(), comparison.runs.end(), [&](const PolicyRun& run) {
        return run.scenario == s && run.policy == comparison.policies[policy];
      });
      missing = missing || (ran && ValidRuns(comparison, s, policy).empty());
    }
  }
  if (!missing) return;
  size_t late = 0;
  for (PolicyRun& run : comparison.runs) {
    late += !run.valid();
    run.invalid.clear();
  }
  comparison.notes.push_back(
      absl::StrFormat("A busy machine: in %d of %d runs the load generator was late itself. They count all "
                      "the same, so latencies "
                      "are upper limits.",
                      late, comparison.runs.size()));
}

std::vector<std::string> DemoStory(const PolicyComparison& comparison, const Profile& profile) {
  std::vector<std::string> lines;
  for (std::string line : {FiberText(comparison, profile), BlockingText(comparison)}) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace curtail::tool
