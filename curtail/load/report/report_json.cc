// SPDX-License-Identifier: Apache-2.0
//
// The JSON half of report.h; result.schema.json beside it describes what is written here.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "curtail/base/clock.h"
#include "curtail/base/cpus.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/internal/output_path.h"
#include "curtail/load/report/internal/machine_json.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/run_metrics.h"
#include "curtail/load/report/threshold.h"

namespace curtail {
namespace {

using internal::Compact;
using internal::Json;

double Sec(Nanos t) { return static_cast<double>(t.count()) / 1e9; }

constexpr size_t kMaxLine = 120;        // of the text
constexpr double kStepsPerDecade = 24;  // of the spectrum

Json OptionalNumber(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }
Json OptionalUs(const std::optional<Nanos>& t) { return t ? Json(InMicros(*t)) : Json(nullptr); }

Json IntervalJson(const Histogram& h, double percent, double neighbours) {
  const ValueInterval ci = PercentileInterval95(h, percent, neighbours);
  return Json::array({OptionalUs(ci.low), OptionalUs(ci.high)});
}

Json LatencyJson(const Histogram& h, double neighbours) {
  Json json = {{"count", h.count()},
               {"mean", InMicros(h.mean())},
               {"min", InMicros(h.min())},
               {"p50", InMicros(h.Percentile(50))},
               {"p90", InMicros(h.Percentile(90))},
               {"p95", InMicros(h.Percentile(95))},
               {"p99", InMicros(h.Percentile(99))},
               {"p99_9", InMicros(h.Percentile(99.9))},
               {"max", InMicros(h.max())},
               {"clamped", h.clamped()}};
  json["ci95"] = {{"p50", IntervalJson(h, 50, neighbours)},
                  {"p99", IntervalJson(h, 99, neighbours)},
                  {"p99_9", IntervalJson(h, 99.9, neighbours)}};
  json["ci95_samples"] = {{"p50", SamplesForInterval95(50, neighbours)},
                          {"p99", SamplesForInterval95(99, neighbours)},
                          {"p99_9", SamplesForInterval95(99.9, neighbours)}};
  Json buckets = Json::array();
  for (const Histogram::Bucket& b : h.Buckets())
    buckets.push_back({InMicros(b.low), InMicros(b.high), b.count});
  json["buckets"] = std::move(buckets);
  return json;
}

// 1 / (1 - percentile) of the spectrum of so many samples: evenly in its logarithm, up to the last sample.
std::vector<double> TailSteps(uint64_t samples) {
  std::vector<double> steps;
  if (samples == 0) return steps;
  const auto last = static_cast<double>(samples);
  for (int k = 0; std::pow(10, k / kStepsPerDecade) < last; ++k)
    steps.push_back(std::round(1e3 * std::pow(10, k / kStepsPerDecade)) / 1e3);
  steps.push_back(last);
  return steps;
}

double PercentAt(double step) { return 100 * (1 - 1 / step); }

// The whole distribution, in columns: a run has a hundred steps and more.
Json SpectrumJson(const Histogram& h, double neighbours) {
  const std::vector<double> steps = TailSteps(h.count());
  Json latency = Json::array(), low = Json::array(), high = Json::array();
  for (double step : steps) {
    const ValueInterval ci = PercentileInterval95(h, PercentAt(step), neighbours);
    latency.push_back(InMicros(h.Percentile(PercentAt(step))));
    low.push_back(OptionalUs(ci.low));
    high.push_back(OptionalUs(ci.high));
  }
  return {{"tail", steps}, {"latency_us", latency}, {"low_us", low}, {"high_us", high}};
}

// Where the median over the valid runs is, up to the samples that each of them has. Null below six runs.
Json MedianSpectrumJson(const LoadReport& report) {
  std::vector<const Histogram*> runs;
  for (const LoadResult& run : report.runs) {
    if (run.valid()) runs.push_back(&run.all);
  }
  const auto fewer = [](const Histogram* a, const Histogram* b) { return a->count() < b->count(); };
  const std::vector<double> steps = TailSteps((*std::min_element(runs.begin(), runs.end(), fewer))->count());
  Json low = Json::array(), high = Json::array();
  for (double step : steps) {
    std::vector<double> values;
    for (const Histogram* h : runs) values.push_back(InMicros(h->Percentile(PercentAt(step))));
    const std::optional<Interval> ci = MedianInterval(values, 0.95);
    if (!ci) return nullptr;
    low.push_back(ci->low);
    high.push_back(ci->high);
  }
  return {{"tail", steps}, {"low_us", low}, {"high_us", high}};
}

Json PlanJson(const LoadPlan& p) {
  Json json = {{"target", p.target},
               {"tls", p.tls},
               {"method", p.method},
               {"workload", p.workload},
               {"loop", p.closed() ? "closed" : "open"},
               {"arrivals", p.arrivals},
               {"schedule", p.schedule},
               {"rate_per_s", p.rate_per_s},
               {"peak_per_s", p.peak_per_s},
               {"outstanding", p.outstanding},
               {"seed", p.seed},
               {"connections", p.connections},
               {"warmup_s", Sec(p.warmup)},
               {"duration_s", Sec(p.duration)},
               {"timeout_s", Sec(p.timeout)},
               {"spin_us", InMicros(p.spin)},
               {"realtime", p.realtime}};
  if (p.requests > 0) json["requests"] = p.requests;
  if (p.retries > 0) json["retries"] = p.retries;
  if (p.threads > 1) json["threads"] = p.threads;
  if (p.shares > 1) json["shares"] = p.shares;
  if (p.share > 0) json["share"] = p.share;
  if (!p.steps.empty()) json["steps"] = p.steps;
  if (!p.methods.empty()) json["methods"] = p.methods;
  if (!p.checks.empty()) json["checks"] = p.checks;
  return json;
}

Json SeriesJson(const std::vector<LoadInterval>& series) {
  Json json = Json::array();
  for (const LoadInterval& s : series) {
    json.push_back({{"end_s", Sec(s.end)},
                    {"length_s", Sec(s.length)},
                    {"due", s.due},
                    {"sent", s.sent},
                    {"ok", s.ok},
                    {"failed", s.failed},
                    {"p50_us", InMicros(s.p50)},
                    {"p99_us", InMicros(s.p99)},
                    {"in_flight", s.in_flight},
                    {"config", s.config}});
  }
  return json;
}

Json GeneratorJson(const LoadResult& r) {
  const double sent = r.sent == 0 ? 1 : static_cast<double>(r.sent);
  return {{"cpu_us", InMicros(r.cpu)},
          {"spin_us", InMicros(r.spin)},
          {"cpu_us_per_request", InMicros(r.cpu) / sent},
          {"spin_us_per_request", InMicros(r.spin) / sent}};
}

Json ChecksJson(const LoadChecks& c) {
  return {{"gaps_a2", OptionalNumber(c.gaps_a2)},
          {"neighbours_rank_correlation", OptionalNumber(c.neighbours)},
          {"trend_rank_correlation", OptionalNumber(c.trend)}};
}

Json ScoreJson(const ScoreSummary& s) {
  if (s.count == 0) return nullptr;
  return {{"name", s.name}, {"count", s.count}, {"sum", s.sum}, {"mean", s.mean()}, {"min", s.min}};
}

Json ReplyChecksJson(const ReplyCheckSummary& all, const std::vector<std::string>& texts) {
  Json checks = Json::array();
  for (size_t i = 0; i < texts.size(); ++i) {
    const CheckResult& check = all.checks[i];
    checks.push_back({{"check", texts[i]}, {"failed", check.failed}, {"example", check.example}});
  }
  return {{"replies", all.replies}, {"failed", all.failed}, {"checks", std::move(checks)}};
}

// In the order of the plan.
Json PartsJson(const std::vector<PartResult>& parts) {
  Json json = Json::array();
  for (const PartResult& part : parts) {
    json.push_back({{"name", part.name},
                    {"ok", part.ok},
                    {"failed", part.failed},
                    {"latency_us", LatencyJson(part.latency, 0)}});
  }
  return json;
}

// The result of a run, added to `json`.
void AddRun(const LoadResult& r, Json& json) {
  json["measured_s"] = Sec(r.measured);
  json["interrupted"] = r.interrupted;
  if (r.started > Nanos::zero()) json["started_unix_us"] = r.started / std::chrono::microseconds(1);
  json["valid"] = r.valid();
  json["invalid_reasons"] = r.invalid;
  json["warnings"] = r.warnings;
  json["requests"] = {{"scheduled", r.scheduled}, {"sent", r.sent},       {"ok", r.ok},
                      {"failed", r.failed},       {"dropped", r.dropped}, {"unfinished", r.unfinished}};
  if (r.plan.retries > 0) {
    json["requests"]["retried"] = r.retried;
    json["requests"]["retries"] = r.retries;
  }
  json["rates_per_s"] = {{"scheduled", r.scheduled_per_s}, {"sent", r.sent_per_s}, {"good", r.good_per_s}};
  json["latency_us"] = {{"all", LatencyJson(r.all, r.neighbours())},
                        {"success", LatencyJson(r.success, r.neighbours())},
                        {"failure", LatencyJson(r.failure, r.neighbours())}};
  if (!r.since_sent.empty()) json["latency_us"]["since_sent"] = LatencyJson(r.since_sent, r.neighbours());
  if (!r.steps.empty()) {
    json["latency_us"]["with_pauses"] = LatencyJson(r.with_pauses, r.neighbours());
    json["steps"] = PartsJson(r.steps);
  }
  if (!r.methods.empty()) json["methods"] = PartsJson(r.methods);
  json["spectrum"] = SpectrumJson(r.all, r.neighbours());
  json["send_lag_us"] = LatencyJson(r.send_lag, 0);
  json["generator"] = GeneratorJson(r);
  json["checks"] = ChecksJson(r.checks);
  json["score"] = ScoreJson(r.score);
  if (!r.plan.checks.empty()) json["reply_checks"] = ReplyChecksJson(r.reply_checks, r.plan.checks);
  json["codes"] = r.codes;
  json["errors"] = r.errors;
  json["series"] = SeriesJson(r.series);
}

Json RangeJson(const std::optional<Interval>& range) {
  return range ? Json::array({range->low, range->high}) : Json(nullptr);
}

Json ThresholdsJson(const LoadReport& report) {
  Json json = Json::array();
  for (const std::vector<ThresholdOutcome>& of_runs : EvaluateAll(report)) {
    Json runs = Json::array();
    for (const ThresholdOutcome& outcome : of_runs)
      runs.push_back({{"verdict", std::string(Verdict(outcome))}, {"actual", ActualText(outcome)}});
    json.push_back({{"text", of_runs.front().threshold.text}, {"runs", std::move(runs)}});
  }
  return json;
}

// Null where fewer than two runs can be believed.
Json BetweenRunsJson(const LoadReport& report) {
  Json json;
  for (const RunMetric& metric : RunMetrics()) {
    const std::vector<double> values = UsableValues(report, metric);
    if (values.size() < 2) return nullptr;
    const Spread s = SpreadOf(values);
    json["valid_runs"] = s.runs;
    json[metric.key] = {{"median", s.median},
                        {"min", s.min},
                        {"max", s.max},
                        {"mean", s.mean},
                        {"median_ci95", RangeJson(s.median_interval)},
                        {"mean_ci95", RangeJson(s.mean_interval)}};
  }
  json["spectrum"] = MedianSpectrumJson(report);
  return json;
}

// A value that fits into a line stands on one: a bucket, a second of the series.
void Pretty(const Json& json, size_t indent, std::string& out) {
  const std::string line = json.size() <= kMaxLine / 2 ? Compact(json) : std::string(kMaxLine, ' ');
  if (!json.is_structured() || line.size() < kMaxLine) {
    out += line;
    return;
  }
  const std::string separator = absl::StrCat("\n", std::string(indent + 1, ' '));
  out += json.is_object() ? "{" : "[";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    out.append(first ? "" : ",").append(separator);
    if (json.is_object()) out.append(Compact(key)).append(": ");
    Pretty(value, indent + 1, out);
    first = false;
  }
  out.append("\n").append(indent, ' ').append(json.is_object() ? "}" : "]");
}

std::string Text(const Json& json) {
  std::string text;
  Pretty(json, 0, text);
  return text + "\n";
}

std::string FirstLineOf(const char* path, std::string_view prefix) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return {};
}

