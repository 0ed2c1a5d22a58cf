// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/threshold.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace curtail {
namespace {

enum class LimitUnit { kDuration, kShare, kNumber };

// The percentile that "p99.9" names.
bool ParsePercentile(absl::string_view metric, double* percent) {
  return metric.size() > 1 && metric[0] == 'p' && absl::SimpleAtod(metric.substr(1), percent) &&
         *percent > 0 && *percent <= 100;
}

absl::StatusOr<LimitUnit> LimitUnitOf(absl::string_view metric) {
  double percent = 0;
  if (metric == "mean" || metric == "max" || ParsePercentile(metric, &percent)) return LimitUnit::kDuration;
  if (metric == "errors" || metric == "score" || metric == "checks") return LimitUnit::kShare;
  if (metric == "rate" || metric == "good") return LimitUnit::kNumber;
  if (metric.size() > 1 && metric[0] == 'p' && absl::SimpleAtod(metric.substr(1), &percent)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", metric, "' is not a percentile; N of pN is above 0 and at most 100"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no metric '", metric,
                   "'; use p50, p99 or any pN, mean, max, errors, rate, good, score or checks"));
}

absl::StatusOr<double> ParseLimit(absl::string_view text, LimitUnit unit) {
  if (unit == LimitUnit::kDuration) {
    absl::Duration d;
    if (absl::ParseDuration(std::string(text), &d) && d > absl::ZeroDuration())
      return absl::ToDoubleNanoseconds(d);
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a duration; write 5ms, 800us or 1.5s"));
  }
  double scale = 1;
  if (unit == LimitUnit::kShare && absl::ConsumeSuffix(&text, "%")) scale = 0.01;
  double value = 0;
  const bool number = absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0;
  if (number && unit == LimitUnit::kShare && value * scale > 1)
    return absl::InvalidArgumentError("a share is at most 100%");
  if (number) return value * scale;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not a ", unit == LimitUnit::kShare ? "share; write 0.1% or 0.001" : "number"));
}

absl::StatusOr<Threshold> ParseOne(absl::string_view text) {
  const size_t at = text.find_first_of("<>");
  if (at == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' compares nothing; write it as p99<5ms"));
  }
  const size_t length = text.substr(at + 1, 1) == "=" ? 2 : 1;
  Threshold t;
  t.text = std::string(text);
  t.metric = std::string(text.substr(0, at));
  // "p99.9" has a dot of its own.
  if (const size_t dot = t.metric.find('.'); dot != std::string::npos && !LimitUnitOf(t.metric).ok()) {
    t.part = t.metric.substr(0, dot);
    t.metric.erase(0, dot + 1);
  }
  t.op = std::string(text.substr(at, length));
  const absl::StatusOr<LimitUnit> unit = LimitUnitOf(t.metric);
  if (!unit.ok()) return unit.status();
  if (!t.part.empty() && *unit != LimitUnit::kDuration && t.metric != "errors") {
    return absl::InvalidArgumentError(absl::StrCat("a step or a method has no ", t.metric, "; use ", t.part,
                                                   ".p99 or any pN, mean, max or errors"));
  }
  if (text.find_first_of("<>", at + length + 1) != absl::string_view::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has two conditions; put a comma between them"));
  const absl::StatusOr<double> limit = ParseLimit(text.substr(at + length), *unit);
  if (!limit.ok()) return limit.status();
  t.limit = *limit;
  return t;
}

double MeasureLatency(absl::string_view metric, const Histogram& h) {
  if (h.empty()) return std::numeric_limits<double>::quiet_NaN();
  double percent = 0;
  if (ParsePercentile(metric, &percent)) return static_cast<double>(h.Percentile(percent).count());
  return static_cast<double>((metric == "mean" ? h.mean() : h.max()).count());
}

double Measure(absl::string_view metric, const LoadResult& r) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (metric == "score") return r.score.count == 0 ? none : r.score.mean();
  if (metric == "checks") return r.reply_checks.replies == 0 ? none : r.reply_checks.failed_fraction();
  if (r.all.empty()) return none;
  const absl::StatusOr<LimitUnit> unit = LimitUnitOf(metric);
  if (unit.ok() && *unit == LimitUnit::kDuration) return MeasureLatency(metric, r.all);
  if (metric == "errors") return r.failed_fraction();
  return metric == "rate" ? r.sent_per_s : r.good_per_s;
}

