// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/path_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/fence/shares.h"

namespace curtail {
namespace {

using ::testing::ElementsAre;

class ClassTableTest : public testing::Test {
 protected:
  std::string ClassOf(uint32_t method) { return table_.Names()[kinds_[method].path_class()]; }
  void Learn(std::string_view path) {
    kinds_.emplace_back();
    table_.AddLearned(path, &kinds_.back());
  }
  void Declare(std::string_view path, const std::vector<std::string>& services) {
    kinds_.emplace_back();
    table_.AddDeclared(path, &kinds_.back(), services);
  }
  void Run(uint32_t method, int times, const std::vector<std::string>& calls, bool whole = true) {
    for (int i = 0; i < times; ++i) {
      for (const std::string& path : calls) table_.Called(method, path);
      table_.Ended(method, whole);
    }
  }

  std::deque<TaskKind> kinds_;
  Fence fence_{{.mode = FenceMode::kStrict}};
  ClassTable table_{&fence_};
};

TEST_F(ClassTableTest, HasAClassForEachDeclaredSet) {
  Declare("/a.S/One", {"a.Users", "a.Posts"});
  Declare("/a.S/Two", {"a.Posts", "a.Users"});
  Declare("/a.S/Three", {"a.Users"});
  Declare("/a.S/Four", {});
  EXPECT_EQ(ClassOf(0), "a.Users+a.Posts");
  EXPECT_EQ(ClassOf(1), ClassOf(0));
  EXPECT_EQ(ClassOf(2), "a.Users");
  EXPECT_EQ(ClassOf(3), "local");
  EXPECT_EQ(table_.Find("a.Users"), kinds_[2].path_class());
  EXPECT_EQ(table_.Find("a.Nobody"), Fence::kMaxClasses);
}

// Classes are told apart by their sets, in whatever order the services are named or found.
TEST_F(ClassTableTest, BeginsWithTheLimitsOfItsSets) {
  table_.BeginWith({{{"a.Users", "a.Posts"}, 5}, {{"a.Users"}, 3}});
  table_.BeginWith({{{"a.Posts", "a.Users"}, 9}, {{"a.Late"}, 2}});  // the first holds
  Declare("/a.S/One", {"a.Posts", "a.Users"});
  Declare("/a.S/Two", {"a.Users"});
  Declare("/a.S/Three", {"a.Posts"});
  Learn("/a.S/Four");
  FenceShares shares(&fence_);
  shares.SetThreads(40);
  EXPECT_EQ(shares.share(kinds_[0].path_class()), 5u);
  EXPECT_EQ(shares.share(kinds_[1].path_class()), 3u);
  EXPECT_GT(shares.share(kinds_[2].path_class()), 5u) << "it has no limit";
  Run(3, ClassTable::kLearned, {"/a.Late/Get"});
  shares.Refresh();
  EXPECT_EQ(ClassOf(3), "a.Late");
  EXPECT_EQ(shares.share(kinds_[3].path_class()), 2u) << "a learned class begins with it too";
  EXPECT_THAT(table_.Methods()[kinds_[0].path_class()], ElementsAre("/a.S/One"));
  EXPECT_THAT(table_.Methods()[kinds_[3].path_class()], ElementsAre("/a.S/Four"));
}

TEST_F(ClassTableTest, TellsOfUndeclaredCallsNowAndThen) {
  Declare("/a.S/One", {"a.Users"});
  EXPECT_FALSE(table_.Called(0, "/a.Users/Find"));
  EXPECT_TRUE(table_.Undeclared().empty());
  int told = 0;
  for (int i = 0; i < 1000; ++i) told += table_.Called(0, "/a.Posts/Find");
  EXPECT_EQ(told, 10) << "1, 2, 4, ... 512";
  ASSERT_EQ(table_.Undeclared().size(), 1u);
  EXPECT_EQ(table_.Undeclared()[0].method, "/a.S/One");
  EXPECT_EQ(table_.Undeclared()[0].service, "a.Posts");
  EXPECT_EQ(table_.Undeclared()[0].times, 1000u);
  EXPECT_EQ(ClassOf(0), "a.Users") << "what is declared holds";
}

TEST_F(ClassTableTest, KnowsTheServiceThatAMethodCalledLast) {
  Declare("/a.S/One", {"social.v1.Users", "social.v1.Posts"});
  EXPECT_FALSE(table_.Knows(0, "/social.v1.Users/Find")) << "there was no call";
  table_.Called(0, "/social.v1.Users/Find");
  EXPECT_TRUE(table_.Knows(0, "/social.v1.Users/Add"));
  for (const char* other : {"/social.v1.Posts/Find", "/social.v2.Users/Find", "/Social.v1.Users/Find",
                            "/social.v1.Users", "/social.v1.Users2/Find", "/social.v1.User/Find", ""}) {
    EXPECT_FALSE(table_.Knows(0, other)) << other;
  }
  table_.Called(0, "/social.v1.Media/Find");
  EXPECT_FALSE(table_.Knows(0, "/social.v1.Media/Find")) << "each undeclared call counts";
}

// Property: a caller that asks Knows() first, and then leaves Called() out, learns the same classes.
TEST_F(ClassTableTest, WhatItKnowsChangesNothing) {
  Fence other_fence{{.mode = FenceMode::kStrict}};
  ClassTable other(&other_fence);
  std::deque<TaskKind> other_kinds(3);
  for (uint32_t m = 0; m < 3; ++m) {
    Learn("/a.S/M" + std::to_string(m));
    other.AddLearned("/a.S/M" + std::to_string(m), &other_kinds[m]);
  }
  Rng rng(7);
  int known = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto m = static_cast<uint32_t>(rng.Below(3));
    for (size_t calls = rng.Below(3); calls > 0; --calls) {
      const uint64_t some = rng.Below(100) == 0 ? 4 : 2;
      const std::string path = "/services." + std::string(1 + rng.Below(some), 'x') + "/Get";
      table_.Called(m, path);
      other.Knows(m, path) ? ++known : other.Called(m, path);
    }
    table_.Ended(m, true);
    other.Ended(m, true);
    ASSERT_EQ(other.Names()[other_kinds[m].path_class()], ClassOf(m)) << i;
  }
  EXPECT_GT(known, 5000);
}

TEST_F(ClassTableTest, LearnsTheClassOfAMethodFromItsCalls) {
  Learn("/a.S/One");
  Learn("/a.S/Two");
  EXPECT_EQ(ClassOf(0), "unknown");
  Run(0, ClassTable::kLearned - 1, {"/a.Users/Find"});
  EXPECT_EQ(ClassOf(0), "unknown");
  Run(0, 1, {"/a.Users/Find"});
  EXPECT_EQ(ClassOf(0), "a.Users");
  Run(1, ClassTable::kLearned, {});
  EXPECT_EQ(ClassOf(1), "local");
  table_.Called(1, "/a.Users/Find");
  EXPECT_EQ(ClassOf(1), "a.Users") << "with the first call";
}

TEST_F(ClassTableTest, ForgetsAServiceThatNoRecentRequestCalled) {
  Learn("/a.S/One");
  Run(0, ClassTable::kLearned, {"/a.Users/Find", "/a.Posts/Find"});
  EXPECT_EQ(ClassOf(0), "a.Users+a.Posts");
  Run(0, ClassTable::kGeneration, {"/a.Users/Find"});
  EXPECT_EQ(ClassOf(0), "a.Users+a.Posts") << "called in the generation before";
  Run(0, ClassTable::kGeneration, {"/a.Users/Find"});
  EXPECT_EQ(ClassOf(0), "a.Users");
}

TEST_F(ClassTableTest, ForgetsNothingForRequestsThatWereCutShort) {
  Learn("/a.S/One");
  Run(0, ClassTable::kLearned, {"/a.Users/Find", "/a.Posts/Find"});
  Run(0, 4 * ClassTable::kGeneration, {"/a.Users/Find"}, /*whole=*/false);
  EXPECT_EQ(ClassOf(0), "a.Users+a.Posts");
  Run(0, 2 * ClassTable::kGeneration, {"/a.Users/Find"});
  EXPECT_EQ(ClassOf(0), "a.Users");
}

// Else the requests of a method whose callee is dead would never share a class.
TEST_F(ClassTableTest, LearnsFromRequestsThatWereCutShort) {
  Learn("/a.S/One");
  Run(0, ClassTable::kLearned, {"/a.Users/Find"}, /*whole=*/false);
  EXPECT_EQ(ClassOf(0), "a.Users");
}

TEST_F(ClassTableTest, FoldsWhatExceedsItsBounds) {
  for (int i = 0; i < 100; ++i) Declare("/a.S/M" + std::to_string(i), {"a.Service" + std::to_string(i)});
  EXPECT_EQ(table_.Names().size(), Fence::kMaxClasses);
  EXPECT_EQ(ClassOf(10), "a.Service10");
  EXPECT_EQ(ClassOf(99), "other");
  for (int i = 0; i < 100; ++i) table_.Called(0, "/x.Y" + std::to_string(i) + "/Find");
  EXPECT_EQ(table_.Names().size(), Fence::kMaxClasses);
}

TEST_F(ClassTableTest, TellsTheFenceWhichClassesShare) {
  Learn("/a.S/One");
  Declare("/a.S/Two", {"a.Users"});
  FenceShares shares(&fence_);
  shares.Refresh();
  EXPECT_GT(fence_.Sample(Fence::kUnknown).limit, 0u);
  Run(0, ClassTable::kLearned, {"/a.Users/Find"});
  shares.Refresh();
  EXPECT_EQ(fence_.Sample(Fence::kUnknown).limit, 0u) << "no method has this class any more";
  EXPECT_EQ(fence_.Sample(kinds_[1].path_class()).limit, shares.permits());
  EXPECT_THAT(table_.Names(), ElementsAre("local", "unknown", "other", "a.Users"));
}

}  // namespace
}  // namespace curtail