absl::Status Failed(const char* what, const std::string& path, int error) {
  const std::string text = absl::StrCat(what, " ", path, ": ", std::generic_category().message(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  if (error == EACCES || error == EPERM || error == EROFS) return absl::PermissionDeniedError(text);
  return absl::InternalError(text);
}

// Writes and closes `fd`, an open file of this name; on an error the file is left as it is.
absl::Status WriteAll(int fd, const std::string& path, std::string_view content) {
  if (fd < 0) return Failed("cannot open", path, errno);
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd);
      return Failed("cannot write", path, error);
    }
    content.remove_prefix(static_cast<size_t>(n));
  }
  // Some file systems find out that they are full only now. Pipes and terminals cannot be flushed.
  if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) {
    const int error = errno;
    close(fd);
    return Failed("cannot write", path, error);
  }
  if (close(fd) != 0) return Failed("cannot write", path, errno);
  return absl::OkStatus();
}

}  // namespace

ReportOrigin ThisOrigin(std::string_view curtail_version) {
  Machine machine;
  machine.cpus = UsableCpus();
  const std::string model = FirstLineOf("/proc/cpuinfo", "model name");
  const size_t begin = model.find_first_not_of("\t :");
  if (begin != std::string::npos) machine.cpu_model = model.substr(begin);
  if (utsname name{}; uname(&name) == 0) machine.kernel = absl::StrCat(name.sysname, " ", name.release);
  if (double load = 0; getloadavg(&load, 1) == 1) machine.load_average_before = load;
  ReportOrigin origin;
  origin.curtail_version = curtail_version;
  origin.machine = machine;
  origin.started = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  return origin;
}

