// SPDX-License-Identifier: Apache-2.0
//
// The document of the dashboard, as its page has it as an example (web/dashboard/document.json).
#include <fstream>
#include <sstream>

#include "curtail/observe/dashboard.h"
#include "curtail/rpc/admin/admin_json.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace curtail::internal {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kStatus[] = R"(
  now_ns: 5000000000 config: "SIB1" spinning_threads: 1 sleeping_threads: 2 fibers: 3 queued: 4 begun: 100
  queue_wait_us: 7 max_queue_wait_us: 1500 connections: 5 open_calls: 6 held_bytes: 1048576
  pools { name: "workers" threads: 2 active: 1 waiting: 1 parked: 0 }
  policy {
    name: "mutune" note: "learns" switches_by_itself: true rate_per_s: 10.5 fast_rate_per_s: 11.5 paper_rate_per_s: 12.5
    arrivals: 13 evaluations: 14 switches: 1 failures: 1 last_failure: "no"
    decisions { at_ns: 3000000000 rate_per_s: 9.5 from: "SDB1-4" to: "SIB1" reason: "load" }
  }
  process { threads: 8 voluntary_switches: 20 involuntary_switches: 21 cpu_us: 22 run_delay_us: 23 }
  held_up { path: "/a.B/C" times: 7 blocks: true }
  limits { name: "max_streams" times: 8 }
  refusals { reason: "waited too long" times: 9 }
  stores { name: "redis unix:/r" up: true connections: 1 attempts: 2 failures: 1 lost: 0 }
  credits { total: 32 issued: 20 accounts: 2 }
  fences {
    mode: "strict" limiter: "sct"
    classes {
      name: "user" limit: 8 in_use: 1 waiting: 2 begun: 3 queued: 4 refused: 5 borrowed: 6 shed: 7 late: 8 no_credit: 9
      methods: "/a.B/C"
    }
    undeclared { method: "/a.B/C" service: "user" times: 10 }
  })";

observe::DashboardView Sample() {
  admin::v1::GetStatusReply status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kStatus, &status));
  observe::DashboardView view{.application = "shop", .sample = 3, .age_ms = 40, .traces = true};
  view.services = {{.name = "cart", .calls = {"user"}, .entry = true}, {.name = "user"}};
  view.instances.push_back({.name = "cart",
                            .service = "cart",
                            .pid = 7,
                            .address = "unix:/cart",
                            .restarts = 1,
                            .status = StatusJson(status),
                            .metrics = "process_resident_memory_bytes 1000\n"});
  view.instances.push_back(
      {.name = "user", .service = "user", .state = "waiting", .problem = "exit code 1", .error = "refused"});
  view.loads.push_back({.pid = 9,
                        .command = "curtail load shop --rps 100",
                        .label = "load",
                        .elapsed_s = 3.5,
                        .total_s = 12,
                        .ok = 290,
                        .failed = 2,
                        .in_flight = 1,
                        .due_per_s = 100.5,
                        .sent_per_s = 99,
                        .p50_us = 250,
                        .p99_us = 9000});
  return view;
}

json Written(const observe::DashboardView& view) { return json::parse(observe::DashboardJson(view)); }

TEST(DashboardDocument, IsTheExampleThatThePageIsCompiledWith) {
  std::ifstream file(CURTAIL_DASHBOARD_DOCUMENT);
  std::ostringstream text;
  text << file.rdbuf();
  const json written = Written(Sample());
  const json example = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(written, example) << "web/dashboard/document.json and document.ts beside it should be:\n"
                              << written.dump(2);
}

TEST(DashboardDocument, AForeignStatusIsAnErrorOfItsInstance) {
  observe::DashboardView view = Sample();
  const std::string deep = std::string(100'000, '[');
  for (const auto& [status, why] :
       {std::pair<std::string, const char*>("{", "is not JSON"),
        std::pair<std::string, const char*>("<html>", "is not JSON"),
        std::pair<std::string, const char*>("[]", "schema_version"),
        std::pair<std::string, const char*>("{\"schema_version\": 2}", "schema_version 2"),
        std::pair<std::string, const char*>(deep, "status of a server")}) {
    view.instances[0].status = status;
    const json cart = Written(view)["instances"][0];
    EXPECT_TRUE(cart["status"].is_null()) << status;
    EXPECT_THAT(cart["error"].get<std::string>(), HasSubstr(why));
    EXPECT_EQ(Written(view)["instances"][1]["error"], "refused") << "the others are shown";
  }
}

}  // namespace
}  // namespace curtail::internal
