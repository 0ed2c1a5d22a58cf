// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/compare.h"
#include "curtail/base/clock.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

constexpr size_t kRunsForTest = 4;  // with fewer on each side no p is below 5 %
constexpr double kSignificance = 0.05;
constexpr double kZ95 = 1.96;
constexpr double kResolution = 1.0 / 128;  // of Histogram: what lies as close may be one value
constexpr double kFewSamples = 30;         // below them a mean is not about normal

// The valid runs of one report, together.
struct Side {
  explicit Side(const LoadReport& report) {
    for (const LoadResult& run : report.runs) {
      if (!run.valid()) continue;
      valid.runs.push_back(run);
      ok += static_cast<double>(run.ok);
      failed += static_cast<double>(run.failed);
      neighbours = std::max(neighbours, run.neighbours());
      seconds += static_cast<double>(run.measured.count()) / 1e9;
    }
    latency = MergedLatency(valid);
  }
  LoadReport valid;
  Histogram latency;
  double neighbours = 0;  // correlation: the strongest of the runs
  double ok = 0;
  double failed = 0;
  double seconds = 0;
};

std::optional<Interval> MeanOfSamples(const Histogram& h) {
  const auto n = static_cast<double>(h.count());
  if (n < kFewSamples) return std::nullopt;
  double squares = 0;
  for (const Histogram::Bucket& b : h.Buckets()) {
    squares += std::pow((InMicros(b.low) + InMicros(b.high)) / 2 - InMicros(h.mean()), 2) *
               static_cast<double>(b.count);
  }
  const double half = kZ95 * std::sqrt(squares / n / (n - 1));
  return Interval{InMicros(h.mean()) - half, InMicros(h.mean()) + half};
}

// Of a share, after Wilson (1927): sound also where nothing failed.
std::optional<Interval> ShareOf(double hits, double n) {
  if (n < kFewSamples) return std::nullopt;
  const double z2 = kZ95 * kZ95;
  const double middle = (hits + z2 / 2) / (n + z2);
  const double half = kZ95 / (n + z2) * std::sqrt(hits * (n - hits) / n + z2 / 4);
  return Interval{std::max(0.0, middle - half), middle + half};
}

// As if replies came independently of each other.
std::optional<Interval> RateOf(double count, double seconds) {
  if (count < kFewSamples || seconds <= 0) return std::nullopt;
  const double half = kZ95 * std::sqrt(count);
  return Interval{(count - half) / seconds, (count + half) / seconds};
}

// Where `metric` lies by the samples of the runs; absent where they are too few, or it has no samples.
std::optional<Interval> WithinRuns(const Side& side, const RunMetric& metric) {
  const std::string_view key = metric.key;
  if (metric.percentile > 0) {
    const ValueInterval ci = PercentileInterval95(side.latency, metric.percentile, side.neighbours);
    if (!ci.low || !ci.high) return std::nullopt;
    return Interval{InMicros(*ci.low), InMicros(*ci.high)};
  }
  if (key == "mean_us") return MeanOfSamples(side.latency);
  if (key == "error_share") return ShareOf(side.failed, side.ok + side.failed);
  if (key == "good_per_s") return RateOf(side.ok, side.seconds);
  return std::nullopt;
}

// The value for all runs together where there are samples, otherwise the median of the runs.
double Together(const Side& side, const RunMetric& metric) {
  const std::string_view key = metric.key;
  if (metric.percentile > 0) return InMicros(side.latency.Percentile(metric.percentile));
  if (key == "mean_us") return InMicros(side.latency.mean());
  if (key == "error_share") return side.ok + side.failed == 0 ? 0 : side.failed / (side.ok + side.failed);
  if (key == "good_per_s") return side.seconds <= 0 ? 0 : side.ok / side.seconds;
  return Median(UsableValues(side.valid, metric));
}

bool SameBucket(const MetricChange& c) {
  return c.metric.percentile > 0 && c.ratio && *c.ratio > 1 / (1 + 1.01 * kResolution) &&
         *c.ratio < 1 + 1.01 * kResolution;
}

ChangeVerdict Direction(const RunMetric& metric, double a, double b) {
  return (b < a) == metric.lower_is_better ? ChangeVerdict::kBetter : ChangeVerdict::kWorse;
}

void JudgeWithinRuns(const Side& a, const Side& b, MetricChange& c) {
  c.a = Together(a, c.metric);
  c.b = Together(b, c.metric);
  if (c.a > 0) c.ratio = c.b / c.a;
  const std::optional<Interval> of_a = WithinRuns(a, c.metric);
  const std::optional<Interval> of_b = WithinRuns(b, c.metric);
  if (!of_a || !of_b) return;
  if (of_a->low > 0) c.ratio_interval = {of_b->low / of_a->high, of_b->high / of_a->low};
  const bool apart = of_a->high < of_b->low || of_b->high < of_a->low;
  c.verdict = apart && !SameBucket(c) ? Direction(c.metric, c.a, c.b) : ChangeVerdict::kNoise;
}

