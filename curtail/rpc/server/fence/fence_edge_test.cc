// SPDX-License-Identifier: Apache-2.0
//
// The calls that a path class has outstanding at a service: never more than its permits times its widest fan-out, under
// each kind of waiting, while its queue is full and while models change.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "curtail/rpc/server/fence/fence_server_testing.h"

namespace curtail {
namespace {

class FenceEdge : public FenceServerTest, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr uint64_t kPermits = 3;
  static constexpr size_t kMost = kPermits * kWideCalls;

  // `retry`: until `times` are answered.
  void CallWide(int callers, int times, bool retry) {
    for (int i = 0; i < callers; ++i) {
      callers_.emplace_back([this, times, retry] {
        for (int n = 0; n < times;) {
          const absl::Status status = Call(*channel_, kWide, "x");
          ++(status.ok() ? answered_ : absl::IsResourceExhausted(status) ? refused_ : failed_);
          n += status.ok() || !retry ? 1 : 0;
        }
        ++finished_;
      });
    }
  }

  std::atomic<int> finished_{0};  // callers
};

// All callers come at once, and the service answers none.
TEST_P(FenceEdge, HoldsNoMoreCallsThanItsPermitsTimesItsFanOut) {
  Serve(FenceMode::kStrict, GetParam());
  CallWide(20, 1, /*retry=*/false);
  EXPECT_TRUE(Becomes([&] {
    const FenceClassStats wide = ClassOf("test.Hold");
    return wide.in_use == kPermits && wide.waiting == 4 && wide.refused == 13 && holder_.calls() == kMost;
  })) << holder_.calls();
  ExpectQuick(3);
  EXPECT_EQ(holder_.most_held(), kMost);
  Release();
  EXPECT_EQ(answered_, 7);
  EXPECT_EQ(refused_, 13);
}

// Calls come and go, one answer at a time, and the model changes all the while.
TEST_P(FenceEdge, KeepsItsBoundUnderLoadAndSwitches) {
  constexpr int kCallers = 8;
  constexpr int kTimes = 30;
  Serve(FenceMode::kStrict, GetParam());
  CallWide(kCallers, kTimes, /*retry=*/true);
  const char* const models[] = {"FIB1", "ADB1-8-1", "SIB8", "SDB1-8", "AIB1-1", "FDB1-2"};
  const Deadline deadline = Deadline::In(kMaxTestWait);
  for (size_t answers = 0; finished_ < kCallers && !deadline.Expired();) {
    if (!holder_.AnswerOne()) {
      BetweenLooks();
    } else if (++answers % 50 == 0) {
      ASSERT_TRUE(mid_->SwitchTo(*Config::Parse(models[answers / 50 % std::size(models)])).ok());
    }
  }
  Release();
  EXPECT_EQ(answered_, kCallers * kTimes);
  EXPECT_EQ(failed_, 0);
  EXPECT_EQ(holder_.calls(), kWideCalls * kCallers * kTimes);
  EXPECT_EQ(holder_.most_held(), kMost) << "not one more, and all of them were used";
}

INSTANTIATE_TEST_SUITE_P(Models, FenceEdge,
                         testing::Values("SDB1-8", "SIB8", "FIB1", "FDB1-2", "AIB1-1", "ADB1-8-1"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

// Without a fence the same load has all its calls outstanding.
TEST_F(FenceServerTest, WithoutAFenceNothingBoundsTheCallsOfAPath) {
  Serve(FenceMode::kOff, "ADB1-8-1");
  for (int i = 0; i < 20; ++i) {
    callers_.emplace_back([this] { answered_ += Call(*channel_, kWide, "x").ok(); });
  }
  EXPECT_TRUE(Becomes([&] { return holder_.most_held() == 20 * kWideCalls; }));
  Release();
  EXPECT_EQ(answered_, 20);
}

}  // namespace
}  // namespace curtail