const PartResult* FindPart(absl::string_view name, const LoadResult& r) {
  for (const auto* parts : {&r.steps, &r.methods}) {
    for (const PartResult& part : *parts) {
      if (part.name == name) return &part;
    }
  }
  return nullptr;
}

double MeasurePart(const Threshold& t, const LoadResult& r) {
  const PartResult* part = FindPart(t.part, r);
  if (part == nullptr || part->latency.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (t.metric != "errors") return MeasureLatency(t.metric, part->latency);
  return static_cast<double>(part->failed) / static_cast<double>(part->latency.count());
}

// True if a generator that is never late might have measured what `holds`.
template <class Holds>
bool MightHold(absl::string_view metric, const LoadResult& r, const Holds& holds) {
  const absl::StatusOr<LimitUnit> unit = LimitUnitOf(metric);
  const bool latency = unit.ok() && *unit == LimitUnit::kDuration;
  if (!r.valid() && r.all.empty()) return true;
  if (r.valid() || r.send_lag.empty()) return latency && holds(MeasureLatency(metric, r.since_sent));
  // Its timeouts and its rate may be its own doing; its replies were late by no more than it.
  if (!latency || r.success.empty()) return true;
  return holds(MeasureLatency(metric, r.success) - 2 * MeasureLatency(metric, r.send_lag));
}

}  // namespace

absl::StatusOr<std::vector<Threshold>> ParseThresholds(std::string_view text) {
  std::vector<Threshold> result;
  const std::string packed = absl::StrReplaceAll(std::string(text), {{" ", ""}});
  if (packed.empty()) return absl::InvalidArgumentError("the condition is empty; write p99<5ms");
  for (absl::string_view part : absl::StrSplit(packed, ',')) {
    absl::StatusOr<Threshold> one = ParseOne(part);
    if (!one.ok()) return one.status();
    result.push_back(*std::move(one));
  }
  return result;
}

ThresholdOutcome Evaluate(const Threshold& threshold, const LoadResult& result) {
  const bool all = threshold.part.empty();
  ThresholdOutcome outcome{threshold,
                           all ? Measure(threshold.metric, result) : MeasurePart(threshold, result), false};
  const double b = threshold.limit;
  const auto holds = [&](double a) {  // a comparison with NaN is false
    return (threshold.op == "<" && a < b) || (threshold.op == "<=" && a <= b) ||
           (threshold.op == ">" && a > b) || (threshold.op == ">=" && a >= b);
  };
  outcome.met = holds(outcome.actual);
  // Of a part no times are kept without the generator's lateness.
  outcome.undecided = !outcome.met && (all ? MightHold(threshold.metric, result, holds) : !result.valid());
  return outcome;
}

std::string_view Verdict(const ThresholdOutcome& outcome) {
  return outcome.met ? "met" : outcome.undecided ? "undecided" : "failed";
}

std::string ActualText(const ThresholdOutcome& outcome) {
  const absl::StatusOr<LimitUnit> unit = LimitUnitOf(outcome.threshold.metric);
  if (!unit.ok() || std::isnan(outcome.actual)) return "not measured";
  if (*unit == LimitUnit::kDuration)
    return outcome.actual < 1e9 ? absl::StrFormat("%.3g ms", outcome.actual / 1e6)
                                : absl::StrFormat("%.3g s", outcome.actual / 1e9);
  if (*unit == LimitUnit::kShare) return absl::StrFormat("%.3g %%", outcome.actual * 100);
  return absl::StrFormat("%.1f", outcome.actual);
}

std::string Describe(const ThresholdOutcome& outcome) {
  return absl::StrFormat("%s  (%s%s)", outcome.threshold.text, ActualText(outcome),
                         outcome.undecided ? "; the generator's lateness decides" : "");
}

std::vector<std::vector<ThresholdOutcome>> EvaluateAll(const LoadReport& report) {
  std::vector<std::vector<ThresholdOutcome>> outcomes;
  for (const std::string& text : report.thresholds) {
    const absl::StatusOr<std::vector<Threshold>> parsed = ParseThresholds(text);
    for (const Threshold& threshold : parsed.value()) {
      std::vector<ThresholdOutcome>& of_runs = outcomes.emplace_back();
      for (const LoadResult& run : report.runs) of_runs.push_back(Evaluate(threshold, run));
    }
  }
  return outcomes;
}

}  // namespace curtail
