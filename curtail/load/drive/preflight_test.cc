// SPDX-License-Identifier: Apache-2.0
//
// What refuses a run, and what is measured though it fails.
#include <atomic>
#include <chrono>

#include "curtail/exec/wait.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/drive/runner_testing.h"
#include "curtail/rpc/transport/socket.h"
#include "gtest/gtest.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(RunnerTest, NobodyThereIsUnavailableBeforeTheRun) {
  const std::string target = Serve();
  server_.reset();
  absl::StatusOr<LoadResult> r = RunOpenLoop(Options(target), Numbers(), Make(10, seconds(60)));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kUnavailable) << r.status();
  RunOptions few = Options(target);
  few.requests = 1000;
  r = RunOpenLoop(few, Numbers(), Make(10, std::chrono::minutes(10)));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kUnavailable) << r.status();
  r = RunClosedLoop(few, Numbers(), 2, std::chrono::minutes(10));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kUnavailable) << r.status();
}

TEST_F(RunnerTest, AServerThatStandsStillIsMeasured) {
  const std::string target = Serve(0, &gate_);
  RunOptions options = Options(target);
  options.timeout = milliseconds(50);
  options.requests = 5;
  const absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), Make(500, seconds(60)));
  gate_.Open();
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->codes.at("DEADLINE_EXCEEDED"), 5u);
  ASSERT_FALSE(r->warnings.empty());
  EXPECT_EQ(r->warnings.back().substr(0, 20), "nothing was answered") << r->warnings.back();
}

TEST_F(RunnerTest, AFirstCallThatTheServerFailsIsCounted) {
  const std::string target = Serve();
  for (const std::string text : {"away", "late"}) {
    const FixedWorkload failing("/test.Echo/Echo", text);
    absl::StatusOr<LoadResult> r = RunOpenLoop(Options(target), failing, Make(200, milliseconds(100)));
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_GT(r->failed, 0u);
    EXPECT_EQ(r->failed, r->scheduled);
    EXPECT_EQ(r->codes[text == "away" ? "UNAVAILABLE" : "DEADLINE_EXCEEDED"], r->failed);
  }
}

TEST_F(RunnerTest, OneTargetOfTwoThatIsGoneRefusesTheRun) {
  const std::string gone = Serve();
  server_.reset();
  RunOptions options = Options(Serve());
  options.targets.push_back(gone);
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), Make(10, seconds(60)));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kUnavailable) << r.status();
}

TEST_F(RunnerTest, AServerThatSaysNothingCanBeInterrupted) {
  // The kernel accepts for a socket that listens; no program reads.
  const absl::StatusOr<internal::UniqueFd> silent = internal::Listen(*Address::Resolve("127.0.0.1:0"));
  ASSERT_TRUE(silent.ok()) << silent.status();
  RunOptions options = Options(internal::BoundAddress(silent->get()));
  options.timeout = std::chrono::minutes(10);
  const std::atomic<bool> stop{true};
  options.stop = &stop;
  absl::StatusOr<LoadResult> r = RunOpenLoop(options, Numbers(), Make(10, seconds(60)));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kCancelled) << r.status();
}

TEST_F(RunnerTest, AnUnknownMethodIsUnimplementedBeforeTheRun) {
  const FixedWorkload unknown("/test.Echo/Nothing", "");
  absl::StatusOr<LoadResult> r = RunOpenLoop(Options(Serve()), unknown, Make(10, seconds(60)));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kUnimplemented) << r.status();
}

TEST_F(RunnerTest, AMethodWhoseFirstRequestFailsRefusesTheRun) {
  class Mix : public Numbers {
   public:
    std::string_view MethodOf(uint64_t index) const override {
      return index == 7 ? std::string_view("/test.Echo/Nothing") : method();
    }
  };
  RunOptions options = Options(Serve());
  const Mix mix;
  EXPECT_TRUE(RunOpenLoop(options, mix, Make(500, milliseconds(100))).ok()) << "the run counts it";
  options.first_must_succeed = true;
  const auto r = RunOpenLoop(options, mix, Make(500, milliseconds(100)));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kFailedPrecondition) << r.status();
  EXPECT_NE(r.status().message().find("/test.Echo/Nothing failed"), std::string::npos) << r.status();
  EXPECT_NE(r.status().message().find("UNIMPLEMENTED"), std::string::npos) << r.status();
}

TEST_F(RunnerTest, TryEachMethodExcusesNothing) {
  class Away : public Numbers {
   public:
    std::string Request(uint64_t) const override { return "away"; }
  };
  const RunOptions options = Options(Serve());
  EXPECT_EQ(TryEachMethod(options, Numbers()), absl::OkStatus());
  const absl::Status failed = TryEachMethod(options, Away());
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition) << failed;
  EXPECT_TRUE(Message(failed).starts_with("the first request of /test.Echo/Echo failed: UNAVAILABLE"))
      << failed;
}

TEST_F(RunnerTest, RefusesSenselessOptions) {
  const Schedule schedule = Make(10, seconds(1));
  const auto code = [&](auto change) {
    RunOptions options = Options("127.0.0.1:1");
    change(options);
    return RunOpenLoop(options, Numbers(), schedule).status().code();
  };
  EXPECT_EQ(code([](RunOptions& o) { o.timeout = Nanos(0); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](RunOptions& o) { o.channel.connections = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](RunOptions& o) { o.warmup = seconds(1); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](RunOptions& o) { o.warmup = -seconds(1); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](RunOptions& o) { o.spin = -seconds(1); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](RunOptions& o) { o.targets = {"no address at all:x:y"}; }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunClosedLoop(Options("127.0.0.1:1"), Numbers(), 0, seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail
