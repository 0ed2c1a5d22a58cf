// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/log.h"
#include "curtail/observe/http_admin_testing.h"
#include "curtail/rpc/admin/server_metrics.h"
#include "curtail/rpc/rpc_testing.h"
#include "curtail/rpc/server/parts/method_table.h"
#include "nlohmann/json.hpp"

namespace curtail {
namespace {

using nlohmann::json;
using observe::HttpPeer;
using testing::HasSubstr;

// The value of each series of a text.
std::map<std::string, double> Series(const std::string& text) {
  std::map<std::string, double> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(series.emplace(line.substr(0, space), std::atof(line.c_str() + space)).second)
        << "twice: " << line;
  }
  return series;
}

class AdminPages : public testing::Test, protected RpcBase {
 protected:
  std::unique_ptr<Server> StartWithPort(ServerOptions options = {}) {
    options.config = *Config::Parse("SDB1-4");
    if (options.http_admin.empty()) options.http_admin = "0";
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), &cancelled_));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  static HttpPeer::Reply Get(const Server& server, std::string_view path, std::string_view headers = "") {
    return HttpPeer(server.http_admin_address()).Get(path, headers);
  }
};

TEST_F(AdminPages, MetricsHaveEachAnsweredCall) {
  constexpr int kThreads = 3, kEach = 40;
  const auto server = StartWithPort();
  std::vector<std::thread> callers;
  for (int t = 0; t < kThreads; ++t) {
    callers.emplace_back([&] {
      Client client;
      Channel channel(&client, server->addresses()[0]);
      for (int i = 0; i < kEach; ++i) Call(channel, kEcho, i % 4 == 0 ? "fail" : "hello").IgnoreError();
    });
  }
  HttpPeer scraper(server->http_admin_address());
  const std::string echo = R"({rpc_service="test.Echo",rpc_method="Echo")";
  double before = 0;
  for (int i = 0; i < 5; ++i) {
    const double now = Series(scraper.Get("/metrics").body)["rpc_server_duration_seconds_count" + echo + "}"];
    EXPECT_GE(now, before);
    before = now;
  }
  for (std::thread& caller : callers) caller.join();
  const HttpPeer::Reply reply = scraper.Get("/metrics");
  EXPECT_THAT(reply.head, HasSubstr("content-type: text/plain; version=0.0.4"));
  auto series = Series(reply.body);
  constexpr double kCalls = kThreads * kEach;
  EXPECT_EQ(series["rpc_server_duration_seconds_count" + echo + "}"], kCalls);
  EXPECT_EQ(series["rpc_server_duration_seconds_bucket" + echo + R"(,le="+Inf"})"], kCalls);
  EXPECT_GT(series["rpc_server_duration_seconds_sum" + echo + "}"], 0);
  EXPECT_EQ(series["rpc_server_calls_total" + echo + R"(,rpc_response_status_code="OK"})"], kCalls * 3 / 4);
  EXPECT_EQ(series["rpc_server_calls_total" + echo + R"(,rpc_response_status_code="NOT_FOUND"})"],
            kCalls / 4);
  EXPECT_EQ(series.count(R"(curtail_config_info{config="SDB1-4",policy=""})"), 1u) << reply.body;
  EXPECT_EQ(series["curtail_queue_begun_total"], kCalls);
  EXPECT_EQ(series["curtail_http_admin_requests_total"], 6);
  EXPECT_GT(series["process_cpu_seconds_total"], 0);
}

TEST_F(AdminPages, MetricsHaveEachCallThatAHandlerMakes) {
  const auto leaf = StartWithPort(), other_leaf = StartWithPort();
  const auto config = [](std::string_view policy) {
    return Join(R"({"methodConfig":[{"name":[{"service":"test.Echo","method":"Echo"}],)", policy, "}]}");
  };
  const std::string retry = config(
      R"("retryPolicy":{"maxAttempts":3,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,
         "retryableStatusCodes":["NOT_FOUND"]})");
  const std::string hedge = config(
      R"("hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"1000s","nonFatalStatusCodes":["NOT_FOUND"]})");
  const std::string at = leaf->addresses()[0];
  const std::string retried = Join("ipv4:", at), hedged = other_leaf->addresses()[0];
  Client client;
  Channel plain(&client, at), retries(&client, retried, {.service_config = retry}),
      hedges(&client, hedged, {.service_config = hedge});
  ServerOptions options;
  options.config = *Config::Parse("SDB1-4");
  options.http_admin = "0";
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<EchoService>(
      &gate_, std::vector<Channel*>{&plain, &plain, &retries, &hedges}, &cancelled_));
  auto mid = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(mid.ok()) << mid.status();
  Client caller;
  Channel to_mid(&caller, (*mid)->addresses()[0]);
  constexpr int kEach = 10;
  for (int i = 0; i < kEach; ++i) {
    EXPECT_TRUE(Call(to_mid, kForward, "hello").ok());
    EXPECT_FALSE(Call(to_mid, kForward, "fail").ok());
  }
  const std::string text = Get(**mid, "/metrics").body;
  auto series = Series(text);
  const auto edge = [&series](std::string_view name, std::string_view target, std::string_view more = "") {
    return series[Join(name, R"({rpc_service="test.Echo",rpc_method="Echo",server_address=")", target, "\"",
                       more, "}")];
  };
  EXPECT_EQ(edge("rpc_client_duration_seconds_count", at), 4 * kEach) << text;
  EXPECT_GT(edge("rpc_client_duration_seconds_sum", at), 0);
  EXPECT_EQ(edge("rpc_client_calls_total", at, R"(,rpc_response_status_code="OK")"), 2 * kEach);
  EXPECT_EQ(edge("rpc_client_calls_total", at, R"(,rpc_response_status_code="NOT_FOUND")"), 2 * kEach);
  EXPECT_EQ(edge("curtail_client_retries_total", at), 0);
  EXPECT_EQ(edge("rpc_client_duration_seconds_count", retried), 2 * kEach) << "a call, however often made";
  EXPECT_EQ(edge("curtail_client_retries_total", retried), 2 * kEach);
  EXPECT_EQ(edge("curtail_client_hedges_total", hedged), 2 * kEach);
  EXPECT_EQ(text.find("server_address=\"other\""), text.npos);
  const auto connections = [&series](std::string_view name, std::string_view target) {
    return series[Join("curtail_client_connection", name, R"({server_address=")", target, "\"}")];
  };
  for (const std::string& target : {at, retried, hedged}) {
    EXPECT_GE(connections("s", target), 1) << target << text;
    EXPECT_LE(connections("s", target), connections("_attempts_total", target));
    EXPECT_EQ(connections("_failures_total", target), 0);
  }
}

TEST_F(AdminPages, MetricsHaveConnectionsThatCannotBeMade) {
  const auto server = StartWithPort();
  const std::string gone = StartWithPort()->addresses()[0];
  Client client;
  const auto of_gone = [&](std::string_view name) {
    return Series(Get(*server, "/metrics").body)[Join(name, R"({server_address=")", gone, "\"}")];
  };
  Channel dead(&client, gone);
  EXPECT_EQ(Call(dead, kEcho, "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(of_gone("curtail_client_connections"), 0);
  EXPECT_EQ(of_gone("curtail_client_connection_attempts_total"), 1);
  EXPECT_EQ(of_gone("curtail_client_connection_failures_total"), 1);
}

TEST_F(AdminPages, MetricsAndStatusHaveStores) {
  const auto server = StartWithPort();
  internal::TargetConnections* const store = internal::ConnectionCounts::ToStores().For("redis unix:/r");
  store->attempts = 5, store->failures = 1, store->stood = 4, store->closed = 1, store->lost = 2;
  const auto of = [&](std::string_view name) {
    return Series(Get(*server, "/metrics")
                      .body)[Join("curtail_store_", name, R"({store="redis",server_address="unix:/r"})")];
  };
  EXPECT_EQ(of("up"), 1);
  EXPECT_EQ(of("connections"), 3);
  EXPECT_EQ(of("connection_attempts_total"), 5);
  EXPECT_EQ(of("connection_failures_total"), 1);
  EXPECT_EQ(of("connections_lost_total"), 2);
  store->silent = true;
  EXPECT_EQ(of("up"), 0);
  EXPECT_THAT(Get(*server, "/status.json").body, HasSubstr(R"("name": "redis unix:/r")"));
}

TEST_F(AdminPages, MetricsAreOpenMetricsForThoseThatAsk) {
  const auto server = StartWithPort();
  const HttpPeer::Reply reply =
      Get(*server, "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
  EXPECT_THAT(reply.head, HasSubstr("content-type: application/openmetrics-text; version=1.0.0"));
  EXPECT_TRUE(reply.body.ends_with("\n# EOF\n"));
  EXPECT_THAT(reply.body, HasSubstr("\n# TYPE curtail_config info\n"));
}

// Property: an exemplar lies in its bucket, and its trace is among those of /traces.
TEST_F(AdminPages, ExemplarsNameTraces) {
  ServerOptions options;
  options.trace = {.to = "memory", .sample = 1};
  const auto server = StartWithPort(std::move(options));
  Client client;
  Channel channel(&client, server->addresses()[0]);
  ASSERT_TRUE(Call(channel, kEcho, "hello").ok());
  std::string text, line;
  const std::string bucket =
      R"(rpc_server_duration_seconds_bucket{rpc_service="test.Echo",rpc_method="Echo",le=")";
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (line.empty() && !deadline.Expired()) {  // the span may come after the answer
    text = Get(*server, "/metrics", "Accept: application/openmetrics-text\r\n").body;
    std::istringstream lines(text);
    for (std::string one; std::getline(lines, one);) {
      if (one.starts_with(bucket) && one.find(" # ") != one.npos) line = one;
    }
  }
  ASSERT_NE(line, "") << text;
  const std::string named = R"( # {trace_id=")";
  const size_t at = line.find(named) + named.size();
  EXPECT_THAT(Get(*server, "/traces").body, HasSubstr(line.substr(at, 32))) << line;
  const double bound = std::atof(line.c_str() + bucket.size());
  const double value = std::atof(line.c_str() + at + 32 + 3);
  EXPECT_GT(value, 0);
  EXPECT_LE(value, bound);
  EXPECT_EQ(Get(*server, "/metrics").body.find("trace_id"), std::string::npos);
}

