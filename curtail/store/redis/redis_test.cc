// SPDX-License-Identifier: Apache-2.0
//
// The client against real Redis processes. How a stream waits on fibers, apps/router/failure_test.cc has.
#include "curtail/store/redis/redis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/transport/tls_testing.h"
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

// The text of an answer or an error.
std::string Answer(Redis& redis) {
  const absl::StatusOr<RedisReply> reply = redis.Run({"PING"}, Patience());
  return reply.ok() ? reply->text : reply.status().ToString();
}

TEST_F(RedisTest, LogsInWithAPasswordOfAFileOrTheEnvironment) {
  ASSERT_TRUE(client_.Run({"ACL", "SETUSER", "ann", "on", ">hers", "~*", "+@all"}, Patience()).ok());
  ASSERT_TRUE(client_.Run({"CONFIG", "SET", "requirepass", "secret"}, Patience()).ok());
  StoreAddress address = *StoreAddress::Parse(process_.address());
  Redis none(address);
  EXPECT_THAT(Answer(none), HasSubstr("PERMISSION_DENIED: redis "));
  EXPECT_THAT(Answer(none), HasSubstr("asks for a password: set REDIS_PASSWORD_FILE"));
  setenv("REDIS_PASSWORD", "secret", 1);
  EXPECT_EQ(Answer(none), "PONG");
  address.password_file = dir_.Write("password", "wrong\n");
  Redis filed(address);
  EXPECT_THAT(Answer(filed), HasSubstr("does not take the password of " + address.password_file));
  dir_.Write("password", "secret\n");
  EXPECT_EQ(Answer(filed), "PONG") << "it is read for each connection";
  address.user = "ann";
  dir_.Write("password", "hers");
  Redis named(address);
  EXPECT_EQ(Answer(named), "PONG");
  address.password_file = dir_.File("absent");
  Redis absent(address);
  EXPECT_THAT(Answer(absent), HasSubstr("FAILED_PRECONDITION: redis "));
  unsetenv("REDIS_PASSWORD");
}

class RedisTlsTest : public RedisTest {
 protected:
  // Has Redis listen at a port of TLS, too, with this certificate; returns "127.0.0.1:PORT".
  std::string Listen(const TestCertificate& certificate) {
    absl::Status status;
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::string port = UnusedPort();
      status = client_
                   .Run({"CONFIG", "SET", "tls-cert-file", certificate.file(), "tls-key-file",
                         certificate.key_file(), "tls-ca-cert-file", certificate.file(), "tls-auth-clients",
                         "no", "tls-port", port},
                        Patience())
                   .status();
      if (status.ok()) return Join("127.0.0.1:", port);  // else another program took it meanwhile
    }
    ADD_FAILURE() << status;
    return "";
  }
  static std::string UnusedPort() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    close(fd);
    return std::to_string(ntohs(address.sin_port));
  }
  static std::unique_ptr<Redis> Client(const std::string& url) {
    absl::StatusOr<StoreAddress> address = StoreAddress::Parse(url);
    EXPECT_TRUE(address.ok()) << address.status();
    return address.ok() ? std::make_unique<Redis>(*std::move(address)) : nullptr;
  }

  TestCertificate authority_{{.common_name = "authority", .names = ""}};
  TestCertificate own_{{}, &authority_};
};

TEST_F(RedisTlsTest, SpeaksTlsWithAVerifiedServer) {
  const std::string place = Listen(own_);
  const auto redis = Client(Join("rediss://", place, "?ca=", authority_.file()));
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE(redis->Run({"SET", "k", large}, Patience()).ok());
  const absl::StatusOr<RedisReply> reply = redis->Run({"GET", "k"}, Patience());
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->text, large);
  EXPECT_EQ(Get("k"), large) << "by the other client, in plain text";
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) EXPECT_TRUE(redis->Run({"INCR", "count"}, Patience()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("count"), "200");
  process_.Stall();
  EXPECT_EQ(redis->Check(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  process_.GoOn();
  EXPECT_TRUE(redis->Check(Patience()).ok());
}

TEST_F(RedisTlsTest, RefusesACertificateThatDoesNotFit) {
  const TestCertificate stranger({.common_name = "stranger", .names = ""});
  const std::string place = Listen(own_);
  EXPECT_THAT(Answer(*Client(Join("rediss://", place, "?ca=", stranger.file()))),
              testing::AllOf(HasSubstr("FAILED_PRECONDITION: redis rediss://" + place),
                             HasSubstr("its certificate is not trusted: "),
                             HasSubstr(stranger.file() + " does not have its authority")));
  EXPECT_THAT(Answer(*Client(Join("rediss://", place))),
              HasSubstr("name the file of its authority, as rediss://"));
  const TestCertificate other({.names = "DNS:elsewhere.example"}, &authority_);
  EXPECT_THAT(Answer(*Client(Join("rediss://", Listen(other), "?ca=", authority_.file()))),
              HasSubstr("its certificate is not for 127.0.0.1"));
}

TEST_F(RedisTlsTest, AsksWhetherASilentServerSpeaksTls) {
  StoreAddress address = *StoreAddress::Parse(process_.address());
  address.tls = *StoreTls::Load(authority_.file());
  address.host = "localhost";
  Redis redis(address);
  EXPECT_THAT(std::string(redis.Check(Soon()).message()),
              HasSubstr("did not answer in time: does it speak TLS?"));
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
