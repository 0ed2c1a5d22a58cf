// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/dashboard.h"

#include "curtail/base/strings.h"
#include "curtail/observe/dashboard_files.h"
#include "nlohmann/json.hpp"

namespace curtail::observe {
namespace {

using nlohmann::json;

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

}  // namespace

std::string DashboardJson(const DashboardView& view) {
  json services = json::array();
  for (const DashboardService& s : view.services) {
    services.push_back({{"name", s.name}, {"calls", s.calls}, {"entry", s.entry}});
  }
  json instances = json::array();
  for (const DashboardInstance& i : view.instances) {
    json pages = json::object();
    for (const auto& [path, body] : i.pages) pages[path] = body;
    instances.push_back({{"name", i.name},
                         {"service", i.service},
                         {"state", i.state},
                         {"pid", i.pid},
                         {"address", i.address},
                         {"restarts", i.restarts},
                         {"problem", i.problem},
                         {"error", i.error},
                         {"pages", std::move(pages)}});
  }
  json loads = json::array();
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
  const json document = {{"schema_version", 1},
                         {"application", view.application},
                         {"sample", view.sample},
                         {"age_ms", view.age_ms},
                         {"traces", view.traces},
                         {"services", std::move(services)},
                         {"instances", std::move(instances)},
                         {"loads", std::move(loads)}};
  return document.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
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
