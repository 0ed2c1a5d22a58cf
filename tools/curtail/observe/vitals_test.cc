// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/vitals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanos kSecond = std::chrono::seconds(1);

std::string Metrics(int calls, int errors) {
  return absl::StrCat(
      "rpc_server_calls_total{rpc_service=\"shop.Cart\",rpc_method=\"Add\",rpc_response_status_code=\"OK\"} ",
      calls - errors,
      "\nrpc_server_calls_total{rpc_service=\"shop.Cart\",rpc_method=\"Add\",rpc_response_status_code="
      "\"INTERNAL\"} ",
      errors,
      "\nrpc_server_calls_total{rpc_service=\"grpc.health.v1.Health\",rpc_method=\"Check\",rpc_response_"
      "status_code=\"OK\"} 999"
      "\nrpc_server_duration_seconds_bucket{rpc_service=\"shop.Cart\",rpc_method=\"Add\",le=\"0.001\"} 0"
      "\nrpc_server_duration_seconds_bucket{rpc_service=\"shop.Cart\",rpc_method=\"Add\",le=\"0.002\"} ",
      calls,
      "\nrpc_server_duration_seconds_bucket{rpc_service=\"shop.Cart\",rpc_method=\"Add\",le=\"+Inf\"} ",
      calls,
      "\ncurtail_config_info{config=\"SDB1-4\",policy=\"\"} 1\ncurtail_queue_requests "
      "3\ncurtail_queue_begun_total ",
      calls, "\ncurtail_queue_wait_seconds_total ", calls * 0.002, "\n");
}

ProcessVitals Process(const std::string& name, pid_t pid, Nanos at, int calls, int errors = 0) {
  ProcessVitals of;
  of.process.name = name;
  of.process.service = name.substr(0, name.find('-'));
  of.process.state = "ready";
  of.process.pid = pid;
  of.threads = 5;
  of.cpu_s = calls * 0.01;
  of.resident_mib = 10;
  of.at = TimePoint(at);
  ReadCounts(Metrics(calls, errors), &of);
  return of;
}

TEST(Vitals, AServiceIsItsProcessesTogether) {
  const ApplicationVitals before{
      .processes = {Process("cart-0", 1, kSecond, 100), Process("cart-1", 2, kSecond, 50)}};
  const ApplicationVitals now{
      .processes = {Process("cart-0", 1, 3 * kSecond, 120, 4), Process("cart-1", 2, 3 * kSecond, 60)}};
  const std::vector<ServiceVitals> services = Compare(before, now);
  ASSERT_EQ(services.size(), 1u);
  const ServiceVitals& cart = services[0];
  EXPECT_EQ(cart.name, "cart");
  EXPECT_EQ(cart.processes, 2);
  EXPECT_EQ(cart.ready, 2);
  EXPECT_DOUBLE_EQ(*cart.calls_per_s, 15) << "without health checks";
  EXPECT_DOUBLE_EQ(*cart.errors_per_s, 2);
  EXPECT_NEAR(*cart.p50_s, 0.0015, 1e-9);
  EXPECT_NEAR(*cart.p99_s, 0.00199, 1e-9);
  EXPECT_EQ(cart.config, "SDB1-4");
  EXPECT_EQ(cart.queued, 6);
  EXPECT_NEAR(*cart.queue_wait_s, 0.002, 1e-9);
  EXPECT_EQ(cart.threads, 10);
  EXPECT_NEAR(*cart.cpus, 0.15, 1e-9);
  EXPECT_EQ(cart.resident_mib, 20);
  EXPECT_THAT(cart.problems, IsEmpty());
}

TEST(Vitals, AProcessThatWasReplacedHasNoRates) {
  const ApplicationVitals before{.processes = {Process("cart-0", 1, kSecond, 100)}};
  const ApplicationVitals now{.processes = {Process("cart-0", 7, 2 * kSecond, 120)}};
  const ServiceVitals cart = Compare(before, now).at(0);
  EXPECT_EQ(cart.calls_per_s, std::nullopt);
  EXPECT_EQ(cart.p99_s, std::nullopt);
  EXPECT_EQ(cart.cpus, std::nullopt);
  EXPECT_EQ(cart.queued, 3);
}

