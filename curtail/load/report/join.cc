// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/join.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace curtail {
namespace {

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
  for (const auto& [error, count] : part.errors) all->errors[error] += count;
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

}  // namespace curtail
