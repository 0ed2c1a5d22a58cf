// SPDX-License-Identifier: Apache-2.0
//
// The client against real memcached processes. How it waits on fibers, apps/router/failure_test.cc has.
#include "curtail/store/memcached.h"
#include "curtail/base/testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

Deadline Patience() { return Deadline::In(std::chrono::seconds(20)); }
Deadline Soon() { return Deadline::In(std::chrono::milliseconds(50)); }

class MemcachedTest : public testing::Test {
 protected:
  absl::Status Set(std::string_view key, std::string_view value, Deadline deadline) {
    bool stored = false;
    absl::Status status = client_.Set(key, value, false, deadline, &stored);
    EXPECT_EQ(stored, status.ok());
    return status;
  }
  // The value that the client reads, "(none)", or the error.
  std::string Get(std::string_view key, Deadline deadline = Patience()) {
    bool found = false;
    std::string value = "(none)";
    const absl::Status status = client_.Get(key, deadline, &found, &value);
    return status.ok() ? value : std::string(status.message());
  }

  TempDir dir_;
  MemcachedProcess process_{dir_.File("m")};
  Memcached client_{*StoreAddress::Parse(process_.address())};
};

TEST_F(MemcachedTest, ReadsBackWhatWasSet) {
  const std::vector<std::string> keys = {"k", std::string(250, 'k'), std::string(186, '\n'), "\0\xff \x7f"s,
                                         "\xc3\xa4"};
  std::vector<std::string> values = {"", "v", "a\r\nEN\r\n"s, std::string(1 << 20, 'x'), "\0\1\2"s};
  for (const std::string& key : keys) {
    EXPECT_EQ(Get(key), "(none)");
    for (const std::string& value : values) {
      ASSERT_TRUE(Set(key, value, Patience()).ok());
      ASSERT_EQ(Get(key), value);
    }
  }
  EXPECT_EQ(process_.Look("k"), values.back());
}

TEST_F(MemcachedTest, GetsManyAtOnce) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < 2 * Memcached::kMaxGets + 3; ++i) {
    keys.push_back("key " + std::to_string(i));
    if (i % 3 == 0) continue;
    ASSERT_TRUE(Set(keys.back(), std::string(i * 100, 'v'), Patience()).ok());
  }
  std::vector<std::optional<std::string>> values;
  ASSERT_TRUE(client_.GetAll(keys, Patience(), &values).ok());
  ASSERT_EQ(values.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(values[i], i % 3 == 0 ? std::nullopt : std::optional(std::string(i * 100, 'v'))) << i;
  }
  ASSERT_TRUE(client_.GetAll({}, Patience(), &values).ok());
  EXPECT_TRUE(values.empty());
  process_.Kill();
  process_.Start();  // the connection is not noticed to be old
  ASSERT_TRUE(client_.GetAll(keys, Patience(), &values).ok());
  EXPECT_EQ(values, std::vector<std::optional<std::string>>(keys.size()));
}

TEST_F(MemcachedTest, SetIfAbsentDeleteAndFlush) {
  bool done = false;
  ASSERT_TRUE(client_.Set("k", "first", true, Patience(), &done).ok());
  EXPECT_TRUE(done);
  ASSERT_TRUE(client_.Set("k", "second", true, Patience(), &done).ok());
  EXPECT_FALSE(done);
  EXPECT_EQ(Get("k"), "first");
  ASSERT_TRUE(client_.Delete("k", Patience(), &done).ok());
  EXPECT_TRUE(done);
  ASSERT_TRUE(client_.Delete("k", Patience(), &done).ok());
  EXPECT_FALSE(done);
  ASSERT_TRUE(Set("k", "before", Patience()).ok());
  ASSERT_TRUE(client_.Flush(Patience()).ok());
  EXPECT_EQ(Get("k"), "(none)");
  ASSERT_TRUE(Set("k", "in the same second", Patience()).ok());
  EXPECT_EQ(Get("k"), "in the same second");
}

TEST_F(MemcachedTest, ReplacesTheValueOfAVersionOnly) {
  bool done = false, found = false;
  std::string value;
  uint64_t first = 0, second = 0;
  ASSERT_TRUE(client_.GetVersioned("a key", Patience(), &found, &value, &first).ok());
  EXPECT_FALSE(found);
  ASSERT_TRUE(client_.Replace("a key", "none", 1, Patience(), &done).ok());
  EXPECT_FALSE(done) << "there is no such key";
  ASSERT_TRUE(Set("a key", "1", Patience()).ok());
  ASSERT_TRUE(client_.GetVersioned("a key", Patience(), &found, &value, &first).ok());
  EXPECT_TRUE(found);
  EXPECT_EQ(value, "1");
  ASSERT_TRUE(client_.Replace("a key", "2", first, Patience(), &done).ok());
  EXPECT_TRUE(done);
  ASSERT_TRUE(client_.Replace("a key", "3", first, Patience(), &done).ok());
  EXPECT_FALSE(done);
  ASSERT_TRUE(client_.GetVersioned("a key", Patience(), &found, &value, &second).ok());
  EXPECT_EQ(value, "2");
  EXPECT_NE(first, second);
}

