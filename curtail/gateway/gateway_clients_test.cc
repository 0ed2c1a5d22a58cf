// SPDX-License-Identifier: Apache-2.0
//
// Clients of a gateway that are too many, too slow, or gone, and exceptions that one of them causes.
#include "curtail/gateway/gateway.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/exec/poller.h"
#include "curtail/gateway/internal/clients.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "curtail/rpc/interceptor.h"
#include "curtail/rpc/transport/socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using std::string_literals::operator""s;

// Takes no requests.
struct Deaf final : internal::Clients::Owner {
  void OnRequest(const std::shared_ptr<internal::HttpConnection>&, HttpRequest) override {}
};

// Property: a flood of new connections has short turns, as other connections have.
TEST(Clients, AcceptSomeConnectionsATurn) {
  constexpr uint64_t kMost = 64;  // a turn's
  constexpr uint64_t kFlood = 3 * kMost + 8;
  absl::StatusOr<curtail::internal::UniqueFd> listener =
      curtail::internal::Listen(*Address::Resolve("127.0.0.1:0"));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const GatewayOptions options;
  const auto poller = std::make_shared<Poller>();
  Deaf owner;
  internal::Clients clients(options, *std::move(listener), poller, &owner);
  std::vector<Peer> flood;
  for (uint64_t i = 0; i < kFlood; ++i) flood.emplace_back(clients.address());
  ASSERT_TRUE(clients.Begin().ok());
  GatewayStats stats;
  uint64_t before = 0;
  std::vector<Poller::Ready> ready;
  for (const Deadline end = Deadline::In(kMaxTestWait); before < kFlood && !end.Expired();) {
    poller->Wait(Deadline::In(kMaxTestWait), nullptr, &ready);
    for (const Poller::Ready& event : ready) event.Handle(nullptr);
    clients.Count(&stats);
    EXPECT_LE(stats.connections - before, kMost);
    before = stats.connections;
  }
  EXPECT_EQ(before, kFlood);
  clients.CloseAll();
}

TEST_F(GatewayTest, SlowAndIdleConnectionsEnd) {
  options_.request_timeout = std::chrono::milliseconds(200);
  options_.idle_timeout = std::chrono::milliseconds(400);
  Peer silent = Connect();
  Peer slow = Connect();
  slow.Write("GET / HT");
  EXPECT_TRUE(slow.Closed());
  EXPECT_TRUE(silent.Closed());
  EXPECT_EQ(gateway().stats().timed_out, 2u);
}

TEST_F(GatewayTest, LimitsOnConnectionsAndRequests) {
  options_.max_connections = 1;
  options_.max_requests = 0;
  Peer one = Connect();
  one.Write("GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(one.Read(), StartsWith("HTTP/1.1 503"));
  Peer two = Connect();
  EXPECT_TRUE(two.Closed());
  EXPECT_EQ(gateway().stats().refused, 2u);
}

// Property: crowds that say nothing, or half of a request, keep out neither newcomers nor clients that ask now and then.
TEST_F(GatewayTest, SilentConnectionsMakeRoom) {
  options_.max_connections = 8;
  Peer known = Connect();
  const auto ask = [](Peer& peer) {
    peer.Write(kNowhere);
    return peer.Read();
  };
  std::vector<Peer> silent;
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(ask(known), StartsWith("HTTP/1.1 404")) << i;
    silent.push_back(Connect());
    if (i % 2 == 0) silent.back().Write("GET / HT");
    const uint64_t opened = static_cast<uint64_t>(i) + 2;
    ASSERT_TRUE(Await([&] { return gateway().stats().connections + gateway().stats().evicted == opened; }));
  }
  EXPECT_TRUE(silent.front().Closed());
  EXPECT_EQ(gateway().stats().evicted, 13u);
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask(known), StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(gateway().stats().refused, 0u);
}

// A call of Checkout() by HTTP/2, and its reset.
std::string CheckoutFrames(uint32_t stream, std::string_view body) {
  return Frame(1, 4, stream,
               "\x83\x86\x04\x19/library.Library/Checkout\1\1x\x0f\x10\x10"
               "application/json") +
         Frame(0, 1, stream, body);
}
std::string ResetFrame(uint32_t stream) { return Frame(3, 0, stream, "\0\0\0\x8"s); }