std::string ResultJson(const LoadResult& result) {
  Json json = {{"schema_version", kLoadSchemaVersion}, {"plan", PlanJson(result.plan)}};
  AddRun(result, json);
  return Text(json);
}

std::string ReportJson(const LoadReport& report, const ReportOrigin& origin) {
  Json json = {{"schema_version", kLoadSchemaVersion}};
  for (const auto& [key, text] :
       {std::pair("curtail_version", &origin.curtail_version), std::pair("started", &origin.started),
        std::pair("command", &origin.command), std::pair("request", &origin.request)}) {
    if (!text->empty()) json[key] = *text;
  }
  json["machine"] = internal::MachineJson(origin.machine);
  json["plan"] = PlanJson(report.runs.front().plan);
  json["valid"] = report.valid();
  if (!report.thresholds.empty()) json["thresholds"] = ThresholdsJson(report);
  json["between_runs"] = BetweenRunsJson(report);
  json["runs"] = Json::array();
  for (const LoadResult& run : report.runs) {
    Json one = {{"seed", run.plan.seed}, {"realtime", run.plan.realtime}};
    AddRun(run, one);
    json["runs"].push_back(std::move(one));
  }
  return Text(json);
}

absl::Status WriteFile(const std::string& path, std::string_view content) {
  const internal::OutputPath end = internal::FollowLinks(path);
  if (end.fd >= 0) {
    std::fflush(stdout);  // what was printed before comes first
    return WriteAll(fcntl(end.fd, F_DUPFD_CLOEXEC, 0), path, content);
  }
  struct stat existing{};
  if (stat(end.path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return WriteAll(open(end.path.c_str(), O_WRONLY | O_CLOEXEC), path, content);
  const std::string temporary = absl::StrCat(end.path, ".tmp.", getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (absl::Status status = WriteAll(fd, temporary, content); !status.ok()) {
    (void)unlink(temporary.c_str());
    return status;
  }
  if (rename(temporary.c_str(), end.path.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  (void)unlink(temporary.c_str());
  return Failed("cannot write", path, error);
}

}  // namespace curtail
