// SPDX-License-Identifier: Apache-2.0
//
// tests/kit/dashboard_test.py runs the command.
#include "tools/curtail/observe/dashboard_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const DashboardFlags kShop{.application = "shop",
                           .services = {"leaf=127.0.0.1:9464,127.0.0.2:9465", "cart=[::1]:9464"},
                           .calls = {"front=leaf,cache", "leaf=cache"},
                           .entry = "front"};

std::vector<std::string> StatesOf(const UpState& state) {
  std::vector<std::string> states;
  for (const ProcessState& p : state.processes)
    states.push_back(absl::StrCat(p.service, " ", p.state, p.http_admin.empty() ? "" : " ", p.http_admin));
  return states;
}

TEST(DashboardCommand, ItsFlagsAreAGraph) {
  const auto watched = WatchedBy(kShop);
  ASSERT_TRUE(watched.ok()) << watched.status();
  std::vector<std::string> graph;
  for (const observe::DashboardService& service : watched->services) {
    std::string& line = graph.emplace_back(absl::StrCat(service.name, service.entry ? ", the entry:" : ":"));
    for (const std::string& callee : service.calls) absl::StrAppend(&line, " ", callee);
  }
  EXPECT_THAT(graph, ElementsAre("leaf: cache", "cart:", "front, the entry: leaf cache", "cache:"));
}

TEST(DashboardCommand, RefusesFlagsOfAnotherForm) {
  for (const char* text :
       {"leaf", "=a:1", "leaf=", "leaf=a:1,", "leaf=a", "leaf=:1", "leaf=a:0", "leaf=a:65536", "leaf=a:b"}) {
    const auto watched = WatchedBy({.application = "shop", .services = {text}});
    EXPECT_THAT(watched.status().message(), HasSubstr("NAME=HOST:PORT")) << text;
  }
  EXPECT_THAT(WatchedBy({.application = "shop", .calls = {"front"}}).status().message(),
              HasSubstr("--calls front"));
}

TEST(DashboardCommand, FindsAProcessAtEachAddress) {
  const UpState state = FindProcesses(*WatchedBy(kShop), {});
  EXPECT_THAT(StatesOf(state), ElementsAre("leaf ready 127.0.0.1:9464", "leaf ready 127.0.0.2:9465",
                                           "cart ready [::1]:9464", "front external", "cache external"));
}

// The resolver refuses the name itself, so no name server is asked.
TEST(DashboardCommand, ANameWithoutAddressHasNoPod) {
  const std::string too_long(300, 'a');
  const UpState state = FindProcesses(
      *WatchedBy({.application = "shop", .services = {absl::StrCat("leaf=shop-", too_long, ":9464")}}), {});
  EXPECT_THAT(StatesOf(state), ElementsAre("leaf no pod"));
  EXPECT_EQ(state.processes[0].name, too_long) << "without the application";
}

}  // namespace
}  // namespace curtail::tool