TEST_F(AdminPages, LabelsAreNoBytesOfPeers) {
  const auto server = StartWithPort();
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const Method<StringValue, StringValue> unknown{"/test.Evil/Method"};
  EXPECT_EQ(Call(channel, unknown, "x").code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Get(*server, "/metrics").body.find("Evil"), std::string::npos);
}

TEST_F(AdminPages, ReadyUntilItDrains) {
  const auto server = StartWithPort();
  Client client;
  Channel channel(&client, server->addresses()[0]);
  std::thread caller([&] { Call(channel, kHang, "x").IgnoreError(); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  HttpPeer probe(server->http_admin_address());
  EXPECT_EQ(probe.Get("/readyz").body, "ok\n");
  std::thread drain([&] { EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok()); });
  const Deadline deadline = Deadline::In(kMaxTestWait);
  HttpPeer::Reply reply = probe.Get("/readyz");
  while (reply.status == 200 && !deadline.Expired()) reply = probe.Get("/readyz");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, "draining\n");
  EXPECT_EQ(probe.Get("/healthz").status, 200);
  gate_.Open();
  caller.join();
  drain.join();
  EXPECT_TRUE(probe.Closed());
}

TEST_F(AdminPages, DashboardIsForBrowsersAndShowsThisServer) {
  const auto server = StartWithPort();
  const HttpPeer::Reply text = Get(*server, "/");
  EXPECT_EQ(text.status, 200);
  EXPECT_THAT(text.body, HasSubstr("\n/metrics\n")) << "a reader without gzip gets the list of pages";
  for (const std::string_view path : {"/", "/dashboard.js", "/dashboard.css"}) {
    const HttpPeer::Reply file = Get(*server, path, "Accept-Encoding: gzip, br\r\n");
    EXPECT_EQ(file.status, 200) << path;
    EXPECT_THAT(file.head, HasSubstr("content-encoding: gzip\r\n")) << path;
    EXPECT_THAT(file.head, HasSubstr("content-security-policy: default-src 'none';")) << path;
    EXPECT_TRUE(file.body.starts_with("\x1f\x8b")) << path;
    EXPECT_LT(file.body.size(), 50'000u) << path << " is in every program";
  }
  const json document = json::parse(Get(*server, "/dashboard.json").body);
  EXPECT_EQ(document["schema_version"], 2);
  EXPECT_EQ(document["traces"], false);
  const json& instance = document["instances"].at(0);
  EXPECT_EQ(instance["error"], "");
  EXPECT_EQ(instance["status"]["config"], "SDB1-4");
  EXPECT_THAT(instance["metrics"].get<std::string>(), HasSubstr("\nrpc_server_calls_total{"));
}

TEST_F(AdminPages, StatusConfigAndThreadsAreJson) {
  const auto server = StartWithPort();
  const json status = json::parse(Get(*server, "/status.json").body);
  EXPECT_EQ(status["schema_version"], 1);
  EXPECT_EQ(status["config"], "SDB1-4");
  EXPECT_EQ(json::parse(Get(*server, "/config").body),
            json({{"config", "SDB1-4"}, {"policy", nullptr}, {"switches_by_itself", false}}));
  const json threads = json::parse(Get(*server, "/threads").body)["threads"];
  int own = 0;
  for (const json& thread : threads) own += thread["name"] == "http-admin" && thread["state"] == "R";
  EXPECT_EQ(own, 1) << threads;
}

TEST_F(AdminPages, PostChangesTheConfigForThoseWhoMay) {
  ServerOptions options;
  options.admin_token = "secret";
  const auto server = StartWithPort(std::move(options));
  const auto post = [&](std::string_view body, std::string_view headers) {
    HttpPeer peer(server->http_admin_address());
    peer.Send(Join("POST /config HTTP/1.1\r\nHost: localhost\r\n", headers, "Content-Length: ", body.size(),
                   "\r\n\r\n", body));
    return peer.Read();
  };
  EXPECT_EQ(post("SIB1", "").status, 403);
  EXPECT_EQ(server->config().ToString(), "SDB1-4");
  EXPECT_EQ(post("XYZ", "Authorization: Bearer secret\r\n").status, 400);
  const HttpPeer::Reply switched = post("SIB1\n", "Authorization: Bearer secret\r\n");
  EXPECT_EQ(json::parse(switched.body), json({{"previous", "SDB1-4"}, {"config", "SIB1"}}));
  EXPECT_EQ(server->config().ToString(), "SIB1");
}

TEST_F(AdminPages, PostChangesTheLogLevelForThoseWhoMay) {
  ServerOptions options;
  options.admin_token = "secret";
  const auto server = StartWithPort(std::move(options));
  const auto post = [&](std::string_view body, std::string_view headers) {
    HttpPeer peer(server->http_admin_address());
    peer.Send(Join("POST /loglevel HTTP/1.1\r\nHost: localhost\r\n", headers, "Content-Length: ", body.size(),
                   "\r\n\r\n", body));
    return peer.Read();
  };
  constexpr char kToken[] = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(Get(*server, "/loglevel").body, "info\n");
  EXPECT_EQ(post("error", "").status, 403);
  EXPECT_EQ(post("loud", kToken).body,
            "\"loud\" is not a level of the log; write debug, info, warning or error\n");
  EXPECT_EQ(LogLevel(), Severity::kInfo);
  EXPECT_EQ(post("error\n", kToken).body, "error\n");
  EXPECT_EQ(LogLevel(), Severity::kError);
  SetLogLevel(Severity::kInfo);
}

TEST_F(AdminPages, UnixSocketMayChangeTheConfig) {
  ServerOptions options;
  options.http_admin = Join("unix:", testing::TempDir(), "/admin_pages_", getpid());
  const auto server = StartWithPort(options);
  HttpPeer peer(server->http_admin_address());
  peer.Send("POST /config HTTP/1.1\r\nContent-Length: 4\r\nHost: localhost\r\n\r\nSIB1");
  EXPECT_EQ(peer.Read().status, 200);
  EXPECT_EQ(server->config().ToString(), "SIB1");
  unlink(options.http_admin.c_str() + 5);
}

TEST_F(AdminPages, PortAloneIsOnThisMachineOnly) {
  for (const char* text : {"0", ":0", "127.0.0.1:0"}) {
    ServerOptions options;
    options.http_admin = text;
    EXPECT_THAT(StartWithPort(std::move(options))->http_admin_address(), testing::StartsWith("127.0.0.1:"))
        << text;
  }
  EXPECT_EQ(StartServer("SIB1")->http_admin_address(), "");
}

TEST_F(AdminPages, StartFailsWhereItCannotListen) {
  const auto server = StartWithPort();
  ServerOptions options;
  options.http_admin = server->http_admin_address();
  EXPECT_EQ(Server::Start(options, {}).status().code(), absl::StatusCode::kAlreadyExists);
  options.http_admin = "nowhere";
  EXPECT_EQ(Server::Start(options, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

ServerStats StatsOfAllKinds() {
  ServerStats stats;
  stats.pools.config = *Config::Parse("SDB1-4");
  stats.pools.pools = {{"workers", 4, 1, 2, 1}};
  stats.policy = PolicyStats{.policy = "mine \"quoted\"\\\n", .switches_by_itself = true};
  stats.limits = {{"queue", 3}};
  stats.refusals = {{"shed", 2}};
  stats.held_up = {{"/test.Echo/Echo", 2, true}};
  stats.fences = FenceStats{.mode = FenceMode::kStrict,
                            .classes = {{.name = "a.Users", .limit = 4, .in_use = 3}},
                            .undeclared = {{"/a.B/C", "a.Posts", 10}}};
  return stats;
}

// promtool is of Prometheus itself; what it thinks of names, types and help.
TEST(ServerMetrics, PassPromtool) {
  ASSERT_EQ(std::system("command -v promtool >/dev/null"), 0) << "apt-get install prometheus";
  internal::MethodTable methods;
  Gate gate;
  ASSERT_TRUE(methods.Add(std::make_unique<EchoService>(&gate, std::vector<Channel*>(), nullptr)).ok());
  internal::CallMetrics calls(methods);
  const std::string text =
      internal::ServerMetrics(StatsOfAllKinds(), calls, nullptr, {}, observe::MetricsFormat::kPrometheus);
  Series(text);
  std::FILE* const promtool = popen("promtool check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  std::fwrite(text.data(), 1, text.size(), promtool);
  EXPECT_EQ(pclose(promtool), 0) << text;
}

}  // namespace
}  // namespace curtail
