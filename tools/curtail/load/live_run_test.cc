// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/live_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"

namespace curtail::tool {
namespace {

using observe::DashboardLoad;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanos kMaxLiveWait = std::chrono::seconds(20);

// Processes that live until this is destroyed.
class Children {
 public:
  explicit Children(int n) {
    for (int i = 0; i < n; ++i) {
      auto process = deploy::Process::Spawn({.name = "child", .run = [] {
                                               for (;;) pause();
                                             }});
      EXPECT_TRUE(process.ok()) << process.status();
      pids.push_back((*process)->pid());
      processes_.push_back(*std::move(process));
    }
  }
  void End() { processes_.clear(); }

  std::vector<pid_t> pids;

 private:
  std::vector<std::unique_ptr<deploy::Process>> processes_;
};

class LiveRun : public testing::Test {
 protected:
  std::string FolderOf() { return dir_.File(""); }
  std::string File(pid_t pid, const std::string& ending = ".json") {
    return dir_.File(absl::StrCat("load-", pid, ending));
  }
  static void Put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  const TempDir dir_;
};

TEST_F(LiveRun, IsThereWhileItRuns) {
  Live live;
  live.elapsed_ns = 1'500'000'000, live.due_per_s = 100.5, live.ok = 7;
  {
    const LiveRunFile file(FolderOf(), {.command = "curtail load shop", .label = "run 1/2", .total_s = 12},
                           &live);
    const std::vector<DashboardLoad> runs = ReadLiveRuns(FolderOf());
    ASSERT_THAT(runs, SizeIs(1));
    EXPECT_EQ(runs[0].pid, getpid());
    EXPECT_EQ(runs[0].command, "curtail load shop");
    EXPECT_EQ(runs[0].label, "run 1/2");
    EXPECT_EQ(runs[0].elapsed_s, 1.5);
    EXPECT_EQ(runs[0].total_s, 12);
    EXPECT_EQ(runs[0].due_per_s, 100.5);
    EXPECT_EQ(runs[0].ok, 7u);

    live.failed = 3, live.in_flight = 4, live.p50_ns = 250'000, live.p99_ns = 9'000'000, live.sent_per_s = 99;
    const Deadline deadline = Deadline::In(kMaxLiveWait);
    std::vector<DashboardLoad> now;
    do {
      now = ReadLiveRuns(FolderOf());
      BetweenLooks();
    } while (now.size() == 1 && now[0].failed == 0 && !deadline.Expired());
    ASSERT_THAT(now, SizeIs(1));
    EXPECT_EQ(now[0].failed, 3u);
    EXPECT_EQ(now[0].in_flight, 4u);
    EXPECT_EQ(now[0].p50_us, 250);
    EXPECT_EQ(now[0].p99_us, 9000);
    EXPECT_EQ(now[0].sent_per_s, 99);
  }
  EXPECT_TRUE(std::filesystem::is_empty(FolderOf()));
}

TEST_F(LiveRun, WithoutAFolderThereIsNone) {
  Live live;
  const LiveRunFile file("", {}, &live);
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty());
}

TEST_F(LiveRun, AFolderThatIsGoneStopsNoRun) {
  Live live;
  const LiveRunFile file(FolderOf() + "/none", {}, &live);
  EXPECT_THAT(ReadLiveRuns(FolderOf() + "/none"), IsEmpty());
}

TEST_F(LiveRun, GoesWithItsProcess) {
  Children children(1);
  const pid_t pid = children.pids[0];
  Put(File(pid), ToJson({.command = "x"}));
  Put(File(pid, ".json.next"), "{");
  EXPECT_THAT(ReadLiveRuns(FolderOf()), SizeIs(1));
  children.End();
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(FolderOf()));
}

TEST_F(LiveRun, SilentOnesAreNotShown) {
  Put(File(getpid()), ToJson({.command = "x"}));
  EXPECT_THAT(ReadLiveRuns(FolderOf()), SizeIs(1));
  std::filesystem::last_write_time(File(getpid()),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(File(getpid()))) << "its process lives";
}

TEST_F(LiveRun, TheirNumberIsBounded) {
  const Children children(static_cast<int>(kMostLiveRuns) + 3);
  for (const pid_t pid : children.pids) Put(File(pid), ToJson({.command = "x"}));
  EXPECT_THAT(ReadLiveRuns(FolderOf()), SizeIs(kMostLiveRuns));
}

TEST_F(LiveRun, TextIsAnythingAndNumbersAreNumbers) {
  const std::string markup = "</script><img src=x onerror=alert(1)>\xff";
  const auto back =
      ParseLiveRun(ToJson({.command = markup, .label = std::string(10'000, '<'), .ok = UINT64_MAX}));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->command.starts_with("</script><img"));
  EXPECT_EQ(back->label.size(), 500u);
  EXPECT_EQ(back->ok, UINT64_MAX);
  for (const char* const field : {"\"elapsed_s\":0.0", "\"due_per_s\":0.0", "\"ok\":0", "\"p99_us\":0.0"}) {
    for (const char* const value : {"-1", "\"1\"", "1e300", "null", "[]"}) {
      std::string json = ToJson({});
      const size_t at = json.find(field);
      ASSERT_NE(at, std::string::npos) << field << json;
      const size_t colon = std::string_view(field).find(':') + 1;
      json.replace(at + colon, std::string_view(field).size() - colon, value);
      EXPECT_FALSE(ParseLiveRun(json).ok()) << json;
    }
  }
}

TEST_F(LiveRun, WhatIsNoFileOfOursIsLeftAlone) {
  const std::string own = File(getpid());
  Put(own, ToJson({.command = "x"}) + std::string(5000, ' '));
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty()) << "too long";
  for (const char* const text : {"", "{", "[]", "{\"schema_version\":2}", "\xff\xfe"}) {
    Put(own, text);
    EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty()) << text;
  }
  unlink(own.c_str());
  ASSERT_EQ(mkfifo(own.c_str(), 0600), 0);
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty()) << "a pipe does not block";
  unlink(own.c_str());
  const std::string elsewhere = dir_.File("elsewhere");
  Put(elsewhere, ToJson({.command = "x"}));
  ASSERT_EQ(symlink(elsewhere.c_str(), own.c_str()), 0);
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty()) << "a link is not followed";
  for (const char* const name : {"load-1.json", "load-0.json", "load--5.json", "load-007.json", "load-x.json",
                                 "load-99999999999999999999.json", "load-.json", "overload-2.json"}) {
    Put(dir_.File(name), ToJson({.command = "x"}));
  }
  EXPECT_THAT(ReadLiveRuns(FolderOf()), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(dir_.File("load-007.json")));
}

}  // namespace
}  // namespace curtail::tool
