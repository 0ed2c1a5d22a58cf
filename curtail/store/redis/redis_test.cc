// SPDX-License-Identifier: Apache-2.0
//
// The client against real Redis processes. How a stream waits on fibers, apps/router/failure_test.cc has.
#include "curtail/store/redis/redis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/temp_dir_testing.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

Deadline Patience() { return Deadline::In(std::chrono::seconds(20)); }
Deadline Soon() { return Deadline::In(std::chrono::milliseconds(50)); }

class RedisTest : public testing::Test {
 protected:
  // The text that the client reads, "(none)", or the error.
  std::string Get(std::string_view key, Deadline deadline = Patience()) {
    const absl::StatusOr<RedisReply> reply = client_.Run({"GET", key}, deadline);
    if (!reply.ok()) return std::string(reply.status().message());
    return reply->null() ? "(none)" : reply->text;
  }

  TempDir dir_;
  RedisProcess process_{dir_.File("r")};
  Redis client_{*StoreAddress::Parse(process_.address())};
};

TEST_F(RedisTest, ReadsBackWhatWasSet) {
  const std::vector<std::string> words = {"", "v", "a\r\nb"s, std::string(1 << 20, 'x'), "\0\1\xff"s};
  for (const std::string& key : words) {
    for (const std::string& value : words) {
      ASSERT_TRUE(client_.Run({"SET", key, value}, Patience()).ok());
      ASSERT_EQ(Get(key), value);
    }
  }
  EXPECT_EQ(Get("another"), "(none)");
}

TEST_F(RedisTest, ABatchHasAReplyForEachCommandErrorsIncluded) {
  RedisBatch batch;
  batch.Add({"SET", "text", "x"});
  batch.Add({"LPUSH", "text", "y"});
  batch.Add({"ZADD", "sorted", "1", "a", "2", "b"});
  batch.Add({"ZREVRANGE", "sorted", "0", "-1", "WITHSCORES"});
  batch.Add({"NO", "SUCH"});
  const auto replies = client_.Run(batch, Patience());
  ASSERT_TRUE(replies.ok()) << replies.status();
  ASSERT_EQ(replies->size(), 5u);
  EXPECT_EQ((*replies)[0].text, "OK");
  EXPECT_EQ((*replies)[1].status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*replies)[2].integer, 2);
  ASSERT_EQ((*replies)[3].elements.size(), 4u);
  EXPECT_EQ((*replies)[3].elements[0].text, "b");
  EXPECT_EQ((*replies)[4].status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RedisTest, AnErrorOfTheCommandLeavesTheConnectionInOrder) {
  ASSERT_TRUE(client_.Run({"SET", "k", "v"}, Patience()).ok());
  EXPECT_EQ(client_.Run({"LPUSH", "k", "w"}, Patience()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(RedisTest, AStreamIsReadByAGroup) {
  ASSERT_TRUE(client_.Run({"XGROUP", "CREATE", "queue", "group", "0", "MKSTREAM"}, Patience()).ok());
  EXPECT_EQ(client_.Run({"XGROUP", "CREATE", "queue", "group", "0"}, Patience()).status().code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(client_.Run({"XADD", "queue", "*", "post", "17"}, Patience()).ok());
  const auto reply =
      client_.Run({"XREADGROUP", "GROUP", "group", "me", "COUNT", "10", "STREAMS", "queue", ">"}, Patience());
  ASSERT_TRUE(reply.ok()) << reply.status();
  // Streams, of each its name and entries, of each its id and words.
  EXPECT_EQ(reply->elements.at(0).elements.at(1).elements.at(0).elements.at(1).elements.at(1).text, "17");
}

TEST_F(RedisTest, IsUnavailableWhileRedisIsGoneAndThenRecovers) {
  ASSERT_TRUE(client_.Run({"SET", "k", "v"}, Patience()).ok());
  process_.Kill();
  EXPECT_EQ(client_.Run({"GET", "k"}, Patience()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Get("k"), HasSubstr("is it running?"));
  process_.Start();
  EXPECT_EQ(Get("k"), "(none)");
}

// Its old connections are dead: a look at them before they are used tells.
TEST_F(RedisTest, ARestartBetweenCallsIsNotNoticed) {
  EXPECT_EQ(Get("k"), "(none)");
  process_.Kill();
  process_.Start();
  EXPECT_TRUE(client_.Run({"SET", "k", "w"}, Patience()).ok());
}

TEST_F(RedisTest, ACallEndsAtItsDeadline) {
  ASSERT_TRUE(client_.Check(Patience()).ok());
  process_.Stall();
  EXPECT_EQ(client_.Check(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  process_.GoOn();
  EXPECT_TRUE(client_.Check(Patience()).ok());
  EXPECT_EQ(client_.Run({"GET", "k"}, Deadline::At(TimePoint())).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RedisTest, RepliesHaveABound) {
  Redis small(*StoreAddress::Parse(process_.address()), {.max_reply_bytes = 1000});
  ASSERT_TRUE(small.Run({"SET", "k", std::string(500'000, 'x')}, Patience()).ok());
  EXPECT_EQ(small.Run({"GET", "k"}, Patience()).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(small.Check(Patience()).ok());
}

TEST_F(RedisTest, ThreadsShareAFewConnections) {
  Redis few(*StoreAddress::Parse(process_.address()), {.connections = 2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&few] {
      for (int n = 0; n < 100; ++n) EXPECT_TRUE(few.Run({"INCR", "count"}, Patience()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("count"), "800");
  const auto clients = few.Run({"CLIENT", "LIST"}, Patience());
  ASSERT_TRUE(clients.ok());
  EXPECT_LE(std::count(clients->text.begin(), clients->text.end(), '\n'), 3) << "two, and the one of Get()";
}

}  // namespace
}  // namespace curtail