// Which ratios b / a the test does not exclude (Hodges and Lehmann, 1963, on a scale of logarithms): the k-th lowest and
// highest of all ratios of pairs. It leaves out 1 exactly when the test finds a difference, but for ties.
std::optional<Interval> RatioInterval(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (double x : a) {
    for (double y : b) {
      if (x <= 0 || y <= 0) return std::nullopt;
      ratios.push_back(y / x);
    }
  }
  std::sort(ratios.begin(), ratios.end());
  // With a scaled by any number between ratios k and k + 1, u is k: p rises with k up to the middle.
  const auto excluded = [&](size_t k) {
    std::vector<double> ranks_a, ranks_b;
    for (size_t i = 0; i < a.size(); ++i) ranks_a.push_back(static_cast<double>(i) + 1);
    // u counts the pairs in which a is greater: each b stands above all of a but for k pairs in all.
    for (size_t j = 0, left = k; j < b.size(); ++j) {
      const size_t below = std::min(left, a.size());
      left -= below;
      ranks_b.push_back(static_cast<double>(a.size() - below) + 0.5 + 0.0001 * static_cast<double>(j));
    }
    return MannWhitney(ranks_a, ranks_b).p < kSignificance;
  };
  size_t low = 0, high = ratios.size() / 2;  // excluded below low, not at high
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (excluded(middle)) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return std::nullopt;
  return Interval{ratios[low - 1], ratios[ratios.size() - low]};
}

void JudgeBetweenRuns(const Side& a, const Side& b, MetricChange& c) {
  const std::vector<double> of_a = UsableValues(a.valid, c.metric);
  const std::vector<double> of_b = UsableValues(b.valid, c.metric);
  c.a = Median(of_a);
  c.b = Median(of_b);
  if (c.a > 0) c.ratio = c.b / c.a;
  c.ratio_interval = RatioInterval(of_a, of_b);
  const Difference difference = MannWhitney(of_a, of_b);
  c.p = difference.p;
  c.verdict = ChangeVerdict::kNoise;
  if (difference.p >= kSignificance || SameBucket(c)) return;
  // u says which side is the greater even where the medians are the same.
  const bool a_greater = difference.u > static_cast<double>(of_a.size() * of_b.size()) / 2;
  c.verdict = Direction(c.metric, a_greater ? 1 : 0, a_greater ? 0 : 1);
}

void WarnOfPlans(const LoadPlan& a, const LoadPlan& b, std::vector<std::string>& warnings) {
  const auto differ = [&](const char* what, const auto& of_a, const auto& of_b) {
    if (of_a != of_b)
      warnings.push_back(absl::StrCat("the plans differ in ", what, ": ", of_a, " and ", of_b));
  };
  const auto seconds = [](Nanos t) { return absl::StrFormat("%g s", static_cast<double>(t.count()) / 1e9); };
  differ("method", a.method, b.method);
  differ("workload", a.workload, b.workload);
  differ("arrivals", a.arrivals, b.arrivals);
  differ("schedule", a.schedule, b.schedule);
  if (std::abs(a.rate_per_s - b.rate_per_s) > 0.01 * a.rate_per_s) differ("rate", a.rate_per_s, b.rate_per_s);
  differ("requests in flight", a.outstanding, b.outstanding);
  differ("connections", a.connections, b.connections);
  differ("TLS", a.tls ? "with" : "without", b.tls ? "with" : "without");
  differ("timeout", seconds(a.timeout), seconds(b.timeout));
  differ("duration", seconds(a.duration), seconds(b.duration));
}

// The same seeds draw the same arrivals on both sides.
void WarnOfSeeds(const LoadReport& a, const LoadReport& b, std::vector<std::string>& warnings) {
  const auto seeds = [](const LoadReport& report) {
    std::set<uint64_t> seeds;
    for (const LoadResult& run : report.runs) seeds.insert(run.plan.seed);
    return seeds;
  };
  if (a.runs.size() != b.runs.size() || a.runs.front().plan.closed() || seeds(a) == seeds(b)) return;
  warnings.push_back(
      "the seeds differ, so requests were due at other times: the same --seed removes this noise");
}

void WarnOfRuns(const char* name, const LoadReport& report, size_t valid,
                std::vector<std::string>& warnings) {
  const size_t runs = report.runs.size();
  if (valid < runs) {
    warnings.push_back(absl::StrFormat("%d of %d runs of %s %s void, and left out", runs - valid, runs, name,
                                       runs - valid == 1 ? "is" : "are"));
  }
  for (const LoadResult& run : report.runs) {
    if (!run.interrupted) continue;
    warnings.push_back(absl::StrCat(name, " was interrupted"));
    break;
  }
}

