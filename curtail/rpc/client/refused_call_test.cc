// SPDX-License-Identifier: Apache-2.0
//
// Calls that a server refuses without having looked at them. Property: whatever the form of the call, it is made again
// until it is answered, or was refused five times, or its deadline is over. And replies that are not one message.
#include <gmock/gmock.h>

#include <atomic>
#include <climits>
#include <thread>

#include "curtail/rpc/retries.h"
#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/wire/session.h"

namespace curtail {
namespace {

using testing::HasSubstr;

constexpr int kCalls = 16;

// Finds the HEADERS frames in the bytes of a client.
class HeadersFinder {
 public:
  // Returns the streams of those that have come whole.
  std::vector<uint32_t> Feed(std::string_view bytes) {
    std::vector<uint32_t> streams;
    bytes_.append(bytes);
    while (bytes_.size() >= at_ + 9) {
      const auto byte = [&](size_t i) {
        return static_cast<uint32_t>(static_cast<uint8_t>(bytes_[at_ + i]));
      };
      const size_t size = 9 + (byte(0) << 16 | byte(1) << 8 | byte(2));
      if (bytes_.size() < at_ + size) break;
      if (byte(3) == 1) streams.push_back(byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8));
      at_ += size;
    }
    return streams;
  }

 private:
  std::string bytes_;
  size_t at_ = 24;  // behind the preface
};

// A TestPeer answers each call with its request, by a session of its own.
class TestPeer {
 public:
  struct Plan {
    uint32_t max_streams = 100;
    int hold = 1;              // calls that have come before it begins to listen
    int last = INT_MAX;        // calls of a connection before it says goodbye
    bool refuses_all = false;  // with a reset for each call
    int replies = 1;           // messages that answer one
  };
  explicit TestPeer(Plan plan)
      : plan_(plan), listener_([this](internal::UniqueFd fd, int stop) { Serve(fd.get(), stop); }) {}

  const std::string& address() const { return listener_.address(); }
  // Calls that came.
  int calls() const { return calls_; }

 private:
  struct Echo final : wire::Events {
    Echo(const Plan& plan) : last(plan.last), replies(plan.replies) {}
    void* OnRequest(wire::StreamId, wire::RequestHead&&) override {
      if (++requests == last) session->SendGoaway();
      return this;
    }
    void OnMessage(wire::StreamId id, void*, std::string&& message) override {
      for (int i = 0; i < replies; ++i) session->SendMessage(id, std::string(message));
    }
    void OnRequestEnd(wire::StreamId id, void*) override { session->EndCall(id, absl::OkStatus()); }
    void OnCallEnd(wire::StreamId, void*, absl::Status&&, wire::Metadata&&) override {}
    TimePoint now() override { return Now(); }
    const int last;
    const int replies;
    wire::Session* session = nullptr;
    int requests = 0;
  };

  // An empty SETTINGS, then a reset of each stream.
  static std::string Refusals(const std::vector<uint32_t>& streams, bool first) {
    std::string bytes;
    if (first) bytes.append("\0\0\0\4\0\0\0\0\0", 9);
    for (const uint32_t stream : streams) {
      bytes.append("\0\0\4\3\0\0\0", 7);
      bytes += static_cast<char>(stream >> 8);
      bytes += static_cast<char>(stream);
      bytes.append("\0\0\0\7", 4);
    }
    return bytes;
  }

  void Serve(int fd, int stop) {
    wire::SessionOptions options;
    options.max_concurrent_streams = plan_.max_streams;
    Echo echo(plan_);
    wire::Session session(wire::Role::kServer, options, &echo);
    echo.session = &session;
    HeadersFinder finder;
    std::string heard;
    char bytes[65536];
    for (bool first = true; TestListener::Wait(fd, stop);) {
      const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
      if (n <= 0) return;
      heard.append(bytes, static_cast<size_t>(n));
      const auto streams = finder.Feed({bytes, static_cast<size_t>(n)});
      calls_ += static_cast<int>(streams.size());
      if (calls_ < plan_.hold) continue;
      std::string said;
      if (plan_.refuses_all) {
        said = Refusals(streams, std::exchange(first, false));
      } else {
        if (!session.Receive(std::exchange(heard, {})).ok()) return;
        while (session.Pull(&said)) continue;
      }
      if (send(fd, said.data(), said.size(), MSG_NOSIGNAL) < 0 || session.Finished()) return;
    }
  }

