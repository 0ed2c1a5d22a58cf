// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/report_read.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/load/report/threshold.h"

namespace curtail {
namespace {

using internal::Json;
using internal::JsonNode;

// Keys: the codes and texts of errors are the most.
constexpr internal::JsonKind kKind{.name = "load report",
                                   .max_depth = 16,
                                   .max_keys = 10'000};  // 900 statuses of HTTP, each with eleven texts

constexpr size_t kMaxFile = size_t{128} << 20;
constexpr size_t kMaxRuns = 1000;
constexpr double kMaxRate = 1e12;
constexpr int kMaxShares = 1000;
constexpr uint64_t kLastUs = uint64_t{1} << 53;  // since 1970

std::vector<std::string> ReadTexts(const JsonNode& node) {
  std::vector<std::string> texts;
  node.ForItems(1000, [&](const JsonNode& text) { texts.push_back(text.Text()); });
  return texts;
}

LoadPlan ReadPlan(const JsonNode& node) {
  LoadPlan p;
  p.target = node["target"].Text();
  p.tls = node["tls"].Flag();
  p.method = node["method"].Text();
  p.workload = node["workload"].Text();
  p.arrivals = node["arrivals"].Text();
  p.schedule = node["schedule"].Text();
  p.rate_per_s = node["rate_per_s"].Number(0, kMaxRate);
  p.peak_per_s = node["peak_per_s"].Number(0, kMaxRate);
  p.outstanding = static_cast<int>(node["outstanding"].Count(std::numeric_limits<int>::max()));
  p.seed = node["seed"].Count();
  p.connections = static_cast<int>(node["connections"].Count(std::numeric_limits<int>::max()));
  p.warmup = node["warmup_s"].Sec();
  p.duration = node["duration_s"].Sec();
  if (node.Contains("requests")) p.requests = node["requests"].Count();
  if (node.Contains("retries"))
    p.retries = static_cast<int>(node["retries"].Count(std::numeric_limits<int>::max()));
  if (node.Contains("threads"))
    p.threads = std::max(1, static_cast<int>(node["threads"].Count(std::numeric_limits<int>::max())));
  if (node.Contains("shares")) p.shares = std::max(1, node["shares"].Int(kMaxShares));
  if (node.Contains("share")) p.share = node["share"].Int(p.shares);
  if (node.Contains("steps")) p.steps = ReadTexts(node["steps"]);
  if (node.Contains("methods")) p.methods = ReadTexts(node["methods"]);
  if (node.Contains("checks")) p.checks = ReadTexts(node["checks"]);
  p.timeout = node["timeout_s"].Sec();
  p.spin = node["spin_us"].Us();
  p.realtime = node["realtime"].Flag();
  return p;
}

Histogram ReadLatency(const JsonNode& node) {
  std::vector<Histogram::Bucket> buckets;
  node["buckets"].ForItems(1u << 16, [&](const JsonNode& bucket) {
    std::vector<JsonNode> parts;
    bucket.ForItems(3, [&](const JsonNode& part) { parts.push_back(part); });
    if (parts.size() != 3) return bucket.Complain("must be [low, high, count]");
    buckets.push_back({parts[0].Us(), parts[1].Us(), parts[2].Count()});
  });
  const Histogram::Totals totals{node["min"].Us(), node["max"].Us(), node["mean"].Us(),
                                 node["clamped"].Count()};
  std::optional<Histogram> h = Histogram::FromBuckets(buckets, totals);
  if (!h) node.Complain("has buckets that do not fit the layout, or its min, mean, max or clamped");
  return h ? *std::move(h) : Histogram();
}

LoadInterval ReadInterval(const JsonNode& node) {
  LoadInterval s;
  s.end = node["end_s"].Sec();
  s.length = node["length_s"].Sec();
  s.due = node["due"].Count();
  s.sent = node["sent"].Count();
  s.ok = node["ok"].Count();
  s.failed = node["failed"].Count();
  s.p50 = node["p50_us"].Us();
  s.p99 = node["p99_us"].Us();
  s.in_flight = node["in_flight"].Count();
  s.config = node["config"].Text();
  return s;
}

ScoreSummary ReadScore(const JsonNode& node) {
  ScoreSummary s;
  if (node.IsNull()) return s;
  s.name = node["name"].Text();
  s.count = node["count"].Count();
  s.sum = node["sum"].Number(-1e300, 1e300);
  s.min = node["min"].Number(-1e300, 1e300);
  return s;
}

std::map<std::string, uint64_t> ReadCounts(const JsonNode& node) {
  std::map<std::string, uint64_t> counts;
  node.ForMembers([&](const std::string& key, const JsonNode& count) { counts[key] = count.Count(); });
  return counts;
}

PartResult ReadPart(const JsonNode& node) {
  PartResult s;
  s.name = node["name"].Text();
  s.ok = node["ok"].Count();
  s.failed = node["failed"].Count();
  s.latency = ReadLatency(node["latency_us"]);
  return s;
}

ReplyCheckSummary ReadReplyChecks(const JsonNode& node, size_t checks) {
  ReplyCheckSummary all;
  all.replies = node["replies"].Count();
  all.failed = node["failed"].Count();
  node["checks"].ForItems(1000, [&](const JsonNode& check) {
    all.checks.push_back({check["failed"].Count(), check["example"].Text()});
  });
  if (all.checks.size() != checks) node.Complain("must have the checks of the plan");
  return all;
}

void ReadCounters(const JsonNode& node, LoadResult& r) {
  const JsonNode requests = node["requests"];
  r.scheduled = requests["scheduled"].Count();
  r.sent = requests["sent"].Count();
  r.ok = requests["ok"].Count();
  r.failed = requests["failed"].Count();
  r.dropped = requests["dropped"].Count();
  r.unfinished = requests["unfinished"].Count();
  if (requests.Contains("retried")) r.retried = requests["retried"].Count();
  if (requests.Contains("retries")) r.retries = requests["retries"].Count();
  const JsonNode rates = node["rates_per_s"];
  r.scheduled_per_s = rates["scheduled"].Number(0, kMaxRate);
  r.sent_per_s = rates["sent"].Number(0, kMaxRate);
  r.good_per_s = rates["good"].Number(0, kMaxRate);
}

LoadResult ReadRun(const JsonNode& node, const LoadPlan& plan) {
  LoadResult r;
  r.plan = plan;
  r.plan.seed = node["seed"].Count();
  r.plan.realtime = node["realtime"].Flag();
  r.measured = node["measured_s"].Sec();
  r.interrupted = node["interrupted"].Flag();
  if (node.Contains("started_unix_us"))
    r.started = std::chrono::microseconds(static_cast<int64_t>(node["started_unix_us"].Count(kLastUs)));
  ReadCounters(node, r);
  r.codes = ReadCounts(node["codes"]);
  r.errors = ReadCounts(node["errors"]);
  const JsonNode latency = node["latency_us"];
  r.all = ReadLatency(latency["all"]);
  r.success = ReadLatency(latency["success"]);
  r.failure = ReadLatency(latency["failure"]);
  if (latency.Contains("since_sent")) r.since_sent = ReadLatency(latency["since_sent"]);
  if (latency.Contains("with_pauses")) r.with_pauses = ReadLatency(latency["with_pauses"]);
  for (const auto& [key, parts] : {std::pair("steps", &r.steps), std::pair("methods", &r.methods)}) {
    if (node.Contains(key))
      node[key].ForItems(1001, [&, to = parts](const JsonNode& part) { to->push_back(ReadPart(part)); });
  }
  r.send_lag = ReadLatency(node["send_lag_us"]);
  r.cpu = node["generator"]["cpu_us"].Us();
  r.spin = node["generator"]["spin_us"].Us();
  r.score = ReadScore(node["score"]);
  if (!plan.checks.empty()) r.reply_checks = ReadReplyChecks(node["reply_checks"], plan.checks.size());
  const JsonNode checks = node["checks"];
  r.checks.gaps_a2 = checks["gaps_a2"].NumberOrNull(-1e300, 1e300);
  r.checks.neighbours = checks["neighbours_rank_correlation"].NumberOrNull(-1, 1);
  r.checks.trend = checks["trend_rank_correlation"].NumberOrNull(-1, 1);
  node["series"].ForItems(LoadResult::kMaxIntervals,
                          [&](const JsonNode& s) { r.series.push_back(ReadInterval(s)); });
  r.invalid = ReadTexts(node["invalid_reasons"]);
  r.warnings = ReadTexts(node["warnings"]);
  return r;
}

ReportOrigin ReadOrigin(const JsonNode& root) {
  ReportOrigin origin;
  for (const auto& [key, text] :
       {std::pair("curtail_version", &origin.curtail_version), std::pair("started", &origin.started),
        std::pair("command", &origin.command), std::pair("request", &origin.request)}) {
    if (root.Contains(key)) *text = root[key].Text();
  }
  const JsonNode node = root["machine"];
  if (node.IsNull()) return origin;
  Machine m;
  m.cpus = static_cast<int>(node["cpus"].Count(1 << 20));
  m.cpu_model = node["cpu_model"].Text();
  m.kernel = node["kernel"].Text();
  m.load_average_before = node["load_average_before"].Number(0, 1e9);
  origin.machine = std::move(m);
  return origin;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "re"), fclose);
  if (file == nullptr) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat("cannot be opened: ", std::generic_category().message(error)));
  }
  std::string text;
  std::vector<char> chunk(1 << 16);
  while (const size_t n = fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), n);
    if (text.size() > kMaxFile)
      return absl::ResourceExhaustedError("has more than 128 MiB: no load report has");
  }
  if (ferror(file.get()) != 0) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat("cannot be read: ", std::generic_category().message(error)));
  }
  return text;
}

}  // namespace