const char* NameOf(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::kBetter:
      return "better";
    case ChangeVerdict::kWorse:
      return "worse";
    case ChangeVerdict::kNoise:
      return "noise";
    case ChangeVerdict::kTooFew:
      break;
  }
  return "too few";
}

// The number alone, in the unit of the metric.
std::string NumberInUnit(const RunMetric& metric, double value) {
  const double shown = std::string_view(metric.unit) == "%" ? 100 * value : value;
  return shown == 0 || shown >= 100 ? absl::StrFormat("%.1f", shown) : absl::StrFormat("%.4g", shown);
}

}  // namespace

bool Comparison::worse() const {
  return std::any_of(changes.begin(), changes.end(), [](const MetricChange& c) {
    // The generator's CPU is none of the service's business.
    return c.verdict == ChangeVerdict::kWorse &&
           std::string_view(c.metric.key) != "generator_cpu_us_per_request";
  });
}

Comparison Compare(const LoadReport& a, const LoadReport& b) {
  const Side side_a(a), side_b(b);
  Comparison result;
  result.runs_a = side_a.valid.runs.size();
  result.runs_b = side_b.valid.runs.size();
  result.between_runs = std::min(result.runs_a, result.runs_b) >= kRunsForTest;
  WarnOfPlans(a.runs.front().plan, b.runs.front().plan, result.warnings);
  WarnOfSeeds(a, b, result.warnings);
  WarnOfRuns("A", a, result.runs_a, result.warnings);
  WarnOfRuns("B", b, result.runs_b, result.warnings);
  const bool none = result.runs_a == 0 || result.runs_b == 0;
  if (none) result.warnings.push_back("a side has no valid run: nothing can be said");
  for (const RunMetric& metric : RunMetrics()) {
    if (std::string_view(metric.key) == "sent_per_s") continue;  // what the plan says
    MetricChange& change = result.changes.emplace_back(MetricChange{.metric = metric});
    if (none) continue;
    if (result.between_runs) JudgeBetweenRuns(side_a, side_b, change);
    else JudgeWithinRuns(side_a, side_b, change);
  }
  if (!result.between_runs && !none) {
    result.warnings.push_back(
        "RUNS DIFFER MORE THAN SAMPLES WITHIN A RUN DO: with fewer than 4 runs on each side, what looks "
        "better or "
        "worse here may be chance. Measure both with --repeat 5");
  }
  return result;
}

std::string ComparisonText(const Comparison& comparison) {
  const bool none = comparison.runs_a == 0 || comparison.runs_b == 0;  // nothing was judged
  std::string text =
      absl::StrFormat("valid runs: %d of A, %d of B; %s\n\n", comparison.runs_a, comparison.runs_b,
                      comparison.between_runs ? "each run counts as one (Mann-Whitney, 95 %)"
                                              : "by the samples within the runs (95 %)");
  absl::StrAppendFormat(&text, "%-20s %12s %12s %8s %18s %7s  %s\n", "", "A", "B", "B/A", "95 % of B/A", "p",
                        "verdict");
  for (const MetricChange& c : comparison.changes) {
    const auto& range = c.ratio_interval;
    absl::StrAppendFormat(&text, "%-20s %12s %12s %8s %18s %7s  %s\n",
                          absl::StrCat(c.metric.label, " (", c.metric.unit, ")"),
                          none ? "-" : NumberInUnit(c.metric, c.a), none ? "-" : NumberInUnit(c.metric, c.b),
                          c.ratio ? absl::StrFormat("%.3f", *c.ratio) : "-",
                          range ? absl::StrFormat("%.3f to %.3f", range->low, range->high) : "-",
                          c.p ? absl::StrFormat("%.3f", *c.p) : "-", NameOf(c.verdict));
  }
  if (!comparison.warnings.empty()) text += "\n";
  for (const std::string& warning : comparison.warnings) absl::StrAppend(&text, "WARNING  ", warning, "\n");
  return text;
}

std::string ComparisonJson(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema_version", 1},
               {"kind", "comparison"},
               {"test", comparison.between_runs ? "mann_whitney_between_runs" : "intervals_within_runs"},
               {"valid_runs", {{"a", comparison.runs_a}, {"b", comparison.runs_b}}},
               {"worse", comparison.worse()}};
  json["metrics"] = Json::object();
  for (const MetricChange& c : comparison.changes) {
    Json& one = json["metrics"][c.metric.key];
    one = {{"a", c.a}, {"b", c.b}};
    one["ratio"] = c.ratio ? Json(*c.ratio) : Json(nullptr);
    one["ratio_ci95"] =
        c.ratio_interval ? Json::array({c.ratio_interval->low, c.ratio_interval->high}) : Json(nullptr);
    one["p"] = c.p ? Json(*c.p) : Json(nullptr);
    one["verdict"] = c.verdict == ChangeVerdict::kTooFew ? "too_few" : NameOf(c.verdict);
  }
  json["warnings"] = comparison.warnings;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace curtail
