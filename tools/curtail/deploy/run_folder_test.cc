// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/run_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() { setenv("XDG_RUNTIME_DIR", dir_.File("").c_str(), 1); }
  ~RunFolderTest() override { unsetenv("XDG_RUNTIME_DIR"); }
  const TempDir dir_;
};

UpState State() {
  UpState state;
  state.application = "shop";
  state.pid = getpid();
  state.entry = "127.0.0.1:7000";
  state.started_unix_ms = 1234567890123;
  state.settings = {{"data", "synthetic:N=5"}, {"leaf.shards", "2"}};
  ProcessState p;
  p.name = "leaf-0.1", p.service = "leaf", p.variant = "java", p.state = "ready", p.pid = 42,
  p.protocol = "grpc";
  p.address = "127.0.0.1:7001", p.admin = "unix:/a", p.http_admin = "unix:/h", p.under = "SDB1-16",
  p.log = "/l", p.failover = {"shop", "--failover"};
  p.restarts = 3, p.problem = "was \"killed\"\nby \xff", p.problem_unix_ms = 4, p.since_unix_ms = 5;
  state.processes.push_back(p);
  return state;
}

TEST_F(RunFolderTest, IsUpForAsLongAsItIsHeld) {
  EXPECT_FALSE(IsUp("shop"));
  EXPECT_THAT(ReadUpState("shop").status().message(),
              HasSubstr("shop is not up, nor is any other application; start it with curtail up shop"));
  {
    const auto folder = RunFolder::Take("shop");
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_TRUE(IsUp("shop"));
    EXPECT_EQ(RunFolder::Take("shop").status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(ReadUpState("shop").status().message(), HasSubstr("still starting"));
    ASSERT_TRUE((*folder)->Write(State()).ok());
    EXPECT_THAT(ApplicationsUp(), ElementsAre("shop"));
    const auto state = ReadUpState("shop");
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->entry, "127.0.0.1:7000");
    EXPECT_EQ(state->started_unix_ms, 1234567890123);
    EXPECT_EQ(state->settings, State().settings);
    ASSERT_EQ(state->processes.size(), 1u);
    EXPECT_EQ(state->processes[0].name, "leaf-0.1");
    EXPECT_EQ(state->processes[0].variant, "java");
    EXPECT_EQ(state->processes[0].restarts, 3);
    EXPECT_EQ(state->processes[0].failover, State().processes[0].failover);
    EXPECT_EQ(state->processes[0].problem_unix_ms, 4);
    EXPECT_THAT(state->processes[0].problem, HasSubstr("was \"killed\"\nby "));
    EXPECT_THAT(ReadUpState("bank").status().message(),
                HasSubstr("bank is not up, but shop is; start it with curtail up bank"));
  }
  EXPECT_FALSE(IsUp("shop")) << "the state of the past is no state";
  EXPECT_FALSE(ReadUpState("shop").ok());
}

TEST_F(RunFolderTest, SaysThatTheRuntimeFolderCannotBeUsed) {
  EXPECT_EQ(OtherRunFolder(), "");
  setenv("XDG_RUNTIME_DIR", "/nowhere/x", 1);
  EXPECT_THAT(OtherRunFolder(),
              HasSubstr("XDG_RUNTIME_DIR: /nowhere/x is not a folder that can be written to"));
  EXPECT_EQ(NotAnApplication("down", "bank/front-end"), "down takes an application: curtail down bank");
  EXPECT_EQ(NotAnApplication("down", "bank"), "");
}

