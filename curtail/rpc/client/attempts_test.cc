// SPDX-License-Identifier: Apache-2.0
//
// The decisions of Attempts and Throttle, without any server or clock.
#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/attempts.h"
#include "curtail/rpc/client/config/service_config.h"
#include "curtail/rpc/client/connection/client_call.h"

namespace curtail {
namespace {

using internal::Attempts;
using internal::CallPolicy;
using internal::ClientCall;
using std::chrono::seconds;

// A policy of four attempts for the methods that `name` says.
CallPolicy PolicyFor(std::string_view name) {
  return {*internal::ParseServiceConfig(
              Join(R"({"methodConfig":[{"name":[)", name,
                   R"(],"retryPolicy":{"maxAttempts":4,"initialBackoff":"1s","maxBackoff":"2s",)",
                   R"("backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]})")),
          false};
}

struct FailedCall final : ClientCall {
  explicit FailedCall(absl::StatusCode code) { status = absl::Status(code, "failed"); }
  void Finished() override {}
  void CancelHandled() override {}
};

// The policy of a service, or of all methods, is for those that their .proto declares idempotent.
class BroadPolicyTest : public testing::TestWithParam<const char*> {
 protected:
  bool Retries(std::string_view path) {
    Attempts attempts;
    attempts.Begin(&policy_, path);
    return attempts.MayGoOn(FailedCall(absl::StatusCode::kUnavailable));
  }

