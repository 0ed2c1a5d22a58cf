// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/internal/unread_reply.h"

#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

constexpr Nanos kShort = std::chrono::milliseconds(1);

// The reply to the second call may stay.
bool Stays(const RunOptions& options, bool open_loop = true) {
  UnreadReply reply(options, open_loop);
  EXPECT_FALSE(reply.MayStay(1, kShort)) << "no arrival is known yet";
  reply.Sent(10), reply.Ended(/*arrival_known=*/true, 10), reply.Sent(10);
  return reply.MayStay(1, kShort);
}

TEST(UnreadReply, StaysWhereTheKernelSaysWhenItCame) {
  UnreadReply reply({}, /*open_loop=*/true);
  reply.Ended(true, UnreadReply::kMostBytes);
  EXPECT_TRUE(reply.MayStay(1, UnreadReply::kLongest));
  EXPECT_FALSE(reply.MayStay(1, UnreadReply::kLongest + Nanos(1)));
  EXPECT_FALSE(reply.MayStay(2, kShort)) << "both would get the time of the last";
  reply.Ended(false, 10);
  EXPECT_FALSE(reply.MayStay(1, kShort));
}

TEST(UnreadReply, LongMessagesKeepTheThreadAwake) {
  for (const bool request : {true, false}) {
    UnreadReply reply({}, /*open_loop=*/true);
    if (request) reply.Sent(UnreadReply::kMostBytes + 1);
    reply.Ended(true, request ? 10 : UnreadReply::kMostBytes + 1);
    reply.Sent(10);
    reply.Ended(true, 10);
    EXPECT_FALSE(reply.MayStay(1, kShort)) << (request ? "request" : "reply");
  }
}

TEST(UnreadReply, CallsThatNeedAClientKeepTheThreadAwake) {
  EXPECT_TRUE(Stays({}));
  EXPECT_FALSE(Stays({}, /*open_loop=*/false));
  RunOptions options;
  options.channel.service_config = "{}";
  EXPECT_FALSE(Stays(options));
  options = {};
  options.channel.credits = true;
  EXPECT_FALSE(Stays(options));
  options = {};
  options.timeout = UnreadReply::kTimeouts * UnreadReply::kLongest - Nanos(1);
  EXPECT_FALSE(Stays(options));
}

}  // namespace
}  // namespace curtail::internal
