// SPDX-License-Identifier: Apache-2.0
//
// The fault that fences cure, and the cure: one of two services behind a server holds its replies.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/fence/path_class.h"
#include "curtail/rpc/call/server_fence.h"
#include "curtail/rpc/server/fence/fence_server_testing.h"

namespace curtail {
namespace {

class Unfenced : public FenceServerTest, public testing::WithParamInterface<const char*> {};

// The fault: requests of the stalled path hold every thread, so others wait although their service is idle.
TEST_P(Unfenced, AStalledPathTakesAllThreads) {
  Serve(FenceMode::kOff, GetParam());
  CallSlow(8);
  ASSERT_TRUE(Becomes([&] { return holder_.calls() == 8; }));
  std::atomic<bool> quick{false};
  callers_.emplace_back([&] {
    EXPECT_TRUE(Call(*channel_, kQuick, "x").ok());
    quick = true;
  });
  EXPECT_TRUE(Becomes([&] { return mid_->Sample().pools.queued == 1; })) << "it waits for a thread";
  EXPECT_FALSE(quick);
  EXPECT_FALSE(mid_->Sample().fences.has_value());
  Release();
  EXPECT_TRUE(quick);
  EXPECT_EQ(answered_, 8);
}

INSTANTIATE_TEST_SUITE_P(Models, Unfenced, testing::Values("SDB1-8", "SIB8"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

struct FencedConfig {
  FenceMode mode;
  const char* config;
};

class FencedModels : public FenceServerTest, public testing::WithParamInterface<FencedConfig> {
 protected:
  // Of the stalled path: its share, or all, as the other has asked for none.
  static uint64_t PermitsOf(FenceMode mode) { return mode == FenceMode::kOn ? 8 : 3; }
};

// The cure: the stalled path has its permits and its queue, and others go on.
TEST_P(FencedModels, AStalledPathHasItsPermitsAndOthersGoOn) {
  const auto [mode, config] = GetParam();
  const uint64_t permits = PermitsOf(mode);
  const bool refuses = mode == FenceMode::kStrict;  // at once; else when its queue stands
  Serve(mode, config);
  CallSlow(static_cast<int>(permits) + 4);
  AwaitStalled(permits, 4, 0);
  if (refuses) ExpectRefused();
  ExpectQuick(20);
  for (const char* next : {"FIB1", "ADB1-8-1", "SIB8", "SDB1-8"}) {
    SCOPED_TRACE(next);
    ASSERT_TRUE(mid_->SwitchTo(*Config::Parse(next)).ok());
    AwaitStalled(permits, 4, ClassOf("test.Hold").refused);
    if (refuses) ExpectRefused();
    ExpectQuick(3);
  }
  Release();
  EXPECT_EQ(answered_, permits + 4);
  EXPECT_EQ(refused_ + failed_, 0);
  EXPECT_TRUE(Becomes([&] { return ClassOf("test.Hold").in_use == 0; }));
  const FenceClassStats slow = ClassOf("test.Hold");
  EXPECT_EQ(slow.begun, permits + 4);
  EXPECT_EQ(slow.queued, 4u);
  EXPECT_EQ(slow.refused, refuses ? 5u : 0u);
  EXPECT_EQ(ClassOf("test.Echo").begun, 32u);
}

// A waiter whose client has left never gets the permit that comes free.
TEST_P(FencedModels, ACancelledWaiterKeepsNoPermit) {
  const auto [mode, config] = GetParam();
  const uint64_t permits = PermitsOf(mode);
  Serve(mode, config);
  CallSlow(static_cast<int>(permits));
  AwaitStalled(permits, 0, 0);
  Context leaves(kMaxTestWait);
  std::thread waiter([&] {
    StringValue reply;
    EXPECT_TRUE(absl::IsCancelled(channel_->Call(leaves, kSlow.path, Text("x"), &reply)));
  });
  AwaitStalled(permits, 1, 0);
  leaves.Cancel();
  waiter.join();
  EXPECT_TRUE(Becomes([&] { return mid_->Sample().open_calls == permits; }));
  Release();
  ExpectNothingInUse(mid_.get());
  EXPECT_EQ(holder_.calls(), permits);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, FencedModels,
    testing::Values(FencedConfig{FenceMode::kStrict, "SDB1-8"}, FencedConfig{FenceMode::kStrict, "FIB1"},
                    FencedConfig{FenceMode::kStrict, "ADB1-8-1"}, FencedConfig{FenceMode::kOn, "SDB1-8"},
                    FencedConfig{FenceMode::kOn, "FIB1"}, FencedConfig{FenceMode::kOn, "ADB1-8-1"}),
    [](const auto& info) {
      return (info.param.mode == FenceMode::kStrict ? "Strict" : "On") +
             std::string(info.param.config).substr(0, 3);
    });

// All threads that the config asks for are held, so each quick call runs on one beside them.
TEST_F(FenceServerTest, ThreadsBesideALargePoolAnswer) {
  constexpr int kThreads = 66;
  Serve(FenceMode::kOn, "SDB1-66");
  CallSlow(kThreads);
  AwaitStalled(kThreads, 0, 0);
  ExpectQuick(3);
  Release();
  EXPECT_EQ(answered_, kThreads);
}

TEST_F(FenceServerTest, ADryRunCountsAndChangesNothing) {
  Serve(FenceMode::kDryRun, "SDB1-8");
  CallSlow(8);
  EXPECT_TRUE(Becomes([&] { return holder_.calls() == 8; }));
  const FenceClassStats slow = ClassOf("test.Hold");
  EXPECT_EQ(slow.begun, 8u);
  EXPECT_EQ(slow.limit, 3u);
  EXPECT_EQ(slow.queued, 4u);
  EXPECT_EQ(slow.refused, 1u);
  Release();
  EXPECT_EQ(answered_, 8);
}

TEST_F(FenceServerTest, ARequestMayLeaveItsPathEarly) {
  Serve(FenceMode::kStrict, "SDB1-8");
  callers_.emplace_back([this] { EXPECT_TRUE(Call(*channel_, kEarly, "x").ok()); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  EXPECT_EQ(ClassOf("test.Echo").begun, 1u);
  EXPECT_EQ(ClassOf("test.Echo").in_use, 0u) << "although its handler runs";
  Release();
  ExpectQuick(1);
  EXPECT_TRUE(Becomes([&] { return ClassOf("test.Echo").in_use == 0; }));
}

// It waits for a thread, with its permit, when its client leaves.
TEST_F(FenceServerTest, ACancelledRequestReturnsThePermitThatItHas) {
  constexpr int kThreads = 8;
  Serve(FenceMode::kStrict, "SDB1-8");
  for (int busy = 1; busy <= kThreads; ++busy) {
    callers_.emplace_back([this] { EXPECT_TRUE(Call(*channel_, kEarly, "x").ok()); });
    ASSERT_TRUE(gate_.AwaitArrivals(busy));
  }
  Context leaves(kMaxTestWait);
  std::thread waiter([&] {
    StringValue reply;
    EXPECT_TRUE(absl::IsCancelled(channel_->Call(leaves, kSlow.path, Text("x"), &reply)));
  });
  EXPECT_TRUE(Becomes([&] { return ClassOf("test.Hold").in_use == 1; }));
  leaves.Cancel();
  waiter.join();
  EXPECT_TRUE(Becomes([&] { return mid_->Sample().open_calls == kThreads; }));
  Release();
  ExpectNothingInUse(mid_.get());
  EXPECT_EQ(holder_.calls(), 0u);
}

TEST_F(FenceServerTest, TellsOfCallsThatAMethodHasNotDeclared) {
  Serve(FenceMode::kStrict, "SDB1-8");
  ASSERT_TRUE(Call(*channel_, kSneaky, "x").ok());
  ASSERT_TRUE(Call(*channel_, kSneaky, "x").ok());
  const std::vector<UndeclaredCalls> undeclared = mid_->Sample().fences->undeclared;
  ASSERT_EQ(undeclared.size(), 1u);
  EXPECT_EQ(undeclared[0].method, "/test.Mid/Sneaky");
  EXPECT_EQ(undeclared[0].service, "test.Echo");
  EXPECT_EQ(undeclared[0].times, 2u);
  EXPECT_EQ(ClassOf("local").begun, 2u);
}

TEST_F(FenceServerTest, LearnsThePathOfAMethod) {
  Serve(FenceMode::kStrict, "SDB1-8");
  const uint32_t alone = ClassOf("unknown").limit;
  EXPECT_GT(alone, 0u);
  for (uint32_t i = 0; i < ClassTable::kLearned; ++i) ASSERT_TRUE(Call(*channel_, kLearned, "x").ok());
  EXPECT_EQ(ClassOf("unknown").begun, ClassTable::kLearned);
  EXPECT_TRUE(Becomes([&] { return ClassOf("unknown").in_use == 0; }));
  ASSERT_TRUE(Becomes([&] { return Call(*channel_, kLearned, "x").ok() && ClassOf("test.Echo").begun > 0; }))
      << "now it is of the class of what it calls";
}

// A service that is gone: AIMD takes permits of its path away, and leaves the other's alone.
TEST_F(FenceServerTest, TheLimitOfAPathFollowsItsService) {
  limit_ = "aimd";
  Serve(FenceMode::kStrict, "SDB1-8");
  EXPECT_EQ(mid_->Sample().fences->limiter, "aimd");
  EXPECT_EQ(ClassOf("test.Hold").limit, 3u);
  ExpectQuick(3);
  slow_leaf_.reset();
  EXPECT_TRUE(Becomes([&] {
    EXPECT_EQ(Call(*channel_, kSlow, "x").code(), absl::StatusCode::kUnavailable);
    return ClassOf("test.Hold").limit < 3;
  }));
  ExpectQuick(3);
  EXPECT_GE(ClassOf("test.Echo").limit, 3u);
}

// Requests that were cut short may have ended before a call, so that a learned class forgets nothing for them.
TEST(FenceServer, TellsRequestsThatWereCutShortFromAnswers) {
  using internal::ServerFence;
  for (const absl::Status& answer : {absl::OkStatus(), absl::NotFoundError("x"), absl::InternalError("x")}) {
    EXPECT_EQ(ServerFence::EndOf(/*ran=*/true, answer), PermitEnd::kAnswered) << answer;
  }
  EXPECT_EQ(ServerFence::EndOf(true, absl::CancelledError()), PermitEnd::kCancelled);
  for (const absl::Status& answer :
       {absl::DeadlineExceededError("x"), absl::UnavailableError("x"), absl::ResourceExhaustedError("x")}) {
    EXPECT_EQ(ServerFence::EndOf(true, answer), PermitEnd::kDropped) << answer;
  }
  EXPECT_EQ(ServerFence::EndOf(/*ran=*/false, absl::CancelledError()), PermitEnd::kUnused);
}

TEST(FenceServer, RefusesALimitThatThereIsNot) {
  ServerOptions options;
  options.fence = {.mode = FenceMode::kStrict, .limit = "best"};
  const auto server = Server::Start(std::move(options), {});
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.status().message(),
            "a fence's limit is one of fixed, sct, aimd, vegas, gradient2, not best");
}

class Misnamed final : public Service {
 public:
  std::string_view FullName() const override { return "test.Misnamed"; }
  std::vector<MethodHandler> Handlers() override { return {}; }
  std::vector<DeclaredPath> Paths() const override { return {{"None", {}}}; }
};

TEST(FenceServer, RefusesPathsOfMethodsThatThereAreNot) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<Misnamed>());
  const auto server = Server::Start({}, std::move(services));
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.status().message(), "test.Misnamed declares the calls of a method that it has not: None");
}

}  // namespace
}  // namespace curtail
