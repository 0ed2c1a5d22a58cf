// SPDX-License-Identifier: Apache-2.0
//
// The JSON half of report.h; result.schema.json beside it describes what is written here.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "curtail/load/report.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using Json = nlohmann::ordered_json;

double Us(Nanos t) { return static_cast<double>(t.count()) / 1e3; }
double Sec(Nanos t) { return static_cast<double>(t.count()) / 1e9; }

Json OptionalUs(const std::optional<Nanos>& t) { return t ? Json(Us(*t)) : Json(nullptr); }

Json IntervalJson(const Histogram& h, double percent) {
  const ValueInterval ci = PercentileInterval95(h, percent);
  return Json::array({OptionalUs(ci.low), OptionalUs(ci.high)});
}

Json LatencyJson(const Histogram& h) {
  Json json = {{"count", h.count()},          {"mean", Us(h.mean())},
               {"min", Us(h.min())},          {"p50", Us(h.Percentile(50))},
               {"p90", Us(h.Percentile(90))}, {"p95", Us(h.Percentile(95))},
               {"p99", Us(h.Percentile(99))}, {"p99_9", Us(h.Percentile(99.9))},
               {"max", Us(h.max())},          {"clamped", h.clamped()}};
  json["ci95"] = {
      {"p50", IntervalJson(h, 50)}, {"p99", IntervalJson(h, 99)}, {"p99_9", IntervalJson(h, 99.9)}};
  Json buckets = Json::array();
  for (const Histogram::Bucket& b : h.Buckets()) buckets.push_back({Us(b.low), Us(b.high), b.count});
  json["buckets"] = std::move(buckets);
  return json;
}

Json PlanJson(const LoadPlan& p) {
  return {{"target", p.target},
          {"method", p.method},
          {"workload", p.workload},
          {"loop", p.closed() ? "closed" : "open"},
          {"schedule", p.schedule},
          {"rate_per_s", p.rate_per_s},
          {"outstanding", p.outstanding},
          {"seed", p.seed},
          {"connections", p.connections},
          {"warmup_s", Sec(p.warmup)},
          {"duration_s", Sec(p.duration)},
          {"timeout_s", Sec(p.timeout)},
          {"spin_us", Us(p.spin)},
          {"realtime", p.realtime}};
}

Json SeriesJson(const std::vector<LoadSecond>& series) {
  Json json = Json::array();
  for (const LoadSecond& s : series) {
    json.push_back({{"end_s", Sec(s.end)},
                    {"length_s", Sec(s.length)},
                    {"sent", s.sent},
                    {"ok", s.ok},
                    {"failed", s.failed},
                    {"p50_us", Us(s.p50)},
                    {"p99_us", Us(s.p99)},
                    {"in_flight", s.in_flight}});
  }
  return json;
}

Json GeneratorJson(const LoadResult& r) {
  const double sent = r.sent == 0 ? 1 : static_cast<double>(r.sent);
  return {{"cpu_us_per_request", Us(r.cpu) / sent}, {"spin_us_per_request", Us(r.spin) / sent}};
}

absl::Status Failed(const char* what, const std::string& path, int error) {
  const std::string text = absl::StrCat(what, " ", path, ": ", std::generic_category().message(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  if (error == EACCES || error == EPERM || error == EROFS) return absl::PermissionDeniedError(text);
  return absl::InternalError(text);
}

// Writes and closes; on an error the file is left as it is.
absl::Status WriteAll(const std::string& path, std::string_view content, int flags) {
  const int fd = open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0644);
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
  if (close(fd) != 0) return Failed("cannot write", path, errno);
  return absl::OkStatus();
}

}  // namespace

std::string ResultJson(const LoadResult& r) {
  Json json = {{"schema_version", kLoadSchemaVersion}, {"plan", PlanJson(r.plan)}};
  json["measured_s"] = Sec(r.measured);
  json["interrupted"] = r.interrupted;
  json["valid"] = r.valid();
  json["invalid_reasons"] = r.invalid;
  json["requests"] = {{"scheduled", r.scheduled}, {"sent", r.sent},       {"ok", r.ok},
                      {"failed", r.failed},       {"dropped", r.dropped}, {"unfinished", r.unfinished}};
  json["rates_per_s"] = {{"scheduled", r.scheduled_per_s}, {"sent", r.sent_per_s}, {"good", r.good_per_s}};
  json["latency_us"] = {
      {"all", LatencyJson(r.all)}, {"success", LatencyJson(r.success)}, {"failure", LatencyJson(r.failure)}};
  json["send_lag_us"] = {{"p50", Us(r.send_lag.Percentile(50))},
                         {"p99", Us(r.send_lag.Percentile(99))},
                         {"max", Us(r.send_lag.max())}};
  json["generator"] = GeneratorJson(r);
  json["score"] = nullptr;
  if (r.score.count > 0) {
    json["score"] = {
        {"name", r.score.name}, {"count", r.score.count}, {"mean", r.score.mean()}, {"min", r.score.min}};
  }
  json["codes"] = r.codes;
  json["errors"] = r.errors;
  json["series"] = SeriesJson(r.series);
  // Error texts come from the server and may be no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status WriteFile(const std::string& path, std::string_view content) {
  struct stat existing{};
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) return WriteAll(path, content, 0);
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid());
  if (absl::Status status = WriteAll(temporary, content, O_CREAT | O_TRUNC); !status.ok()) {
    (void)unlink(temporary.c_str());
    return status;
  }
  if (rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  (void)unlink(temporary.c_str());
  return Failed("cannot write", path, error);
}

}  // namespace curtail
