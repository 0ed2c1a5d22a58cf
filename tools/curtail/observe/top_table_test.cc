// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/top_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ServiceVitals Service(const std::string& name, double calls, double cpus) {
  ServiceVitals service{.name = name, .processes = 2, .ready = 2};
  service.calls_per_s = calls, service.errors_per_s = 0.5;
  service.p50_s = 0.00125, service.p99_s = 0.0105;
  service.config = "SDB1-16";
  service.queued = 3, service.queue_wait_s = 0.0001;
  service.threads = 21, service.cpus = cpus, service.resident_mib = 64;
  return service;
}

TopPage Page() {
  ServiceVitals dead{.name = "store", .processes = 1, .restarts = 2, .problems = {"store-0 is waiting"}};
  return {.application = "shop",
          .time = "12:34:56",
          .services = {dead, Service("web", 1000, 0.5), Service("cart", 20, 0.25)}};
}

TopPage PageWithEdges() {
  TopPage page = Page();
  page.edges = {{"web", "cart", 20, 0.5, 0.001, 0.002}, {"web", "store", {}, {}, {}, {}}};
  return page;
}

std::vector<std::string> Names(const std::vector<ServiceVitals>& services) {
  std::vector<std::string> names;
  for (const ServiceVitals& service : services) names.push_back(service.name);
  return names;
}

std::string Joined(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) absl::StrAppend(&text, line.text, "\n");
  return text;
}

TEST(TopTable, ShowsEveryServiceInLinesWithoutBounds) {
  const std::vector<ScreenLine> lines = TopLines(Page(), {.columns = 0, .lines = 0});
  EXPECT_EQ(Joined(lines),
            "shop  12:34:56  4 of 5 processes ready\n"
            "SERVICE  UP    CALLS/S  P50 MS  P99 MS  ERR/S  CPU %  MIB  QUEUE  WAIT MS  THREADS  CONFIG\n"
            "store    down        -       -       -      -      -    -      -        -        -  -\n"
            "web      2/2    1000.0    1.25   10.50    0.5   50.0   64      3    0.100       21  SDB1-16\n"
            "cart     2/2      20.0    1.25   10.50    0.5   25.0   64      3    0.100       21  SDB1-16\n"
            "store-0 is waiting\n");
  EXPECT_EQ(lines[2].style, ScreenLine::Style::kAlarm);
  EXPECT_EQ(lines[3].style, ScreenLine::Style::kPlain);
}

TEST(TopTable, FitsEveryTerminal) {
  for (size_t columns = 1; columns <= 120; ++columns) {
    for (size_t rows = 1; rows <= 12; ++rows) {
      const std::vector<ScreenLine> lines = TopLines(PageWithEdges(), {columns, rows});
      ASSERT_FALSE(lines.empty());
      ASSERT_LE(lines.size(), rows) << columns;
      for (const ScreenLine& line : lines) ASSERT_LE(line.text.size(), columns) << line.text;
    }
  }
}

TEST(TopTable, ShowsEdgesWhereTheyFit) {
  EXPECT_THAT(Joined(TopLines(PageWithEdges(), {.columns = 0, .lines = 0})),
              testing::EndsWith("store-0 is waiting\n"
                                "CALLS OF  TO     CALLS/S  P50 MS  P99 MS  ERR/S\n"
                                "web       cart      20.0    1.00    2.00    0.5\n"
                                "web       store        -       -       -      -\n"));
  EXPECT_THAT(Joined(TopLines(PageWithEdges(), {80, 8})), Not(HasSubstr("CALLS OF")));
  EXPECT_THAT(Joined(TopLines(PageWithEdges(), {80, 9})), HasSubstr("\nweb       store "));
  const nlohmann::json json = nlohmann::json::parse(TopJson(PageWithEdges(), 1234, 1.5));
  EXPECT_EQ(json["edges"][0]["callee"], "cart");
  EXPECT_DOUBLE_EQ(json["edges"][0]["p99_us"].get<double>(), 2000);
  EXPECT_TRUE(json["edges"][1]["calls_per_s"].is_null());
}

TEST(TopTable, LeavesOutTheLeastImportantColumnsAndSaysWhichRowsAreMissing) {
  const std::string narrow = Joined(TopLines(Page(), {60, 24}));
  EXPECT_THAT(narrow, HasSubstr("SERVICE  UP    CALLS/S  P50 MS  P99 MS  ERR/S  CPU %  MIB\n"));
  EXPECT_THAT(narrow, Not(HasSubstr("THREADS")));
  EXPECT_THAT(Joined(TopLines(Page(), {80, 4})), HasSubstr("\nstore    down "));
  EXPECT_THAT(Joined(TopLines(Page(), {80, 4})), HasSubstr("\n... 2 more\n"));
}

TEST(TopTable, SortsTheLargestFirstAfterThoseThatAreNotReady) {
  std::vector<ServiceVitals> services = Page().services;
  SortServices("name", &services);
  EXPECT_THAT(Names(services), ElementsAre("store", "cart", "web"));
  SortServices("calls", &services);
  EXPECT_THAT(Names(services), ElementsAre("store", "web", "cart"));
  services.push_back({.name = "memcached", .processes = 1, .ready = 1});
  services[1].cpus = 0.1;
  SortServices("cpu", &services);
  EXPECT_THAT(Names(services), ElementsAre("store", "cart", "web", "memcached"));
  for (const std::string& order : TopOrders()) SortServices(order, &services);
  EXPECT_EQ(services[0].name, "store");
}

TEST(TopTable, WritesALineOfJson) {
  const std::string text = TopJson(Page(), 1234, 1.5);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["unix_ms"], 1234);
  const nlohmann::json& dead = json["services"][0];
  EXPECT_EQ(dead["service"], "store");
  EXPECT_EQ(dead["ready"], 0);
  EXPECT_TRUE(dead["p99_us"].is_null()) << "unknown is not zero";
  EXPECT_DOUBLE_EQ(json["services"][1]["p99_us"].get<double>(), 10500);
}

}  // namespace
}  // namespace curtail::tool
