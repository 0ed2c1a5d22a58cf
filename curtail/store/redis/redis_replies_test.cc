// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/redis/redis_replies.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace curtail::internal {
namespace {

using Kind = RedisReply::Kind;

absl::Status Read(std::string_view bytes, std::vector<RedisReply>* replies, size_t most = 100) {
  return RedisReplies(most).Feed(bytes, replies);
}

TEST(RedisReplies, ReadsEachKind) {
  std::vector<RedisReply> replies;
  ASSERT_TRUE(
      Read("+OK\r\n:-12\r\n$-1\r\n$4\r\na\r\nb\r\n-WRONGTYPE no\r\n*2\r\n*1\r\n:1\r\n$0\r\n\r\n", &replies)
          .ok());
  ASSERT_EQ(replies.size(), 6u);
  EXPECT_EQ(replies[0].text, "OK");
  EXPECT_EQ(replies[1].integer, -12);
  EXPECT_TRUE(replies[2].null());
  EXPECT_EQ(replies[3].text, "a\r\nb");
  EXPECT_EQ(replies[4].status(), absl::FailedPreconditionError("WRONGTYPE no"));
  ASSERT_EQ(replies[5].elements.size(), 2u);
  EXPECT_EQ(replies[5].elements[0].elements.at(0).integer, 1);
  EXPECT_EQ(replies[5].elements[1].kind, Kind::kText);
}

TEST(RedisReplies, WaitsForTheRest) {
  RedisReplies reader(100);
  std::vector<RedisReply> replies;
  const std::string_view bytes = "*2\r\n$3\r\nabc\r\n:7\r\n";
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    ASSERT_TRUE(reader.Feed(bytes.substr(i, 1), &replies).ok());
    ASSERT_TRUE(replies.empty());
  }
  ASSERT_TRUE(reader.Feed(bytes.substr(bytes.size() - 1), &replies).ok());
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].elements.at(1).integer, 7);
}

TEST(RedisReplies, AnArrayTakesNoMoreMemoryThanItsBound) {
  std::vector<RedisReply> replies;
  EXPECT_EQ(Read("*2000000000\r\n", &replies).code(), absl::StatusCode::kResourceExhausted);
  std::string nested;
  for (int i = 0; i < 5; ++i) nested += "*30\r\n";
  EXPECT_EQ(Read(nested, &replies, 100).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(replies.empty());
}

TEST(RedisReplies, TheBoundIsOfAllRepliesTogether) {
  for (const auto& [reply, values] : {std::pair<std::string, size_t>("*3\r\n:1\r\n*0\r\n:3\r\n", 4),
                                      {"*0\r\n", 1},
                                      {"+\r\n", 1},
                                      {":1\r\n", 1},
                                      {"$-1\r\n", 1}}) {
    std::string batch;
    for (int i = 0; i < 50; ++i) batch += reply;
    std::vector<RedisReply> replies;
    const absl::Status status = Read(batch, &replies, 50 * values);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(replies.size(), 50u);
    replies.clear();
    EXPECT_EQ(Read(batch, &replies, 50 * values - 1).code(), absl::StatusCode::kResourceExhausted) << reply;
    EXPECT_EQ(replies.size(), 49u);
  }
}

TEST(RedisReplies, OtherBytesAreAnError) {
  for (const std::string_view bytes :
       {"HTTP/1.1 400 Bad Request\r\n", "$x\r\n", "$-2\r\n", "*-7\r\n", "\r\n"}) {
    std::vector<RedisReply> replies;
    EXPECT_EQ(Read(bytes, &replies).code(), absl::StatusCode::kUnavailable) << bytes;
  }
}

TEST(RedisReplies, ArraysNestedTooDeepAreAnError) {
  std::string nested;
  for (int i = 0; i < 20; ++i) nested += "*1\r\n";
  std::vector<RedisReply> replies;
  EXPECT_FALSE(Read(nested, &replies).ok());
}

}  // namespace
}  // namespace curtail::internal
