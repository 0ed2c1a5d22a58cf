// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/join.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "curtail/load/report/internal/error_texts.h"

namespace curtail {
namespace {

constexpr double kMaxApart = 0.01;  // starts, of the measured window

void AddParts(const std::vector<PartResult>& from, std::vector<PartResult>* to) {
  for (const PartResult& part : from) {
    const auto known =
        std::find_if(to->begin(), to->end(), [&](const PartResult& p) { return p.name == part.name; });
    if (known == to->end()) {
      to->push_back(part);
      continue;
    }
    known->ok += part.ok;
    known->failed += part.failed;
    known->latency.Merge(part.latency);
  }
}

void AddSeries(const std::vector<LoadInterval>& from, std::vector<LoadInterval>* to) {
  if (to->size() < from.size()) to->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    LoadInterval& all = (*to)[i];
    all.end = std::max(all.end, from[i].end);
    all.length = std::max(all.length, from[i].length);
    all.due += from[i].due;
    all.sent += from[i].sent;
    all.ok += from[i].ok;
    all.failed += from[i].failed;
    all.p50 = std::max(all.p50, from[i].p50);
    all.p99 = std::max(all.p99, from[i].p99);
    all.in_flight += from[i].in_flight;
    if (all.config.empty()) all.config = from[i].config;
  }
}

void AddScore(const ScoreSummary& from, ScoreSummary* to) {
  to->name = from.name;
  to->count += from.count;
  to->sum += from.sum;
  to->min = std::min(to->min, from.min);
}

void AddReplyChecks(const ReplyCheckSummary& from, ReplyCheckSummary* to) {
  to->replies += from.replies;
  to->failed += from.failed;
  to->checks.resize(from.checks.size());
  for (size_t i = 0; i < from.checks.size(); ++i) {
    to->checks[i].failed += from.checks[i].failed;
    if (to->checks[i].example.empty()) to->checks[i].example = from.checks[i].example;
  }
}

void Worse(const std::optional<double>& from, std::optional<double>* to) {
  if (from && (!*to || std::abs(*from) > std::abs(**to))) *to = from;
}

void AddCounters(const LoadResult& part, LoadResult* all) {
  all->measured = std::max(all->measured, part.measured);
  all->interrupted |= part.interrupted;
  if (part.started > Nanos::zero() && (all->started == Nanos::zero() || part.started < all->started))
    all->started = part.started;
  all->scheduled += part.scheduled;
  all->sent += part.sent;
  all->ok += part.ok;
  all->failed += part.failed;
  all->dropped += part.dropped;
  all->retried += part.retried;
  all->retries += part.retries;
  all->unfinished += part.unfinished;
  all->scheduled_per_s += part.scheduled_per_s;
  all->sent_per_s += part.sent_per_s;
  all->good_per_s += part.good_per_s;
  for (const auto& [code, count] : part.codes) all->codes[code] += count;
  for (const auto& [error, count] : part.errors) internal::AddError(error, count, &all->errors);
  all->cpu += part.cpu;
  all->spin += part.spin;
}

void AddHistograms(const LoadResult& part, LoadResult* all) {
  all->all.Merge(part.all);
  all->since_sent.Merge(part.since_sent);
  all->success.Merge(part.success);
  all->failure.Merge(part.failure);
  all->send_lag.Merge(part.send_lag);
  all->with_pauses.Merge(part.with_pauses);
}

// The warnings that a judgement does not give: those of its client.
std::vector<std::string> OwnWarnings(LoadResult part) {
  const std::vector<std::string> all = std::exchange(part.warnings, {});
  Judge(part);
  std::vector<std::string> own;
  for (const std::string& warning : all) {
    if (std::find(part.warnings.begin(), part.warnings.end(), warning) == part.warnings.end())
      own.push_back(warning);
  }
  return own;
}

// The plan of all shares. Those of one test have the same; a run's priority and spin are its generator's.
LoadPlan WholePlan(LoadPlan share) {
  share.share = 0;
  share.realtime = false;
  share.spin = Nanos::zero();
  return share;
}

// The first difference of a plan from the plan of the file `other`: "--seed 9, a.json has 1".
std::string FirstDifference(const LoadPlan& plan, const LoadPlan& of, const std::string& other) {
  const auto text = [](Nanos time) { return absl::FormatDuration(absl::FromChrono(time)); };
  const std::tuple<const char*, std::string, std::string> kParts[] = {
      {"the target ", plan.target, of.target},
      {"--method ", plan.method, of.method},
      {"--seed ", absl::StrCat(plan.seed), absl::StrCat(of.seed)},
      {"--share of ", absl::StrCat(plan.shares), absl::StrCat(of.shares)},
      {"--threads ", absl::StrCat(plan.threads), absl::StrCat(of.threads)},
      {"--connections ", absl::StrCat(plan.connections), absl::StrCat(of.connections)},
      {"--closed ", absl::StrCat(plan.outstanding), absl::StrCat(of.outstanding)},
      {"the schedule ", plan.schedule, of.schedule},
      {"--requests ", absl::StrCat(plan.requests), absl::StrCat(of.requests)},
      {"--duration ", text(plan.duration), text(of.duration)},
      {"--warmup ", text(plan.warmup), text(of.warmup)},
      {"--timeout ", text(plan.timeout), text(of.timeout)}};
  for (const auto& [name, own, others] : kParts) {
    if (own != others) return absl::StrCat(name, own, ", ", other, " has ", others);
  }
  return absl::StrCat("another plan than ", other);
}

absl::Status CheckShares(const std::vector<ShareReport>& parts) {
  const LoadPlan whole = WholePlan(parts.front().report.runs.front().plan);
  std::map<int, std::string> names;  // by share
  for (const auto& [name, report] : parts) {
    const LoadPlan& plan = report.runs.front().plan;
    if (plan.share == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is not a share of a run: curtail load --share 1/2 and 2/2 make two"));
    }
    if (WholePlan(plan) != whole) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has ", FirstDifference(WholePlan(plan), whole, parts.front().name),
                       "; run all shares with the same flags"));
    }
    if (const auto [known, added] = names.emplace(plan.share, name); !added) {
      return absl::InvalidArgumentError(
          name == known->second ? absl::StrCat(name, " is named twice; name each share once")
                                : absl::StrCat(name, " and ", known->second, " are both share ", plan.share,
                                               " of ", plan.shares, "; give each generator its own --share"));
    }
  }
  return absl::OkStatus();
}