  CallPolicy policy_ = PolicyFor(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Names, BroadPolicyTest,
                         testing::Values("{}", R"({"service":"curtail.admin.v1.Admin"})"),
                         [](const auto& info) { return info.index == 0 ? "All" : "Service"; });

TEST_P(BroadPolicyTest, RepeatsMethodsThatAreDeclaredIdempotent) {
  for (int times = 0; times < 2; ++times) EXPECT_TRUE(Retries("/curtail.admin.v1.Admin/GetStatus"));
}

TEST_P(BroadPolicyTest, RepeatsNoOthers) {
  for (int times = 0; times < 2; ++times) {
    EXPECT_FALSE(Retries("/curtail.admin.v1.Admin/Switch")) << "its .proto says nothing of it";
    EXPECT_FALSE(Retries("/curtail.admin.v1.Admin/Unknown")) << "it has no .proto";
    EXPECT_FALSE(Retries("/curtail.admin.v1/Admin"));
    EXPECT_FALSE(Retries("/"));
    EXPECT_FALSE(Retries(""));
  }
}

TEST_P(BroadPolicyTest, SendsAgainWhatNoServerHasSeen) {
  FailedCall call(absl::StatusCode::kUnavailable);
  call.unprocessed = true;
  Attempts attempts;
  attempts.Begin(&policy_, "/curtail.admin.v1.Admin/Switch");
  EXPECT_TRUE(attempts.MayGoOn(call));
}

TEST(Attempts, APolicyThatNamesTheMethodIsItsOwnersWord) {
  CallPolicy policy = PolicyFor(R"({"service":"curtail.admin.v1.Admin","method":"Switch"})");
  Attempts attempts;
  attempts.Begin(&policy, "/curtail.admin.v1.Admin/Switch");
  EXPECT_TRUE(attempts.MayGoOn(FailedCall(absl::StatusCode::kUnavailable)));
}

TEST(Attempts, BackOffLongerAndLongerWithJitter) {
  CallPolicy policy(
      *internal::ParseServiceConfig(
          R"({"methodConfig":[{"name":[{"service":"a.B","method":"C"}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"1s","maxBackoff":"3s",
              "backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]})"),
      false);
  const FailedCall call(absl::StatusCode::kUnavailable);
  for (int64_t at = 1; at < 1'000'000; at = at * 3 + 1) {
    const TimePoint now = TimePoint(Nanos(at));
    Attempts attempts;
    attempts.Begin(&policy, "/a.B/C");
    for (const double expected : {1.0, 2.0, 3.0, 3.0}) {
      EXPECT_TRUE(attempts.MayGoOn(call));
      const auto when = attempts.Again(call, now, Deadline::Infinite(), now);
      ASSERT_TRUE(when.has_value());
      EXPECT_GE(InSeconds(*when - now), 0.8 * expected - 0.001);
      EXPECT_LE(InSeconds(*when - now), 1.2 * expected + 0.001);
    }
    EXPECT_FALSE(attempts.MayGoOn(call));
    EXPECT_FALSE(attempts.Again(call, now, Deadline::Infinite(), now).has_value());
  }
}

TEST(Attempts, APushbackBeginsTheBackoffAnew) {
  CallPolicy policy = PolicyFor(R"({"service":"a.B","method":"C"})");
  const FailedCall call(absl::StatusCode::kUnavailable);
  FailedCall pushed(absl::StatusCode::kUnavailable);
  pushed.metadata.trailing.Add(internal::kPushbackKey, "7000");
  const TimePoint now(seconds(1));
  for (const bool after_a_pushback : {false, true}) {
    Attempts attempts;
    attempts.Begin(&policy, "/a.B/C");
    ASSERT_TRUE(attempts.Again(call, now, Deadline::Infinite(), now).has_value());
    if (after_a_pushback) {
      EXPECT_EQ(attempts.Again(pushed, now, Deadline::Infinite(), now), now + seconds(7));
    }
    const auto when = attempts.Again(call, now, Deadline::Infinite(), now);
    ASSERT_TRUE(when.has_value());
    EXPECT_NEAR(InSeconds(*when - now), after_a_pushback ? 1 : 2, after_a_pushback ? 0.201 : 0.401);
  }
}

TEST(Attempts, ThoseThatNoServerHasSeenAreMadeAtOnceFiveTimes) {
  FailedCall call(absl::StatusCode::kUnavailable);
  call.unprocessed = true;
  Attempts attempts;
  attempts.Begin(nullptr, "/a.B/C");
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(attempts.MayGoOn(call));
    EXPECT_EQ(attempts.Again(call, TimePoint(seconds(1)), Deadline::Infinite(), TimePoint()),
              TimePoint(seconds(1)));
  }
  EXPECT_FALSE(attempts.MayGoOn(call));
  EXPECT_FALSE(attempts.Again(call, TimePoint(seconds(1)), Deadline::Infinite(), TimePoint()).has_value());
  EXPECT_EQ(attempts.failed(), 0);
}

TEST(Attempts, ACallThatWaitsForItsServerEndsByItsDeadlineAlone) {
  FailedCall call(absl::StatusCode::kUnavailable);
  call.unprocessed = true;
  Attempts attempts;
  attempts.Begin(nullptr, "/a.B/C", /*waits=*/true);
  const TimePoint end(seconds(2));
  // The news that no connection is to be had comes in time, with the deadline, and after it.
  for (const TimePoint now : {TimePoint(seconds(1)), end, end + seconds(1)})
    EXPECT_EQ(attempts.Again(call, now, Deadline::At(end), end + seconds(5)), end);
  call.status = absl::InternalError("no reason to wait");
  EXPECT_FALSE(attempts.Again(call, end, Deadline::At(end), end).has_value());
}

TEST(Throttle, AllowsRetriesAboveHalfOfItsTokens) {
  internal::Throttle none(std::nullopt);
  none.Failed();
  EXPECT_TRUE(none.Allows());
  internal::Throttle throttle(internal::ThrottleConfig{.max_milli_tokens = 4000, .milli_ratio = 100});
  throttle.Failed();
  EXPECT_TRUE(throttle.Allows());
  throttle.Failed();
  EXPECT_FALSE(throttle.Allows());
  throttle.Succeeded();
  EXPECT_TRUE(throttle.Allows());
  for (int i = 0; i < 100; ++i) throttle.Failed();
  for (int i = 0; i < 20; ++i) throttle.Succeeded();
  EXPECT_FALSE(throttle.Allows());
  throttle.Succeeded();
  EXPECT_TRUE(throttle.Allows());
}

}  // namespace
}  // namespace curtail
