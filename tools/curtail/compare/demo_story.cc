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

double CoresOf(const PolicyComparison& c, size_t policy) {
  return SpreadOver(ValidRuns(c, 0, policy),
                    [](const PolicyRun& run) { return std::optional(run.server_cores); })
      ->median;
}

// The CPU of each policy with a run that can be believed.
std::string CoresText(const PolicyComparison& c) {
  std::vector<std::string> texts;
  for (const std::string& policy : c.policies) {
    const std::optional<size_t> index = IndexOf(c, policy);
    if (index)
      texts.push_back(absl::StrFormat("%s %.2f", std::string(ShortName(policy)), CoresOf(c, *index)));
  }
  if (texts.empty()) return {};
  return absl::StrCat("CPU of the mid-tier in cores, medians of the rounds: ", absl::StrJoin(texts, ", "),
                      ".");
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
  return absl::StrCat("A service that may use fibers: ", ChoiceText(profile, judgement.ratio <= kConfirmed),
                      " Against auto it has ", TimesText(judgement), " the p99 (", NameOf(judgement.finding),
                      ") and ", RatioText(CoresOf(c, *adaptive) / std::max(CoresOf(c, *fixed), 1e-9)),
                      " times the CPU.");
}

// The numbers that the second case compares: the p50 before and after the crowd, and the p99 in it.
double HalfOf(const PhaseResult& result) {
  if (result.due == 0) return 0;
  return result.phase.steady ? result.p50_us : result.phase.name == "spike" ? result.p99_us : 0;
}

// "SIP1 0.40 ms and 500 ms": the medians of both.
std::string HalvesText(const PolicyComparison& c, size_t policy) {
  std::vector<double> quiet, crowd;
  for (const PolicyRun* run : ValidRuns(c, 0, policy)) {
    for (const PhaseResult& result : run->phases) {
      const double half_us = HalfOf(result);
      if (half_us > 0) (result.phase.steady ? quiet : crowd).push_back(half_us);
    }
  }
  const auto text = [](const std::vector<double>& us) { return us.empty() ? "-" : MsText(Median(us)); };
  return absl::StrCat(std::string(ShortName(c.policies[policy])), " ", text(quiet), " ms and ", text(crowd),
                      " ms");
}

// One static config that is as good makes adaptation needless, whatever the others are.
std::string BeliefText(const std::vector<std::string>& as_good, const std::vector<std::string>& unclear,
                       bool too_few) {
  if (too_few) return absl::StrCat("fewer than ", kRoundsToJudge, " rounds, so nothing is believed");
  if (!as_good.empty()) return absl::StrCat("one static config is right here, ", as_good[0]);
  if (!unclear.empty())
    return absl::StrCat("a win over ", absl::StrJoin(unclear, " and "), " is not believed");
  return "no static config does both, and the win is believed";
}

// The second case.
std::string BlockingText(const PolicyComparison& c) {
  const std::optional<size_t> adaptive = IndexOf(c, kBlockingPolicy);
  if (!adaptive || FindPhase(c.scenarios[0], "spike") == nullptr) return {};
  std::vector<std::string> halves, ratios, as_good, unclear;
  bool too_few = false;
  for (size_t policy = *adaptive + 1; policy < c.policies.size(); ++policy) {
    if (ValidRuns(c, 0, policy).empty()) continue;
    const std::string name(ShortName(c.policies[policy]));
    const Judgement judgement = JudgeBy(HalfOf, c, *adaptive, policy);
    halves.push_back(HalvesText(c, policy));
    ratios.push_back(
        absl::StrCat(TimesText(judgement), " those of ", name, " (", NameOf(judgement.finding), ")"));
    too_few = too_few || judgement.finding == Finding::kTooFew;
    if (judgement.finding == Finding::kCannotTell) unclear.push_back(name);
    else if (judgement.finding != Finding::kBetter) as_good.push_back(name);
  }
  if (halves.empty()) return {};
  return absl::StrCat(
      "A service whose libraries block cannot use them: p50 around the crowd and p99 in it are ",
      absl::StrJoin(halves, ", "), ", and with ", HalvesText(c, *adaptive), ". By latency alone, these are ",
      absl::StrJoin(ratios, " and "), ": ", BeliefText(as_good, unclear, too_few), ".");
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
  for (std::string line : {FiberText(comparison, profile), BlockingText(comparison), CoresText(comparison)}) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace curtail::tool