  const Plan plan_;
  // Atomic: the listener's thread counts, the test reads.
  std::atomic<int> calls_{0};
  TestListener listener_;
};

// kCalls threads make a call each, of `size` bytes; returns those that were answered.
int CallFromThreads(Channel& channel, size_t size) {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kCalls; ++i) {
    threads.emplace_back([&, i] {
      Context ctx(kMaxTestWait);
      const StringValue request = Text(std::string(size, static_cast<char>('a' + i)));
      StringValue reply;
      const absl::Status status = channel.Call(ctx, kEcho.path, request, &reply);
      EXPECT_TRUE(status.ok()) << status;
      right += status.ok() && reply.value() == request.value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return right;
}

struct Counted final : Completion {
  void Done(absl::Status&& status, std::string&& reply) override {
    EXPECT_TRUE(status.ok()) << status;
    StringValue value;
    right += status.ok() && value.ParseFromString(reply) && value.value() == text;
    ++done;
  }
  std::string text;
  int right = 0;
  int done = 0;
};

int StartAll(Client& client, Channel& channel, size_t size) {
  Counted counted[kCalls];
  for (int i = 0; i < kCalls; ++i) {
    counted[i].text = std::string(size, static_cast<char>('a' + i));
    channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text(counted[i].text).SerializeAsString(),
                  &counted[i]);
  }
  int right = 0, done = 0;
  for (const Deadline end = Deadline::In(kMaxTestWait); done < kCalls && !end.Expired();) {
    client.Poll(end);
    right = done = 0;
    for (const Counted& one : counted) right += one.right, done += one.done;
  }
  EXPECT_EQ(done, kCalls);
  return right;
}

// The limits that a server may have, and the sizes of messages.
class RefusedCallTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  TestPeer::Plan LowLimit() const {
    return {.max_streams = static_cast<uint32_t>(std::get<0>(GetParam())), .hold = kCalls};
  }
  size_t size() const { return static_cast<size_t>(std::get<1>(GetParam())); }
  Client client_;
};
INSTANTIATE_TEST_SUITE_P(Limits, RefusedCallTest,
                         testing::Combine(testing::Values(1, 3, 15), testing::Values(10, 30000)));

// The client learns the limit from the SETTINGS of a fresh connection, when all calls are already on their way.
TEST_P(RefusedCallTest, ThreadsAreServedThoughAFreshConnectionTakesFewStreams) {
  TestPeer peer(LowLimit());
  Channel channel(&client_, peer.address());
  EXPECT_EQ(CallFromThreads(channel, size()), kCalls);
  EXPECT_GT(peer.calls(), kCalls) << "none was refused";
}

TEST_P(RefusedCallTest, EventDrivenCallsAreServedThoughAFreshConnectionTakesFewStreams) {
  TestPeer peer(LowLimit());
  Channel channel(&client_, peer.address());
  EXPECT_EQ(StartAll(client_, channel, size()), kCalls);
  EXPECT_GT(peer.calls(), kCalls) << "none was refused";
}

TEST(RefusedCall, CallsAboveTheLastOfAGoodbyeAreMadeAgain) {
  for (const int last : {4, 15}) {
    TestPeer peer({.hold = kCalls, .last = last});
    Client client;
    Channel channel(&client, peer.address());
    EXPECT_EQ(CallFromThreads(channel, 10), kCalls);
    TestPeer other({.hold = kCalls, .last = last});
    Client events;
    Channel to_other(&events, other.address());
    EXPECT_EQ(StartAll(events, to_other, 30000), kCalls);
  }
}

TEST(UnaryReply, OfNoneOrTwoMessagesIsUnimplemented) {
  for (const int replies : {0, 2}) {
    TestPeer peer({.replies = replies});
    Client client;
    Channel channel(&client, peer.address());
    Context ctx(kMaxTestWait);
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kEcho.path, Text("x"), &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_EQ(reply.value(), "");
  }
}

// With a retry policy of as many attempts, too.
TEST(RefusedCall, AServerThatRefusesAllIsAskedFiveTimes) {
  const std::vector<std::string> methods = {std::string(kEcho.path)};
  for (const std::string& config : {std::string(), RetryConfig(kMaxRetries, methods)}) {
    TestPeer peer({.refuses_all = true});
    Client client;
    Channel channel(&client, peer.address(), {.service_config = config});
    Context ctx(kMaxTestWait);
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kEcho.path, Text("x"), &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("REFUSED_STREAM"));
    EXPECT_EQ(peer.calls(), 5) << config;
  }
}

TEST(RefusedCall, AnEventDrivenCallThatIsAlwaysRefusedFails) {
  struct Refused final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } refused;
  TestPeer peer({.refuses_all = true});
  Client client;
  Channel channel(&client, peer.address());
  channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, "x", &refused);
  for (const Deadline end = Deadline::In(kMaxTestWait); !refused.done && !end.Expired();) client.Poll(end);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kUnavailable) << refused.status;
  EXPECT_EQ(peer.calls(), 5);
}

}  // namespace
}  // namespace curtail