TEST_F(MemcachedTest, IsUnavailableWhileMemcachedIsGoneAndThenRecovers) {
  ASSERT_TRUE(Set("k", "v", Patience()).ok());
  process_.Kill();
  const absl::Status status = Set("k", "w", Patience());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(process_.address()));
  EXPECT_THAT(Get("k"), HasSubstr("is it running?"));
  process_.Start();
  EXPECT_EQ(Get("k"), "(none)");
  EXPECT_TRUE(Set("k", "w", Patience()).ok());
  EXPECT_EQ(Get("k"), "w");
}

TEST_F(MemcachedTest, CountsWhatBecomesOfItsConnections) {
  const auto row = [&] {
    for (const auto& one : internal::ConnectionCounts::ToStores().Read()) {
      if (one.target == Join("memcached ", process_.address())) return one;
    }
    return internal::ConnectionCounts::Row();
  };
  ASSERT_TRUE(Set("k", "v", Patience()).ok());
  const auto calm = row();
  EXPECT_FALSE(calm.silent);
  EXPECT_GE(calm.open, 1u);
  process_.Stall();
  EXPECT_THAT(Get("k", Soon()), HasSubstr("did not answer in time"));
  EXPECT_TRUE(row().silent);
  process_.GoOn();
  EXPECT_EQ(Get("k"), "v");
  EXPECT_FALSE(row().silent);
  process_.Kill();
  EXPECT_THAT(Get("k"), HasSubstr("is it running?"));
  const auto gone = row();
  EXPECT_TRUE(gone.silent);
  EXPECT_EQ(gone.open, 0u);
  EXPECT_EQ(gone.lost, calm.lost + 1);
  EXPECT_GT(gone.failures, calm.failures);
  process_.Start();
  EXPECT_EQ(Get("k"), "(none)");
  const auto back = row();
  EXPECT_FALSE(back.silent);
  EXPECT_EQ(back.open, 1u);
  EXPECT_GT(back.attempts, gone.attempts);
}

// Its old connections are dead, which only their use tells: the call that finds out succeeds nevertheless.
TEST_F(MemcachedTest, ARestartBetweenCallsIsNotNoticed) {
  ASSERT_TRUE(Set("k", "v", Patience()).ok());
  process_.Kill();
  process_.Start();
  EXPECT_TRUE(Set("k", "w", Patience()).ok());
  EXPECT_EQ(process_.Look("k"), "w");
}

