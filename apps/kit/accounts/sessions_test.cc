// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/sessions.h"

#include <gtest/gtest.h>

#include <chrono>

namespace curtail::apps {
namespace {

SessionId SessionOf(uint64_t user, uint64_t epoch, uint64_t number) {
  SessionId id;
  id.set_user(user);
  id.set_epoch(epoch);
  id.set_number(number);
  return id;
}

TEST(CheckedSessions, AreRememberedForASecond) {
  ManualTime time;
  CheckedSessions checked(time);
  const SessionId session = SessionOf(1, 2, 3);
  EXPECT_FALSE(checked.Has(session));
  const TimePoint asked = checked.Now();
  time.Advance(std::chrono::milliseconds(400));
  checked.Remember(session, asked);
  EXPECT_TRUE(checked.Has(session));
  for (const SessionId& other : {SessionOf(2, 2, 3), SessionOf(1, 1, 3), SessionOf(1, 2, 4)})
    EXPECT_FALSE(checked.Has(other)) << other.ShortDebugString();
  time.Advance(std::chrono::milliseconds(600) - Nanos(1));
  EXPECT_TRUE(checked.Has(session));
  time.Advance(Nanos(1));
  EXPECT_FALSE(checked.Has(session)) << "a second after `user` was asked";
}

TEST(CheckedSessions, ForgottenDoNotComeBackFromACheckBefore) {
  ManualTime time;
  CheckedSessions checked(time);
  const SessionId session = SessionOf(1, 2, 3);
  checked.Remember(session, checked.Now());
  const TimePoint before = checked.Now();
  time.Advance(Nanos(1));
  checked.Forget(1);
  EXPECT_FALSE(checked.Has(session));
  checked.Remember(session, before);
  EXPECT_FALSE(checked.Has(session)) << "`user` may have said so before the end";
  time.Advance(Nanos(1));
  checked.Remember(session, checked.Now());
  EXPECT_TRUE(checked.Has(session));
}

}  // namespace
}  // namespace curtail::apps
