// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/dashboard.h"

#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"
#include "curtail/observe/dashboard_files.h"

namespace curtail::observe {
namespace {

using Value = internal::Json;

constexpr internal::JsonKind kStatus{.name = "status of a server", .max_depth = 8, .max_keys = 1000};
constexpr int kStatusVersion = 1;
constexpr int kDashboardVersion = 2;

// The page loads what this port serves, and nothing else; no other page may frame it.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

wire::HttpReply Compressed(std::string_view type, std::string_view bytes) {
  wire::HttpReply reply = HttpAdminReply(200, type, std::string(bytes));
  reply.headers.emplace_back("content-encoding", "gzip");
  reply.headers.emplace_back("content-security-policy", kPolicy);
  reply.headers.emplace_back("referrer-policy", "no-referrer");
  return reply;
}

HttpAdminPage File(std::string_view type, const EmbeddedFile& file) {
  return {Join("/", file.name), [type, bytes = file.bytes](const wire::HttpRequest&, const HttpAdminStats&) {
            return Compressed(type, bytes);
          }};
}

// Null without a status; then `error` may say why.
Value ReadStatus(const std::string& text, std::string* error) {
  if (text.empty()) return nullptr;
  absl::StatusOr<Value> status = internal::ParseJson(text, kStatus);
  absl::Status good = status.status();
  if (good.ok()) good = internal::CheckSchemaVersion(*status, kStatus, kStatusVersion);
  if (good.ok()) return *std::move(status);
  *error = Join("/status.json ", Message(good));
  return nullptr;
}

Value InstanceJson(const DashboardInstance& i) {
  std::string error = i.error;
  Value status = ReadStatus(i.status, &error);
  return {{"name", i.name},       {"service", i.service},      {"state", i.state},
          {"pid", i.pid},         {"address", i.address},      {"restarts", i.restarts},
          {"problem", i.problem}, {"error", std::move(error)}, {"status", std::move(status)},
          {"metrics", i.metrics}};
}

}  // namespace

std::string DashboardJson(const DashboardView& view) {
  Value services = Value::array();
  for (const DashboardService& s : view.services) {
    services.push_back({{"name", s.name}, {"calls", s.calls}, {"entry", s.entry}});
  }
  Value instances = Value::array();
  for (const DashboardInstance& i : view.instances) instances.push_back(InstanceJson(i));
  Value loads = Value::array();
  for (const DashboardLoad& l : view.loads) {
    loads.push_back({{"pid", l.pid},
                     {"command", l.command},
                     {"label", l.label},
                     {"elapsed_s", l.elapsed_s},
                     {"total_s", l.total_s},
                     {"ok", l.ok},
                     {"failed", l.failed},
                     {"in_flight", l.in_flight},
                     {"due_per_s", l.due_per_s},
                     {"sent_per_s", l.sent_per_s},
                     {"p50_us", l.p50_us},
                     {"p99_us", l.p99_us}});
  }
  const Value document = {{"schema_version", kDashboardVersion},
                          {"application", view.application},
                          {"sample", view.sample},
                          {"age_ms", view.age_ms},
                          {"traces", view.traces},
                          {"services", std::move(services)},
                          {"instances", std::move(instances)},
                          {"loads", std::move(loads)}};
  return internal::Compact(document) + "\n";
}

std::vector<HttpAdminPage> DashboardPages(std::string index) {
  std::vector<HttpAdminPage> pages;
  const std::span<const EmbeddedFile> files = DashboardFiles();
  pages.push_back({"/", [text = std::move(index), html = files[0].bytes](const wire::HttpRequest& request,
                                                                         const HttpAdminStats&) {
                     const std::string_view takes = request.headers.Find("accept-encoding").value_or("");
                     if (takes.find("gzip") == std::string_view::npos) {
                       return HttpAdminReply(200, "text/plain; charset=utf-8", text);
                     }
                     return Compressed("text/html; charset=utf-8", html);
                   }});
  pages.push_back(File("text/javascript; charset=utf-8", files[1]));
  pages.push_back(File("text/css; charset=utf-8", files[2]));
  return pages;
}

}  // namespace curtail::observe