// Its values may be gone; no test asked it meanwhile.
TEST_F(MemcachedTest, CheckNoticesARestartBetweenCalls) {
  EXPECT_TRUE(client_.Check(Patience()).ok());
  EXPECT_EQ(client_.lost(), 0u);
  process_.Kill();
  process_.Start();
  EXPECT_TRUE(client_.Check(Patience()).ok());
  const uint64_t restarted = client_.lost();
  EXPECT_GT(restarted, 0u);
  EXPECT_TRUE(client_.Check(Patience()).ok());
  EXPECT_EQ(client_.lost(), restarted);
  process_.Stall();
  EXPECT_EQ(client_.Check(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(client_.lost(), restarted);
  process_.Kill();
  EXPECT_EQ(client_.Check(Patience()).code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(client_.lost(), restarted);
}

TEST_F(MemcachedTest, DeadlinesHoldWhenMemcachedStalls) {
  ASSERT_TRUE(Set("k", "v", Patience()).ok());
  process_.Stall();
  EXPECT_THAT(Get("k", Soon()), HasSubstr("did not answer in time"));
  EXPECT_EQ(Set("k", "w", Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  process_.GoOn();
  EXPECT_THAT(Get("k"), testing::AnyOf("v", "w"));
}

// A set that timed out may still be carried out; until that is known no other is sent, so it cannot undo a
// later one.
TEST_F(MemcachedTest, ATimedOutSetDoesNotLandAfterALaterOne) {
  ASSERT_TRUE(Set("k", "first", Patience()).ok());
  process_.Stall();
  EXPECT_EQ(Set("k", "given up", Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  const absl::Status refused = Set("k", "too early", Soon());
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("not answered 1 earlier"));
  EXPECT_EQ(client_.Flush(Soon()).code(), absl::StatusCode::kUnavailable);
  process_.GoOn();
  const Deadline deadline = Patience();
  while (!Set("k", "later", Patience()).ok()) ASSERT_FALSE(deadline.Expired());
  EXPECT_EQ(Get("k"), "later");
  EXPECT_EQ(process_.Look("k"), "later");
}

TEST_F(MemcachedTest, NothingOvertakesADeleteOrAFlushThatTimedOut) {
  for (const bool flush : {false, true}) {
    ASSERT_TRUE(Set("k", "first", Patience()).ok());
    process_.Stall();
    bool found = false;
    EXPECT_EQ((flush ? client_.Flush(Soon()) : client_.Delete("k", Soon(), &found)).code(),
              absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(Set("k", "too early", Soon()).code(), absl::StatusCode::kUnavailable);
    process_.GoOn();
    const Deadline deadline = Patience();
    while (!Set("k", "later", Patience()).ok()) ASSERT_FALSE(deadline.Expired());
    EXPECT_EQ(process_.Look("k"), "later");
  }
}

// A value that does not fit in the socket is not sent whole: memcached drops it, and other writes need not
// wait.
TEST_F(MemcachedTest, ASetThatWasSentInPartIsDropped) {
  ASSERT_TRUE(Set("k", "first", Patience()).ok());
  process_.Stall();
  EXPECT_EQ(Set("k", std::string(1 << 20, 'x'), Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  process_.GoOn();
  EXPECT_TRUE(Set("other", "v", Patience()).ok());
  EXPECT_EQ(Get("k"), "first");
}

TEST_F(MemcachedTest, WaitsForAConnectionWhenAllAreInUse) {
  Memcached one(*StoreAddress::Parse(process_.address()), MemcachedOptions{.connections = 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&one, t] {
      const std::string key = "key" + std::to_string(t);
      for (int i = 0; i < 200; ++i) {
        bool done = false, found = false;
        std::string value;
        ASSERT_TRUE(one.Set(key, key + std::to_string(i), false, Patience(), &done).ok());
        ASSERT_TRUE(one.Get(key, Patience(), &found, &value).ok());
        ASSERT_EQ(value, key + std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  process_.Stall();
  std::thread waits([&one] {
    bool found = false;
    std::string value;
    EXPECT_TRUE(one.Get("key0", Patience(), &found, &value).ok());
  });
  bool found = false;
  std::string value;
  EXPECT_EQ(one.Get("key1", Soon(), &found, &value).code(), absl::StatusCode::kDeadlineExceeded);
  process_.GoOn();
  waits.join();
}

TEST(Memcached, SaysWhenAValueIsTooLargeForItsMemcached) {
  const TempDir dir;
  const MemcachedProcess process(dir.File("m"), {"-I", "1m"});
  Memcached client(*StoreAddress::Parse(process.address()));
  bool stored = false;
  const absl::Status status = client.Set("k", std::string(1 << 20, 'x'), false, Patience(), &stored);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("start it with -I 2m"));
  EXPECT_TRUE(client.Set("k", "small", false, Patience(), &stored).ok());
}

// One that mixes up what it answers: each command gets the next of `lines`, whatever it is.
class MixedUp {
 public:
  MixedUp(const std::string& path, std::vector<std::string> lines) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    thread_ = std::thread([this, answers = std::move(lines)] { Serve(answers); });
  }
  ~MixedUp() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  MixedUp(const MixedUp&) = delete;
  MixedUp& operator=(const MixedUp&) = delete;

  int connections() const { return connections_; }

 private:
  void Serve(const std::vector<std::string>& lines) {
    size_t next = 0;
    for (int peer; (peer = accept(fd_, nullptr, nullptr)) >= 0; close(peer)) {
      ++connections_;
      char bytes[4096];
      while (next < lines.size() && recv(peer, bytes, sizeof bytes, 0) > 0) {
        const std::string& line = lines[next++];
        send(peer, line.data(), line.size(), MSG_NOSIGNAL);
      }
    }
  }

  const int fd_;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

TEST(Memcached, AnAnswerOfTheWrongKindIsNoSuccess) {
  const TempDir dir;
  const std::string path = dir.File("m");
  MixedUp mixed_up(path, {"HD\r\n", "NS\r\n", "EN\r\n", "NS\r\n", "VA 1\r\nx\r\n", "NF\r\n", "NS\r\n"});
  Memcached client(*StoreAddress::Parse("unix:" + path));
  bool done = true;
  std::string value;
  const auto check = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("another command"));
  };
  check(client.Get("k", Patience(), &done, &value));                // HD: a set's
  check(client.Get("k", Patience(), &done, &value));                // NS
  check(client.Set("k", "v", false, Patience(), &done));            // EN: a get's
  check(client.Set("k", "v", false, Patience(), &done));            // NS, though not "if absent"
  check(client.Delete("k", Patience(), &done));                     // VA
  check(client.Flush(Patience()));                                  // NF: a delete's
  EXPECT_TRUE(client.Set("k", "v", true, Patience(), &done).ok());  // NS is right here
  EXPECT_FALSE(done);
  EXPECT_EQ(mixed_up.connections(), 7);  // no connection was used again
}

TEST_F(MemcachedTest, IsNotAskedWhenNoTimeIsLeft) {
  const Deadline past = Deadline::At(TimePoint::min());
  EXPECT_EQ(Set("k", "v", past).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Get("k"), "(none)");
  EXPECT_EQ(Set("k", "w", past).code(), absl::StatusCode::kDeadlineExceeded);  // on a connection that is open
  EXPECT_EQ(process_.Look("k"), std::nullopt);
}

// As a name that stands for an IPv6 and an IPv4 address, of which memcached listens at the second.
// Whether the kernel probes the connection to a port of this machine: proc(5) shows its timer.
bool IsProbed(int port) {
  std::ifstream table("/proc/net/tcp");
  std::string line, number, local, peer, state, queues, timer;
  while (std::getline(table, line)) {
    std::istringstream(line) >> number >> local >> peer >> state >> queues >> timer;
    if (state == "01" && std::stoi(peer.substr(9), nullptr, 16) == port) return timer.starts_with("02:");
  }
  return false;
}

// A write on a connection to a machine that vanished keeps back later ones until the kernel closes the connection.
TEST(Memcached, TheKernelProbesConnections) {
  const internal::UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), raw, size), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  ASSERT_EQ(getsockname(listener.get(), raw, &size), 0);
  const int port = ntohs(address.sin_port);
  Memcached client(*StoreAddress::Parse(Join("127.0.0.1:", port)));
  bool stored = false;
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Set("k", "v", false, Soon(), &stored)));
  EXPECT_TRUE(absl::IsUnavailable(client.Set("k", "v", false, Soon(), &stored)))
      << "the first may still come";
  const Deadline deadline = Patience();
  while (!IsProbed(port) && !deadline.Expired()) BetweenLooks();  // once its bytes are acknowledged
  EXPECT_TRUE(IsProbed(port));
}

TEST_F(MemcachedTest, TriesAllAddressesOfAName) {
  const std::string nowhere = "unix:" + dir_.File("nowhere");
  StoreAddress address{.text = "both", .sockets = StoreAddress::Parse(nowhere)->sockets};
  address.sockets.push_back(StoreAddress::Parse(process_.address())->sockets[0]);
  Memcached client(address);
  bool stored = false;
  const absl::Status status = client.Set("k", "v", false, Patience(), &stored);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(process_.Look("k"), "v");
}

// A server whose queue of connections is full answers no further one.
TEST_F(MemcachedTest, ASilentAddressLeavesTimeForTheOthers) {
  const internal::UniqueFd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(silent.get(), 0), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  std::vector<internal::UniqueFd> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&at), size);
  }
  StoreAddress address = *StoreAddress::Parse(Join("127.0.0.1:", ntohs(at.sin_port)));
  address.sockets.push_back(StoreAddress::Parse(process_.address())->sockets[0]);
  Memcached client(address);
  bool stored = false;
  const absl::Status status = client.Set("k", "v", false, Deadline::In(std::chrono::seconds(4)), &stored);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(process_.Look("k"), "v");
}

TEST(StoreAddress, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) {
    const auto address = StoreAddress::Parse(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(address.status().message());
  };
  EXPECT_TRUE(StoreAddress::Parse("127.0.0.1:11211").ok());
  EXPECT_TRUE(StoreAddress::Parse("[::1]:11211").ok());
  EXPECT_TRUE(StoreAddress::Parse("unix:/tmp/m").ok());
  EXPECT_THAT(error("127.0.0.1"), HasSubstr("has no port"));
  EXPECT_THAT(error("127.0.0.1:"), HasSubstr("has no port"));
  EXPECT_THAT(error("127.0.0.1:x"), HasSubstr("has a port that is not a number"));
  EXPECT_THAT(error("127.0.0.1:65536"), HasSubstr("port 65536 is above 65535"));
  EXPECT_THAT(error("127.0.0.1:0"), HasSubstr("has no port"));
  EXPECT_THAT(error(":11211"), HasSubstr("has no host"));
  EXPECT_THAT(error("unix:"), HasSubstr("has no path"));
  EXPECT_THAT(error("unix:/" + std::string(200, 'x')), HasSubstr("too long"));
}

}  // namespace
}  // namespace curtail