// The reason why `run` is not a part of the run that `first` is a part of; empty: it is one.
std::string ReasonAgainst(const LoadResult& run, const LoadResult& first) {
  if (run.interrupted) {
    return absl::StrFormat("it was interrupted after %.1f of %.1f s", InSeconds(run.measured),
                           InSeconds(run.plan.duration));
  }
  if (run.started == Nanos::zero()) return "its file does not have when it started";
  const double apart_s = std::abs(InSeconds(run.started - first.started));
  const double window_s = InSeconds(run.plan.requests > 0 ? run.measured : run.plan.duration);
  if (apart_s <= kMaxApart * window_s) return "";
  return absl::StrFormat(
      "it started %.3f s from the first file's, and 1 %% of the window of %g s is allowed; "
      "give all the same --start-at, and let their clocks agree",
      apart_s, window_s);
}

// Why run number `number` of the shares says nothing about the whole.
std::vector<std::string> ReasonsAgainst(const std::vector<ShareReport>& parts, size_t number) {
  std::vector<std::string> reasons;
  std::set<int> there;
  const LoadResult* first = nullptr;
  for (const auto& [name, report] : parts) {
    if (report.runs.size() <= number) continue;
    const LoadResult& run = report.runs[number];
    if (first == nullptr) first = &run;
    there.insert(run.plan.share);
    for (const std::string& reason : run.invalid) reasons.push_back(absl::StrCat(name, ": ", reason));
    const std::string reason = ReasonAgainst(run, *first);
    if (!reason.empty()) reasons.push_back(absl::StrCat(name, ": ", reason));
  }
  for (int share = 1; share <= first->plan.shares; ++share) {
    if (there.contains(share)) continue;
    reasons.push_back(
        absl::StrFormat("share %d of %d has no result: its generator sent nothing, or has ended early", share,
                        first->plan.shares));
  }
  return reasons;
}

}  // namespace

LoadResult JoinResults(LoadPlan plan, const std::vector<LoadResult>& parts) {
  LoadResult all;
  all.plan = std::move(plan);
  all.plan.realtime = true;
  std::vector<std::string> warnings;
  for (const LoadResult& part : parts) {
    all.plan.realtime &= part.plan.realtime;
    all.plan.spin = std::max(all.plan.spin, part.plan.spin);
    AddCounters(part, &all);
    AddHistograms(part, &all);
    AddParts(part.steps, &all.steps);
    AddParts(part.methods, &all.methods);
    AddScore(part.score, &all.score);
    AddReplyChecks(part.reply_checks, &all.reply_checks);
    AddSeries(part.series, &all.series);
    Worse(part.checks.gaps_a2, &all.checks.gaps_a2);
    Worse(part.checks.neighbours, &all.checks.neighbours);
    Worse(part.checks.trend, &all.checks.trend);
    for (const std::string& warning : OwnWarnings(part)) {
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
    }
  }
  Judge(all);
  all.warnings.insert(all.warnings.end(), warnings.begin(), warnings.end());
  return all;
}

absl::StatusOr<LoadReport> JoinReports(const std::vector<ShareReport>& parts) {
  if (absl::Status status = CheckShares(parts); !status.ok()) return status;
  size_t most = 0;
  for (const ShareReport& part : parts) most = std::max(most, part.report.runs.size());
  LoadReport whole;
  whole.thresholds = parts.front().report.thresholds;
  for (size_t number = 0; number < most; ++number) {
    std::vector<LoadResult> runs;
    for (const ShareReport& part : parts) {
      if (number < part.report.runs.size()) runs.push_back(part.report.runs[number]);
    }
    LoadResult& run = whole.runs.emplace_back(JoinResults(WholePlan(runs.front().plan), runs));
    const std::vector<std::string> reasons = ReasonsAgainst(parts, number);
    run.invalid.insert(run.invalid.begin(), reasons.begin(), reasons.end());
  }
  return whole;
}

}  // namespace curtail
