// SPDX-License-Identifier: Apache-2.0
//
// How much a connection, and all connections of a gateway, may hold, and which of them make room.
#include "curtail/gateway/gateway.h"

#include <atomic>
#include <string>
#include <thread>

#include "curtail/base/internal/control_groups_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using std::string_literals::operator""s;

// Property: requests that the target keeps stop no others but large ones that find no room beside them.
TEST_F(GatewayTest, RequestsInFlightHoldTheirBytes) {
  options_.max_held_bytes = 60'000;
  const auto request = [](std::string_view title, size_t bytes) {
    return Post("/library.Library/Checkout",
                Join(R"({"title":")", title, R"(","name":")", std::string(bytes, 'n'), "\"}"));
  };
  Peer one = Connect(), two = Connect(), three = Connect(), small = Connect();
  one.Write(request("slow", 20'000));
  two.Write(request("slow", 8'000));
  ASSERT_TRUE(Await([&] { return gateway().stats().requests == 2; }));
  three.Write(request("fast", 8'000));
  EXPECT_THAT(three.Read(), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(gateway().stats().refused, 1u);
  small.Write(request("fast", 3'000));
  ASSERT_TRUE(Await([&] { return gateway().stats().requests == 4; }));
  library_->Release();  // the server may have no thread for more calls
  EXPECT_THAT(small.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(one.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(two.Read(), StartsWith("HTTP/1.1 200"));
  three.Write(request("fast", 8'000));
  EXPECT_THAT(three.Read(), StartsWith("HTTP/1.1 200"));
}

// Property: an answer that finds no room beside others is refused, and a small one leaves.
TEST_F(GatewayTest, AnswersHoldTheirBytes) {
  options_.max_held_bytes = 100'000;
  options_.files = {{"large.txt", std::string(60'000, 'l')}, {"half.txt", std::string(30'000, 'h')}};
  EXPECT_THAT(Ask("GET /large.txt"), StartsWith("HTTP/1.1 200")) << "alone";
  Peer peer = Connect();
  peer.Write(ParkingPreface() + GetFrame(1, "/half.txt") + GetFrame(3, "/half.txt"));
  ASSERT_TRUE(Await([&] { return gateway().stats().refused == 1; })) << "of two parked answers one is held";
  EXPECT_THAT(Ask("GET /large.txt"), AllOf(StartsWith("HTTP/1.1 429"), HasSubstr("\"code\":8")));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
}

// Property: a connection that goes on reading keeps no room by the answers that it does not read.
TEST_F(GatewayTest, ParkedAnswersMakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.files = {{"parked.txt", std::string(22'000, 'p')},
                    {"read.txt", std::string(4'000, 'r') + "end"},
                    {"other.txt", std::string(10'000, 'o')}};
  Peer peer = Connect();
  peer.Write(ParkingPreface() + GetFrame(1, "/parked.txt") + GetFrame(3, "/parked.txt"));
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= 44'000; }));
  std::atomic<bool> answered{false};
  std::thread reader([&] {
    for (uint32_t stream = 5; !answered; stream += 2) {
      const std::string window = "\0\0\x20\0"s;
      peer.Write(Join(Frame(8, 0, 0, window), GetFrame(stream, "/read.txt"), Frame(8, 0, stream, window)));
      if (peer.ReadUntil("end").empty()) return;
    }
  });
  EXPECT_TRUE(Await([&] { return Ask("GET /other.txt").starts_with("HTTP/1.1 200"); }));
  answered = true;
  reader.join();
  EXPECT_EQ(gateway().stats().timed_out, 2u) << "and the connection stays";
}

// Property: requests of HTTP/1.1 wait while their connection lags with answers.
TEST_F(GatewayTest, AConnectionHoldsFewAnswers) {
  options_.files = {{"large.txt", std::string(1'000'000, 'l')}};
  Peer slow = Connect();
  std::string many;
  for (int i = 0; i < 100; ++i) many += "GET /large.txt HTTP/1.1\r\nhost: x\r\n\r\n";
  slow.Write(many);
  ASSERT_TRUE(Await([&] { return gateway().stats().requests >= 1; }));
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_LT(gateway().stats().held, 2'500'000u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(slow.Read().size() / 1'000'000, 1u) << i;
}

// So much of a request that the others have to wait.
constexpr uint64_t kFull = 37'500;  // of 100,000 bytes in all
std::string Unfinished() {
  return "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n" + std::string(55'000, 'x');
}

// Property: a request that never becomes whole does not stop others for its own time.
TEST_F(GatewayTest, UnfinishedRequestsMakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  Peer unfinished = Connect(), other = Connect();
  unfinished.Write(Unfinished());
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
  other.Write(kNowhere);
  EXPECT_THAT(other.Read(), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_TRUE(unfinished.Closed());
}

// Property: neither do bytes that come behind a request in flight.
TEST_F(GatewayTest, BytesBehindARequestMakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  Peer pipelined[] = {Connect(), Connect(), Connect()};
  for (const Peer& peer : pipelined) {
    peer.Write(Post("/library.Library/Checkout", R"({"title":"slow"})") + std::string(55'000, 'x'));
  }
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_TRUE(Await([&] { return gateway().stats().timed_out >= 1; }));
  library_->Release();
}

// Property: of HTTP/2 the request is refused, and the connection goes on.
TEST_F(GatewayTest, UnfinishedRequestsOfHttp2MakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  Peer peer = Connect();
  peer.Write(Join("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(4, 0, 0, {}),
                  Frame(1, 4, 1, "\x83\x86\x04\x08/nowhere\1\1x")));
  for (int i = 0; i < 3; ++i) peer.Write(Frame(0, 0, 1, std::string(16'000, 'x')));
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(peer.ReadUntil("the gateway holds too much"), HasSubstr("the gateway holds too much"));
  peer.Write(GetFrame(3, "/nowhere"));
  EXPECT_THAT(peer.ReadUntil("\"code\":5"), HasSubstr("\"code\":5"));
  EXPECT_EQ(gateway().stats().timed_out, 0u);
}

// Property: a connection that was not read for less than a tick is read again.
TEST_F(GatewayTest, ShortPausesStrandNoConnection) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  for (int i = 0; i < 20; ++i) {
    Peer one = Connect(), other = Connect();
    one.Write(Unfinished());
    ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
    other.Write(kNowhere);
    one.Abandon();
    ASSERT_THAT(other.Read(), StartsWith("HTTP/1.1 404")) << i;
  }
}

class HeldBytesTest : public curtail::internal::ControlGroupsTest {};

TEST_F(HeldBytesTest, AreHalfOfTheMemoryAtMost) {
  EXPECT_EQ(UsualHeldBytes(root()), 256u << 20);
  Groups("0::/");
  Mounts(kV2Mount);
  Write("/sys/fs/cgroup/memory.max", Join(160 << 20));
  EXPECT_EQ(UsualHeldBytes(root()), 80u << 20);
  Write("/sys/fs/cgroup/memory.max", Join(uint64_t{4} << 30));
  EXPECT_EQ(UsualHeldBytes(root()), 256u << 20);
}

}  // namespace
}  // namespace curtail::gateway