TEST_F(RunFolderTest, SuggestsShippedApplicationsThatAreNotUp) {
  EXPECT_THAT(ReadUpState("hdserach").status().message(),
              HasSubstr("unknown application \"hdserach\"; did you mean \"hdsearch\"?"));
  EXPECT_THAT(ReadUpState("hdsearch").status().message(), Not(HasSubstr("did you mean")));
  const auto shop = RunFolder::Take("hdsearch2");
  ASSERT_TRUE(shop.ok()) << shop.status();
  EXPECT_THAT(ReadUpState("hdserach").status().message(),
              HasSubstr("hdsearch2 is up; did you mean \"hdsearch2\"?"))
      << "what is up comes first";
  EXPECT_TRUE(RunFolder::Take("rooter").ok());
  EXPECT_THAT(ReadUpState("rooter").status().message(), Not(HasSubstr("did you mean"))) << "it was up here";
}

TEST(UpState, HoldsTheSettingsOfManyServices) {
  UpState state = State();
  for (int i = 0; i < 1000; ++i) state.settings[Join("service-", i, ".shards")] = "1";
  const auto read = ParseUpState(ToJson(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->settings, state.settings);
}

TEST_F(RunFolderTest, LooksDoNotGetInTheWay) {
  ASSERT_TRUE(RunFolder::Take("shop").ok());
  // A process that looks at the lock at this moment does not count as its holder, and keeps no other from it.
  const int looks = open((RunFolderOf("shop") + "/lock").c_str(), O_RDONLY);
  ASSERT_EQ(flock(looks, LOCK_SH), 0);
  EXPECT_FALSE(IsUp("shop"));
  std::thread soon([looks] { close(looks); });
  EXPECT_TRUE(RunFolder::Take("shop").ok());
  soon.join();
}

TEST_F(RunFolderTest, TheKeeperIsKnown) {
  EXPECT_FALSE(KeeperOf("shop").ok());
  const auto folder = RunFolder::Take("shop");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(*KeeperOf("shop"), getpid());
  UpState state = State();
  state.pid = getpid() + 1;  // of an earlier keeper
  ASSERT_TRUE((*folder)->Write(state).ok());
  EXPECT_FALSE(ReadUpState("shop").ok());
  EXPECT_FALSE(IsUp("../shop"));
  EXPECT_FALSE(RunFolder::Take("../shop").ok());
}

TEST_F(RunFolderTest, ClearsWhatTheLastRunLeft) {
  {
    const auto folder = RunFolder::Take("shop");
    ASSERT_TRUE(folder.ok());
    std::ofstream((*folder)->path() + "/leaf-0.log") << "old";
  }
  EXPECT_TRUE(std::filesystem::exists(RunFolderOf("shop") + "/leaf-0.log")) << "logs outlive the run";
  const auto folder = RunFolder::Take("shop");
  ASSERT_TRUE(folder.ok());
  EXPECT_FALSE(std::filesystem::exists((*folder)->path() + "/leaf-0.log"));
}

TEST_F(RunFolderTest, RefusesAFolderThatOthersCanWriteTo) {
  std::filesystem::create_directory(dir_.File("curtail"));
  ASSERT_EQ(chmod(dir_.File("curtail").c_str(), 0777), 0);
  const auto folder = RunFolder::Take("shop");
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.status().message(), HasSubstr("only this user"));
}

TEST_F(RunFolderTest, DoesNotFollowALinkToTheLock) {
  const std::string victim = dir_.Write("victim", "text");
  std::filesystem::create_directories(RunFolderOf("shop"));
  std::filesystem::permissions(dir_.File("curtail"), std::filesystem::perms::owner_all);
  std::filesystem::permissions(RunFolderOf("shop"), std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(victim, RunFolderOf("shop") + "/lock");
  EXPECT_FALSE(RunFolder::Take("shop").ok());
}

TEST_F(RunFolderTest, CorruptStatesAreRefused) {
  const std::string good = ToJson(State());
  ASSERT_TRUE(ParseUpState(good).ok());
  for (size_t length = 0; length + 2 < good.size(); length += 7) {
    EXPECT_FALSE(ParseUpState(good.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParseUpState(R"({"schema_version": 2})").ok());
}

}  // namespace
}  // namespace curtail::tool
