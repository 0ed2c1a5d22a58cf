// SPDX-License-Identifier: Apache-2.0
//
// tests/kit/dashboard_test.py runs the command.
#include "tools/curtail/observe/dashboard_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nss.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
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

std::vector<std::string> NamesOf(const UpState& state) {
  std::vector<std::string> names;
  for (const ProcessState& p : state.processes) names.push_back(p.name);
  return names;
}

// Runs `look` on a thread of its own, whose name server turns every question away: a socket that has a peer already.
void InAnOutage(const std::function<void()>& look) {
  ASSERT_EQ(__nss_configure_lookup("hosts", "files dns"), 0);
  std::thread([&look] {
    const int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(server, generic, size), 0);
    ASSERT_EQ(getsockname(server, generic, &size), 0);
    ASSERT_EQ(connect(server, generic, size), 0);
    ASSERT_EQ(res_init(), 0);
    _res.nscount = 1;
    _res.nsaddr_list[0] = address;
    look();
    close(server);
  }).join();
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
  const auto error = [](DashboardFlags flags) {
    flags.application = "shop";
    if (flags.services.empty()) flags.services = {"front=a:1"};
    return std::string(WatchedBy(flags).status().message());
  };
  EXPECT_THAT(error({.entry = "zzz"}), HasSubstr("--entry: no --service is called zzz; there is only front"));
  EXPECT_THAT(error({.calls = {"zzz=nope"}}),
              HasSubstr("--calls: no --service is called zzz; there is only front"));
  EXPECT_EQ(error({.calls = {"front=cache"}}), "");
  EXPECT_THAT(error({.services = {"front=a:1", "front=a:2"}}),
              HasSubstr("--service front is given twice; write --service front=HOST:PORT,HOST:PORT"));
}

TEST(DashboardCommand, FindsAProcessAtEachAddress) {
  auto watched = WatchedBy(kShop);
  const UpState state = FindProcesses(&*watched);
  EXPECT_THAT(StatesOf(state), ElementsAre("leaf ready 127.0.0.1:9464", "leaf ready 127.0.0.2:9465",
                                           "cart ready [::1]:9464", "front external", "cache external"));
}

// The resolver refuses the name itself, so no name server is asked.
TEST(DashboardCommand, ANameWithoutAddressHasNoPod) {
  const std::string too_long(300, 'a');
  auto watched =
      WatchedBy({.application = "shop", .services = {absl::StrCat("leaf=shop-", too_long, ":9464")}});
  const UpState state = FindProcesses(&*watched);
  EXPECT_THAT(StatesOf(state), ElementsAre("leaf no pod"));
  EXPECT_EQ(state.processes[0].name, too_long) << "without the application";
}

TEST(DashboardCommand, ProcessesOfOneHostHaveNamesOfTheirOwn) {
  auto watched = WatchedBy(
      {.application = "shop",
       .services = {"leaf=127.0.0.1:9464,127.0.0.1:9465,[::1]:9464,127.0.0.2:9464", "cart=[::1]:9465"}});
  EXPECT_THAT(NamesOf(FindProcesses(&*watched)),
              ElementsAre("127.0.0.1:9464", "127.0.0.1:9465", "[::1]:9464", "127.0.0.2", "[::1]:9465"));
}

// Three looks in an outage; without `last` there has been no answer yet.
std::vector<std::string> NamesInAnOutage(const std::optional<std::vector<std::string>>& last) {
  auto watched =
      WatchedBy({.application = "shop",
                 .services = {"leaf=shop-leaf:9464,shop-leaf:9465,127.0.0.1:9464", "cart=shop-cart:9464"}});
  for (Watched::Place& place : watched->places)
    if (place.host.starts_with("shop-")) place.addresses = last;
  UpState state;
  InAnOutage([&] {
    for (int look = 0; look < 3; ++look) state = FindProcesses(&*watched);
  });
  return NamesOf(state);
}

TEST(DashboardCommand, AnOutageOfTheNameServerChangesNothing) {
  EXPECT_THAT(NamesInAnOutage(std::vector<std::string>{"192.0.2.1", "192.0.2.2"}),
              ElementsAre("leaf:9464 192.0.2.1", "leaf:9464 192.0.2.2", "leaf:9465 192.0.2.1",
                          "leaf:9465 192.0.2.2", "127.0.0.1", "cart 192.0.2.1", "cart 192.0.2.2"));
  EXPECT_THAT(NamesInAnOutage(std::vector<std::string>{}),
              ElementsAre("leaf:9464", "leaf:9465", "127.0.0.1", "cart"));
}

TEST(DashboardCommand, AddressesNeedNoNameServer) {
  EXPECT_THAT(NamesInAnOutage(std::nullopt), ElementsAre("127.0.0.1"));
}

}  // namespace
}  // namespace curtail::tool
