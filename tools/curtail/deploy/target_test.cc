// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "curtail/base/temp_dir_testing.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class TargetTest : public testing::Test {
 protected:
  TargetTest() { setenv("XDG_RUNTIME_DIR", dir_.File("").c_str(), 1); }
  ~TargetTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  // Holds "router" up: a mid-tier, four leaves and a cache that is no curtail service.
  // With `more`, processes of a service "supplier", which has no shards.
  std::unique_ptr<RunFolder> Up(const std::vector<std::string>& more = {}) {
    UpState state;
    state.application = "router";
    state.pid = getpid();
    state.entry = "127.0.0.1:7000";
    const auto add = [&state](const std::string& name, const std::string& service,
                              const std::string& address) {
      ProcessState& p = state.processes.emplace_back();
      p.name = name, p.service = service, p.address = address;
      if (service != "leaf-cache") p.admin = "unix:/" + name;
    };
    add("leaf-cache", "leaf-cache", "unix:/c");
    for (const char* name : {"leaf-0.0", "leaf-0.1", "leaf-1.0", "leaf-1.1"})
      add(name, "leaf", std::string("h:") + name);
    for (const std::string& name : more) add(name, "supplier", "h:" + name);
    add("mid-tier", "mid-tier", state.entry);
    auto folder = RunFolder::Take("router");
    EXPECT_TRUE(folder.ok()) << folder.status();
    EXPECT_TRUE((*folder)->Write(state).ok());
    return *std::move(folder);
  }
  static std::vector<std::string> Names(std::string_view target) {
    std::vector<std::string> names;
    const auto found = FindProcesses(target);
    EXPECT_TRUE(found.ok()) << found.status();
    if (found.ok()) {
      for (const ProcessState& p : *found) names.push_back(p.name);
    }
    return names;
  }

  const TempDir dir_;
};

TEST(NamesProcessTest, ServicesOfAGroupNameItsProcess) {
  for (const char* asked : {"text", "count", "text+count"})
    EXPECT_TRUE(NamesProcess(asked, "text+count")) << asked;
  for (const char* asked : {"coun", "tex", "count-0", "text+"})
    EXPECT_FALSE(NamesProcess(asked, "text+count")) << asked;
}

TEST_F(TargetTest, NamesServicesShardsAndProcesses) {
  const auto folder = Up();
  EXPECT_THAT(Names("router"), ElementsAre("mid-tier"));
  EXPECT_THAT(Names("router/"), ElementsAre("mid-tier"));
  EXPECT_THAT(Names("router/leaf"), ElementsAre("leaf-0.0", "leaf-0.1", "leaf-1.0", "leaf-1.1"));
  EXPECT_THAT(Names("router/leaf.1"), ElementsAre("leaf-1.0", "leaf-1.1"));
  EXPECT_THAT(Names("router/leaf-1"), ElementsAre("leaf-1.0", "leaf-1.1"));
  EXPECT_THAT(Names("router/leaf.1.0"), ElementsAre("leaf-1.0"));
  EXPECT_THAT(Names("router/leaf-1.0"), ElementsAre("leaf-1.0"));
  EXPECT_THAT(Names("router/leaf-cache"), ElementsAre("leaf-cache"));
}

TEST_F(TargetTest, NumbersInstancesOfAServiceWithoutShards) {
  const auto folder = Up({"supplier-0.0", "supplier-0.1", "supplier-0.2"});
  EXPECT_THAT(Names("router/supplier.1"), ElementsAre("supplier-0.1"));
  EXPECT_THAT(Names("router/supplier.0"), ElementsAre("supplier-0.0"));
  EXPECT_THAT(Names("router/supplier"), SizeIs(3));
  EXPECT_THAT(Names("router/supplier-0.2"), ElementsAre("supplier-0.2"));
  EXPECT_FALSE(FindProcesses("router/supplier.3").ok());
}

TEST_F(TargetTest, SaysWhatThereIs) {
  EXPECT_THAT(FindProcesses("router").status().message(),
              HasSubstr("router is not up, nor is any other application"));
  const auto folder = Up();
  EXPECT_THAT(FindProcesses("ruoter").status().message(),
              HasSubstr("unknown application \"ruoter\"; router is up; did you mean \"router\"?"));
  EXPECT_THAT(FindProcesses("shop/leaf").status().message(), HasSubstr("shop is not up, but router is"));
  EXPECT_THAT(
      FindProcesses("router/leav").status().message(),
      HasSubstr(
          "router has no service or process leav; there are leaf (4), leaf-cache, mid-tier; did you mean "
          "\"leaf\"?"));
  EXPECT_FALSE(FindProcesses("router/leaf.2").ok());
  EXPECT_FALSE(FindProcesses("").ok());
  EXPECT_FALSE(FindProcesses("/").ok());
}

TEST_F(TargetTest, AddressesStayAndNamesBecomeAddresses) {
  const auto folder = Up();
  EXPECT_THAT(*ToAddresses({"h:1", "unix:/router/leaf", "router", "router/leaf.0"}),
              ElementsAre("h:1", "unix:/router/leaf", "127.0.0.1:7000", "h:leaf-0.0", "h:leaf-0.1"));
  EXPECT_THAT(ToAddresses({"h:1", "localhost"}).status().message(),
              HasSubstr("\"localhost\" has no port, and no application has this name; write HOST:PORT"));
}

TEST_F(TargetTest, FindsAdminInterfaces) {
  const auto folder = Up();
  EXPECT_EQ(ToAdmins("h:9")->front().address, "h:9");
  EXPECT_EQ(ToAdmins("router")->front().address, "unix:/mid-tier");
  ASSERT_EQ(ToAdmins("router/leaf.1")->size(), 2u);
  EXPECT_EQ(ToAdmins("router/leaf.1")->back().name, "leaf-1.1");
  EXPECT_THAT(ToAdmins("router/leaf-cache").status().message(),
              HasSubstr("leaf-cache has no admin interface"));
}

TEST(NamesProcessTest, NumbersFollowTheService) {
  EXPECT_TRUE(NamesProcess("post", "post-1"));
  EXPECT_FALSE(NamesProcess("post", "post-cache"));
  EXPECT_FALSE(NamesProcess("leaf-1", "leaf-10"));
  EXPECT_FALSE(NamesProcess("leaf.1", "leaf-10.0"));
}

}  // namespace
}  // namespace curtail::tool
