// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/admin/admin_pages.h"

#include <algorithm>
#include <utility>

#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/observe/dashboard.h"
#include "curtail/observe/metrics/metrics_process.h"
#include "curtail/rpc/admin/admin_json.h"
#include "curtail/rpc/admin/admin_service.h"
#include "curtail/rpc/server/server_core.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::internal {
namespace {

using observe::HttpAdminPage;
using observe::HttpAdminReply;
using observe::HttpAdminStats;
using wire::HttpReply;
using wire::HttpRequest;

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kJson = "application/json";

bool IsPort(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string OnLoopback(const std::string& text) {
  const std::string_view port = std::string_view(text).substr(text.starts_with(':') ? 1 : 0);
  return IsPort(port) ? Join("127.0.0.1:", port) : text;
}

observe::HttpAdminAccess AccessBy(const std::string& address, const std::string& token) {
  return {.unix_socket = address.starts_with("unix"), .hosts = OwnNames(address), .token = token};
}

// The body of a request without the end of its line.
std::string_view TextOf(const HttpRequest& request) {
  std::string_view text = request.body;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

HttpReply SwitchLogLevel(const HttpRequest& request) {
  const absl::Status status = ChangeLogLevel(TextOf(request));
  if (!status.ok()) return HttpAdminReply(400, kPlain, Join(Message(status), "\n"));
  return HttpAdminReply(200, kPlain, Join(SeverityName(LogLevel()), "\n"));
}

// Puts the config in force that is the body of the request.
HttpReply SwitchConfig(ServerCore& core, const HttpRequest& request) {
  const std::string_view text = TextOf(request);
  const absl::StatusOr<Config> config = Config::Parse(text);
  const std::string previous = core.executor().config().ToString();
  absl::Status status = config.ok() ? core.SwitchTo(*config) : config.status();
  if (status.ok()) return HttpAdminReply(200, kJson, SwitchedJson(previous, config->ToString()));
  const int code = absl::IsFailedPrecondition(status) ? 409 : 400;
  return HttpAdminReply(code, kPlain, Join(Message(status), "\n"));
}

// The dashboard shows this server as an application of one instance.
void AddDashboard(ServerCore* core, const CallMetrics* calls, const observe::Tracer* tracer,
                  std::vector<HttpAdminPage>* pages) {
  std::string index = "pages of this server; a browser shows them as a dashboard:\n";
  for (const HttpAdminPage& page : *pages) index += Join(page.path, "\n");
  for (HttpAdminPage& page : observe::DashboardPages(std::move(index))) pages->push_back(std::move(page));
  pages->push_back(
      {"/dashboard.json", [core, calls, tracer](const HttpRequest&, const HttpAdminStats& port) {
         const ServerStats stats = core->Sample(/*process=*/true);
         observe::DashboardView view{.sample = port.requests,
                                     .traces = tracer != nullptr,
                                     .services = {{.name = "server", .entry = true}}};
         view.instances.push_back(
             {.name = "server",
              .service = "server",
              .state = core->draining() ? "draining" : "ready",
              .pid = getpid(),
              .status = StatusJson(StatusMessage(stats, Now())),
              .metrics = ServerMetrics(stats, *calls, tracer, port, observe::MetricsFormat::kPrometheus)});
         return HttpAdminReply(200, kJson, observe::DashboardJson(view));
       }});
}

std::vector<HttpAdminPage> Pages(ServerCore* core, const CallMetrics* calls, const observe::Tracer* tracer) {
  std::vector<HttpAdminPage> pages;
  pages.push_back(
      {"/metrics", [core, calls, tracer](const HttpRequest& request, const HttpAdminStats& port) {
         const auto format = observe::MetricsFormatFor(request.headers.Find("accept").value_or(""));
         return HttpAdminReply(200, observe::MetricsContentType(format),
                               ServerMetrics(core->Sample(/*process=*/false), *calls, tracer, port, format));
       }});
  pages.push_back({"/healthz", [](const HttpRequest&, const HttpAdminStats&) {
                     return HttpAdminReply(200, kPlain, "ok\n");
                   }});
  pages.push_back({"/readyz", [core](const HttpRequest&, const HttpAdminStats&) {
                     if (core->draining()) return HttpAdminReply(503, kPlain, "draining\n");
                     return HttpAdminReply(200, kPlain, "ok\n");
                   }});
  pages.push_back({"/status.json", [core](const HttpRequest&, const HttpAdminStats&) {
                     const ServerStats stats = core->Sample(/*process=*/true);
                     return HttpAdminReply(200, kJson, StatusJson(StatusMessage(stats, Now())));
                   }});
  pages.push_back(
      {"/config",
       [core](const HttpRequest&, const HttpAdminStats&) {
         return HttpAdminReply(200, kJson, ConfigJson(core->Sample(/*process=*/false)));
       },
       [core](const HttpRequest& request, const HttpAdminStats&) { return SwitchConfig(*core, request); }});
  pages.push_back(
      {"/loglevel",
       [](const HttpRequest&, const HttpAdminStats&) {
         return HttpAdminReply(200, kPlain, Join(SeverityName(LogLevel()), "\n"));
       },
       [](const HttpRequest& request, const HttpAdminStats&) { return SwitchLogLevel(request); }});
  pages.push_back({"/threads", [](const HttpRequest&, const HttpAdminStats&) {
                     return HttpAdminReply(200, kJson, ThreadsJson(observe::ReadThreadUsages()));
                   }});
  pages.push_back({"/traces", [tracer](const HttpRequest&, const HttpAdminStats&) {
                     if (tracer == nullptr) {
                       return HttpAdminReply(404, kPlain,
                                             "traces are off: start the server with --trace-to\n");
                     }
                     return HttpAdminReply(200, kJson, tracer->RecentJson());
                   }});
  AddDashboard(core, calls, tracer, &pages);
  return pages;
}

}  // namespace

absl::StatusOr<AdminPages> StartAdminPages(const std::string& text, const std::string& token,
                                           ServerCore* core, const CallMetrics* calls,
                                           const observe::Tracer* tracer) {
  return StartAdminPort(text, token, Pages(core, calls, tracer));
}

absl::StatusOr<AdminPages> StartAdminPort(const std::string& text, const std::string& token,
                                          std::vector<HttpAdminPage> served) {
  const std::string wanted = OnLoopback(text);
  const absl::StatusOr<Address> address = Address::Resolve(wanted);
  if (!address.ok()) return address.status();
  absl::StatusOr<UniqueFd> listener = Listen(*address);
  if (!listener.ok()) return listener.status();
  AdminPages pages{.address = BoundAddress(listener->get())};
  auto http =
      observe::HttpAdmin::Start(*std::move(listener), {.access = AccessBy(wanted, token)}, std::move(served));
  if (!http.ok()) return http.status();
  pages.http = *std::move(http);
  return pages;
}

}  // namespace curtail::internal