// A process says so of its calls to a target.
std::string Edge(const std::string& target, int calls, int errors) {
  const std::string labels =
      absl::StrCat("{rpc_service=\"shop.Stock\",rpc_method=\"Take\",server_address=\"", target, "\"");
  return absl::StrCat("rpc_client_calls_total", labels, ",rpc_response_status_code=\"OK\"} ", calls - errors,
                      "\nrpc_client_calls_total", labels, ",rpc_response_status_code=\"INTERNAL\"} ", errors,
                      "\nrpc_client_duration_seconds_bucket", labels, ",le=\"0.001\"} 0",
                      "\nrpc_client_duration_seconds_bucket", labels, ",le=\"0.002\"} ", calls,
                      "\nrpc_client_duration_seconds_bucket", labels, ",le=\"+Inf\"} ", calls, "\n");
}

TEST(Vitals, AnEdgeIsTheCallsOfOneServiceToAnother) {
  const auto look = [](Nanos at, int calls, int errors) {
    ApplicationVitals vitals;
    for (const char* name : {"cart-0", "cart-1", "stock-0", "stock-1"}) {
      ProcessVitals& of = vitals.processes.emplace_back(Process(name, 1, at, 100));
      of.process.address = absl::StrCat("unix:/run/", name, ".sock");
      if (of.process.service != "cart") continue;
      ReadCounts(Edge(name == std::string_view("cart-0") ? "unix:/run/stock-0.sock"
                                                         : "file:/run/shop/stock.addresses",
                      calls, errors),
                 &of);
      ReadCounts(Edge("ipv4:unix:/run/other.sock,unix:/run/stock-1.sock", calls, 0), &of);
      ReadCounts(Edge("unix:/run/stock-0.sock2", 1, 0), &of);
    }
    return vitals;
  };
  const std::vector<EdgeVitals> edges = CompareEdges(look(kSecond, 10, 0), look(3 * kSecond, 20, 4));
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(edges[0].caller, "cart");
  EXPECT_EQ(edges[0].callee, "stock");
  EXPECT_DOUBLE_EQ(*edges[0].calls_per_s, 20);
  EXPECT_DOUBLE_EQ(*edges[0].errors_per_s, 4);
  EXPECT_NEAR(*edges[0].p50_s, 0.0015, 1e-9);
  EXPECT_EQ(edges[1].callee, "unix:/run/stock-0.sock2");
  EXPECT_DOUBLE_EQ(*edges[1].calls_per_s, 0);
  EXPECT_EQ(edges[1].p50_s, std::nullopt);
}

TEST(Vitals, ADeadProcessIsNamedAndTheOthersCount) {
  const ApplicationVitals before{
      .processes = {Process("cart-0", 1, kSecond, 100), Process("cart-1", 2, kSecond, 100)}};
  ApplicationVitals now{.processes = {Process("cart-0", 1, 2 * kSecond, 130)}};
  ProcessVitals& dead = now.processes.emplace_back();
  dead.process.name = "cart-1", dead.process.service = "cart", dead.process.state = "waiting";
  dead.process.problem = "was killed by signal 9\nand more";
  ProcessVitals& silent = now.processes.emplace_back(Process("stock-0", 3, 2 * kSecond, 1));
  silent.counted = false, silent.error = "no answer in time";
  const std::vector<ServiceVitals> services = Compare(before, now);
  EXPECT_EQ(services[0].ready, 1);
  EXPECT_EQ(services[0].processes, 2);
  EXPECT_DOUBLE_EQ(*services[0].calls_per_s, 30);
  EXPECT_THAT(services[0].problems, ElementsAre("cart-1 is waiting: it was killed by signal 9"));
  EXPECT_EQ(services[1].ready, 0);
  EXPECT_THAT(services[1].problems, ElementsAre("stock-0 does not answer: no answer in time"));
}

}  // namespace
}  // namespace curtail::tool
