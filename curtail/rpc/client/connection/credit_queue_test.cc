// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/connection/credit_queue.h"

#include <gtest/gtest.h>

#include <deque>

#include "curtail/rpc/client/connection/client_call.h"

namespace curtail::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct WaitingCall final : ClientCall {
  void Finished() override {}
  void CancelHandled() override {}
};

class CreditQueueTest : public testing::Test {
 protected:
  // Another call waits, for `time` at most.
  ClientCall* Waits(Nanos time = seconds(1)) {
    ClientCall& call = calls_.emplace_back();
    call.waits_since = now_;
    call.leaves_by = now_ + time;
    EXPECT_TRUE(queue_.Wait(&call));
    return &call;
  }
  void Answer(std::string_view credits, bool ok = true) {
    wire::Metadata trailing;
    if (!credits.empty()) trailing.Add(kCreditsKey, credits);
    queue_.AnswerCame(ok, trailing);
  }
  // Takes all credits; how many there were.
  uint32_t TakeAll() {
    uint32_t taken = 0;
    while (taken < 10'000 && queue_.Take()) ++taken;
    return taken;
  }

  TimePoint now_ = TimePoint() + seconds(1000);
  std::deque<WaitingCall> calls_;
  CreditQueue queue_;
};

TEST_F(CreditQueueTest, FollowsWhatTheServerSays) {
  EXPECT_EQ(TakeAll(), CreditAccount::kFirst);
  EXPECT_TRUE(queue_.scarce());
  Answer("10");
  EXPECT_FALSE(queue_.scarce());
  EXPECT_EQ(TakeAll(), 10 - (CreditAccount::kFirst - 1));
  Answer("2");
  EXPECT_EQ(TakeAll(), 0u);
}

TEST_F(CreditQueueTest, DoesNotBelieveEverything) {
  EXPECT_TRUE(queue_.Take());
  for (const char* said : {"x", "-1", "", "99999999999"}) {
    Answer(said, /*ok=*/false);
    EXPECT_EQ(TakeAll(), said == std::string_view("x") ? CreditAccount::kFirst : 1u) << said;
  }
  Answer("4000000");
  EXPECT_EQ(TakeAll(), CreditPool::kMostOfAccount - CreditAccount::kFirst + 1);
}

TEST_F(CreditQueueTest, AlwaysHasOneCredit) {
  EXPECT_TRUE(queue_.Take());
  Answer("0");
  EXPECT_EQ(TakeAll(), 1u);
}

TEST_F(CreditQueueTest, AServerWhoseGoodAnswerSaysNothingGivesNone) {
  EXPECT_TRUE(queue_.Take());
  Answer("", /*ok=*/true);
  EXPECT_EQ(TakeAll(), 10'000u);
}

TEST_F(CreditQueueTest, AServerThatGaveSomeStillDoes) {
  EXPECT_TRUE(queue_.Take() && queue_.Take());
  Answer("7");
  Answer("", /*ok=*/true);
  EXPECT_EQ(TakeAll(), 7u);
}

TEST_F(CreditQueueTest, ServesTheOldestFirstAndTheNewestWhenItStands) {
  ClientCall* const oldest = Waits();
  ClientCall* const second = Waits();
  now_ += milliseconds(20);
  ClientCall* const newest = Waits();
  EXPECT_FALSE(queue_.Take()) << "others came before";
  EXPECT_EQ(queue_.Next(now_), newest);
  EXPECT_EQ(queue_.Next(oldest->waits_since), oldest);
  EXPECT_TRUE(queue_.Remove(second));
  EXPECT_FALSE(queue_.Remove(second));
  EXPECT_EQ(queue_.Next(now_), nullptr);
}

TEST_F(CreditQueueTest, FindsThoseThatAreOverdueBehindOthers) {
  Waits();
  ClientCall* const hasty = Waits(milliseconds(5));
  EXPECT_EQ(queue_.first_overdue(), hasty->leaves_by);
  EXPECT_EQ(queue_.NextOverdue(hasty->leaves_by - Nanos(1)), nullptr);
  EXPECT_EQ(queue_.NextOverdue(hasty->leaves_by), hasty);
  EXPECT_EQ(queue_.NextOverdue(hasty->leaves_by), nullptr);
}

TEST_F(CreditQueueTest, ACallWaitsForHalfOfItsTimeAndNotForLong) {
  EXPECT_EQ(CreditQueue::LeavesBy(now_, now_ + milliseconds(100)), now_ + milliseconds(50));
  EXPECT_EQ(CreditQueue::LeavesBy(now_, TimePoint::max()), now_ + CreditQueue::kLongestWait);
  for (size_t i = 0; i < CreditQueue::kMostWaiting; ++i) Waits();
  EXPECT_FALSE(queue_.Wait(&calls_.emplace_back()));
}

}  // namespace
}  // namespace curtail::internal
