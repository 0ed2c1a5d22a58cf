// SPDX-License-Identifier: Apache-2.0
//
// Limits that follow their classes, in time that the test counts.
#include "curtail/fence/class_limits.h"

#include <gtest/gtest.h>

#include "curtail/fence/fenced_order_testing.h"

namespace curtail {
namespace {

constexpr Nanos kSecond = std::chrono::seconds(1);

FenceOptions Following(std::string limit) {
  return {.mode = FenceMode::kStrict, .max_waiting = 100, .limit = std::move(limit)};
}

// As the server does.
void EndOne(FenceScaffold& s, uint8_t path_class, PermitEnd end) {
  s.fence.meter()->Leave(path_class, s.now, end);
  s.End(path_class);
}

// For a time, requests of each class come in plenty and take 10 ms; those of kA are dropped.
void RunFor(FenceScaffold& s, ClassLimits& limits, Nanos time, PermitEnd end_of_a) {
  constexpr Nanos kEach = std::chrono::milliseconds(10);
  for (int i = 0; i < time / kEach; ++i) {
    for (const uint8_t c : {kA, kB}) {
      s.Append(c, static_cast<int>(30 - s.Stats(c).waiting));
      s.Run();
      ASSERT_FALSE(testing::Test::HasFatalFailure());
    }
    s.now += kEach;
    if (i % 5 == 4 && limits.Close(s.now).changed) s.Poke();
    for (const uint8_t c : {kA, kB}) {
      for (size_t running = s.running[c]; running > 0; --running)
        EndOne(s, c, c == kA ? end_of_a : PermitEnd::kAnswered);
    }
    s.Run();
  }
}

TEST(ClassLimits, APathThatDropsLeavesItsPermitsToAnother) {
  FenceScaffold s(Following("aimd"), 20, kAB);
  ClassLimits limits(&s.fence, s.now);
  EXPECT_EQ(s.Stats(kA).limit, 9u);
  EXPECT_EQ(s.Stats(kB).limit, 9u);
  RunFor(s, limits, 20 * kSecond, PermitEnd::kDropped);
  EXPECT_EQ(s.Stats(kA).limit, 1u);
  EXPECT_EQ(s.Stats(kB).limit, 17u);
  EXPECT_EQ(s.running[kB], 17u) << "a raise gives permits to requests that wait";
  // It recovers up to an equal share, which the other has to leave to it.
  RunFor(s, limits, 30 * kSecond, PermitEnd::kAnswered);
  EXPECT_GE(s.Stats(kA).limit, 9u);
  EXPECT_LE(s.Stats(kA).limit + s.Stats(kB).limit, 18u);
}

TEST(ClassLimits, WherePermitsAreLentAPathMayHaveAll) {
  FenceScaffold s({.mode = FenceMode::kOn, .max_waiting = 100, .limit = "aimd"}, 20, kAB);
  ClassLimits limits(&s.fence, s.now);
  EXPECT_EQ(s.Stats(kA).limit, 20u);
  RunFor(s, limits, 20 * kSecond, PermitEnd::kDropped);
  EXPECT_EQ(s.Stats(kA).limit, 1u);
  EXPECT_EQ(s.Stats(kB).limit, 20u);
  RunFor(s, limits, 30 * kSecond, PermitEnd::kAnswered);
  EXPECT_EQ(s.Stats(kA).limit, 20u);
  EXPECT_EQ(s.Stats(kB).limit, 20u);
}

TEST(ClassLimits, EachLimiterStaysWithinWhatItsClassCanGet) {
  for (const char* name : {"sct", "aimd", "vegas", "gradient2"}) {
    SCOPED_TRACE(name);
    FenceScaffold s(Following(name), 20, kAB);
    ClassLimits limits(&s.fence, s.now);
    for (int i = 0; i < 10; ++i) {
      RunFor(s, limits, kSecond, PermitEnd::kAnswered);
      for (const uint8_t c : {kA, kB}) {
        EXPECT_GE(s.Stats(c).limit, 1u);
        EXPECT_LE(s.Stats(c).limit, 17u);
      }
      EXPECT_LE(s.Stats(kA).limit + s.Stats(kB).limit, 18u);
    }
  }
}

TEST(ClassLimits, AreQuietWithoutRequests) {
  FenceScaffold s(Following("aimd"), 20, kAB);
  ClassLimits limits(&s.fence, s.now);
  EXPECT_FALSE(limits.Close(s.now).busy) << "an empty bin";
  EXPECT_FALSE(limits.Close(s.now += kLoadBin).busy);
  s.Append(kA, 1);
  s.Run();
  EXPECT_TRUE(limits.Close(s.now += kLoadBin).busy);
  EXPECT_TRUE(limits.Close(s.now += kLoadBin).busy) << "it has not ended";
  EndOne(s, kA, PermitEnd::kAnswered);
  EXPECT_FALSE(limits.Close(s.now += kLoadBin).busy);
}

// The order hears of no time when a request ends, and its own is that of the last request that came.
TEST(FenceMeter, CountsARequestThatWaitedFromItsPermitOn) {
  FenceScaffold s(Following("aimd"), 2, 1u << kA);
  s.Append(kA, 2);
  s.Run();
  ASSERT_EQ(s.running[kA], 1u);
  s.now += kSecond;
  EndOne(s, kA, PermitEnd::kDropped);
  s.now += 2 * kSecond;
  const FenceMeter::Reading read = s.fence.meter()->Read(kA, s.now);
  EXPECT_NEAR(read.held, 3, 1e-5);
  EXPECT_EQ(read.answered, 1u);
  EXPECT_EQ(read.dropped, 1u);
  s.Run();
  EndOne(s, kA, PermitEnd::kUnused);
  EXPECT_EQ(s.fence.meter()->Read(kA, s.now).answered, 0u) << "its handler did not run";
}

TEST(FenceOptions, ALimitThatFollowsNeedsPermits) {
  EXPECT_TRUE(Following("sct").Check().ok());
  EXPECT_TRUE((FenceOptions{.mode = FenceMode::kOn, .permits = 32767, .limit = "sct"}).Check().ok());
  EXPECT_TRUE((FenceOptions{.permits = 32768}).Check().ok());
  for (const FenceOptions& wrong :
       {Following("best"), Following(""), FenceOptions{.limit = "sct"},
        FenceOptions{.mode = FenceMode::kDryRun, .limit = "sct"},
        FenceOptions{.mode = FenceMode::kStrict, .permits = 32768, .limit = "sct"}}) {
    EXPECT_EQ(wrong.Check().code(), absl::StatusCode::kInvalidArgument) << wrong.limit;
  }
}

TEST(FenceOptions, FixedLimitsAreNotMeasured) {
  EXPECT_EQ(Fence({.mode = FenceMode::kStrict}).meter(), nullptr);
}

}  // namespace
}  // namespace curtail