// Property: nobody works for a client that has left, or that has given its request up.
TEST_F(GatewayTest, CallsEndWithTheirClients) {
  Serve({.config = *Config::Parse("SDB1-4")});  // a handler that spins does not stop the thread that reads
  const std::string slow = Post("/library.Library/Checkout", R"({"title":"slow"})");
  const auto ended = [&](int calls) {
    return Await([&] { return gateway().stats().cancelled == static_cast<uint64_t>(calls); }) &&
           Await([&] { return library_->cancelled() == calls; });
  };
  const auto begun = [&](int calls) { return Await([&] { return library_->slow() == calls; }); };
  Peer resets = Connect();
  resets.Write(slow);
  ASSERT_TRUE(begun(1));
  EXPECT_EQ(gateway().stats().cancelled, 0u);
  resets.Abandon();
  EXPECT_TRUE(ended(1));
  {
    Peer leaves = Connect();
    leaves.Write(slow);
    ASSERT_TRUE(begun(2));
  }
  EXPECT_TRUE(ended(2));
  Peer goes_on = Connect();
  goes_on.Write(Join(Preface(), CheckoutFrames(1, R"({"title":"slow"})")));
  ASSERT_TRUE(begun(3));
  goes_on.Write(ResetFrame(1));
  EXPECT_TRUE(ended(3));
  goes_on.Write(GetFrame(3, "/nowhere"));
  EXPECT_THAT(goes_on.ReadUntil("\"code\":5"), HasSubstr("\"code\":5"));
}

// A client that sends a request and its reset together, over and over.
TEST_F(GatewayTest, CallsThatAreResetAtOnceAreNotMade) {
  constexpr uint32_t kStreams = 600;
  Serve({.config = *Config::Parse("SDB1-1")});
  Peer first = Connect();
  first.Write(Post("/library.Library/Checkout", R"({"title":"slow"})"));
  ASSERT_TRUE(Await([&] { return library_->slow() == 1; }));
  Peer resets = Connect();
  std::string bytes = Preface();
  for (uint32_t stream = 1; stream < 2 * kStreams; stream += 2) {
    bytes += CheckoutFrames(stream, R"({"title":"slow"})") + ResetFrame(stream);
  }
  resets.Write(bytes + GetFrame(2 * kStreams + 1, "/nowhere"));
  EXPECT_THAT(resets.ReadUntil("\"code\":5"), HasSubstr("\"code\":5"));
  // Calls that were begun are in the server's queue until their cancellations come.
  EXPECT_TRUE(Await([&] { return server_->Sample().open_calls == 1; }));
  library_->Release();
  EXPECT_THAT(first.Read(), HasSubstr("200 OK"));
  EXPECT_EQ(library_->slow(), 1);
}

// Property: one client's streams keep no other client from a stream.
TEST_F(GatewayTest, StreamsHavePlaces) {
  options_.max_streams = 3;
  Serve({.config = *Config::Parse("SDB1-1")});  // streams have threads of their own
  const std::string watch = "/v1/watch/a?count=1&wait=true";
  Peer crowd = Connect();
  crowd.Write(Join(Preface(), GetFrame(1, watch), GetFrame(3, watch), GetFrame(5, watch)));
  ASSERT_TRUE(Await([&] { return library_->sent() == 3; }));
  crowd.Write(GetFrame(7, watch));
  EXPECT_THAT(crowd.ReadUntil("too many streams"), HasSubstr("too many streams"));
  Peer newcomer = Connect();
  newcomer.Write("GET /v1/watch/b?count=1 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(newcomer.ReadUntil("b/0"), HasSubstr("b/0"));
  EXPECT_THAT(crowd.ReadUntil("want one"), HasSubstr("clients with fewer streams want one"));
  EXPECT_TRUE(Await([&] { return library_->ended() == 2; }));
  EXPECT_EQ(gateway().stats().refused, 2u);
}

// A library of ours, or of others, that throws.
class Thrower final : public ClientInterceptor {
 public:
  absl::Status Before(const OutgoingCall& call, Metadata&) override {
    if (call.path.ends_with("Checkout")) throw std::length_error("from a library");
    return absl::OkStatus();
  }
};

TEST_F(GatewayTest, AnExceptionEndsItsRequestAlone) {
  Thrower thrower;
  options_.channel.interceptors = {&thrower};
  const uint64_t before = ContainedExceptions();
  Peer other = Connect();
  EXPECT_THAT(Ask("POST /library.Library/Checkout", "{}"), StartsWith("HTTP/1.1 500"));
  other.Write("GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(other.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(ContainedExceptions(), before + 1);
  EXPECT_TRUE(gateway().Stop(Deadline::In(kMaxTestWait)));
}

// A trailer of 70 KB ended the process.
TEST_F(GatewayTest, LongTrailersAreRefused) {
  const std::string post = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: ";
  Peer peer = Connect(), other = Connect();
  peer.Write(post + std::string(70'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 431"));
  other.Write(kNowhere);
  EXPECT_THAT(other.Read(), StartsWith("HTTP/1.1 404"));
}

}  // namespace
}  // namespace curtail::gateway