absl::StatusOr<LoadReport> ParseReport(std::string_view text, ReportOrigin* origin) {
  const absl::StatusOr<Json> json = internal::ParseJson(text, kKind);
  if (!json.ok()) return json.status();
  if (absl::Status status = internal::CheckSchemaVersion(*json, kKind, kLoadSchemaVersion); !status.ok()) {
    return status;
  }
  std::string problem;
  const JsonNode root(&*json, &problem);
  const LoadPlan plan = ReadPlan(root["plan"]);
  LoadReport report;
  root["runs"].ForItems(kMaxRuns, [&](const JsonNode& run) { report.runs.push_back(ReadRun(run, plan)); });
  if (report.runs.empty()) root["runs"].Complain("must not be empty");
  if (root.Contains("thresholds")) {
    root["thresholds"].ForItems(kMaxRuns, [&](const JsonNode& node) {
      std::string text = node["text"].Text();
      if (!ParseThresholds(text).ok()) return node["text"].Complain("is not a condition");
      report.thresholds.push_back(std::move(text));
    });
  }
  ReportOrigin read = ReadOrigin(root);
  if (!problem.empty()) return absl::InvalidArgumentError(absl::StrCat("is not a load report: ", problem));
  if (origin != nullptr) *origin = std::move(read);
  return report;
}

absl::StatusOr<LoadReport> ReadReport(const std::string& path, ReportOrigin* origin) {
  const absl::StatusOr<std::string> text = ReadText(path);
  absl::StatusOr<LoadReport> report = text.ok() ? ParseReport(*text, origin) : text.status();
  if (report.ok()) return report;
  return absl::Status(report.status().code(), internal::JsonFileError(path, report.status()));
}

}  // namespace curtail
