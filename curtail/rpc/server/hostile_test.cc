// SPDX-License-Identifier: Apache-2.0
//
// Clients that hold memory, stall or go silent, against a server: each meets its limit, and a client beside them is
// served.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "curtail/base/boundary.h"
#include "curtail/rpc/server/hostile_testing.h"
#include "curtail/wire/internal/compression.h"

namespace curtail {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

TEST_P(HostileTest, ASilentConnectionIsClosed) {
  options_.handshake_timeout = milliseconds(30);
  Serve();
  for (const std::string_view said : {"", "PRI * HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"}) {
    const TimePoint begin = Now();
    Attacker attacker(address());
    attacker.Send(said);
    EXPECT_TRUE(attacker.AwaitClose()) << said;
    EXPECT_GE(Now() - begin, milliseconds(30)) << said;
  }
  EXPECT_EQ(Reached("handshake time"), 3u);
}

TEST_P(HostileTest, HalfAHeaderBlockIsNotWaitedFor) {
  options_.handshake_timeout = milliseconds(300);
  Serve();
  const std::string begun = FrameOf(1, 0, 1, "\x83");
  for (const std::string& half :
       {begun, begun + FrameOf(9, 0, 1, "\x86"), FrameOf(6, 0, 0, "12345678").substr(0, 12)}) {
    Attacker attacker = Attacker::Greeting(address());
    ASSERT_TRUE(attacker.AwaitText("\4\1"s));  // SETTINGS, acknowledged
    attacker.Send(half);
    EXPECT_TRUE(attacker.AwaitClose());
  }
  EXPECT_EQ(Reached("header time"), 3u);
  EXPECT_EQ(Reached("handshake time"), 0u);
}

TEST_P(HostileTest, FramesInPiecesAreNoStall) {
  options_.handshake_timeout = milliseconds(400);
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  const Deadline long_enough = Deadline::In(milliseconds(700));
  size_t pings = 0;
  const std::string ping = FrameOf(6, 0, 0, "12345678");
  while (!long_enough.Expired()) {
    ASSERT_TRUE(attacker.Send(ping.substr(0, 12)));
    ASSERT_TRUE(attacker.Send(ping.substr(12)));
    if (++pings % 100 == 0) {
      ASSERT_TRUE(attacker.AwaitBytes(pings * ping.size()));
    }
    if (pings > 50'000) break;
  }
  EXPECT_EQ(Reached("header time"), 0u);
}

TEST_P(HostileTest, HalfARequestEndsAtItsDeadline) {
  Serve();
  for (const bool with_data : {false, true}) {
    Attacker attacker = Attacker::Greeting(address());
    const TimePoint begin = Now();
    attacker.Send(Head(1, kEcho.path, FieldOf("grpc-timeout", "100m")));
    if (with_data) attacker.Send(DataOf(1, Prefix(1000) + "half", false));
    EXPECT_TRUE(attacker.AwaitText(StatusOf(4))) << attacker.heard();
    EXPECT_GE(Now() - begin, milliseconds(100));
  }
  EXPECT_EQ(Reached("deadline"), 2u);
  EXPECT_TRUE(Eventually([&] { return server_->Sample().open_calls == 0; }));
}

TEST_P(HostileTest, TheDefaultTimeoutHoldsForHalfARequestToo) {
  options_.default_timeout = milliseconds(50);
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  attacker.Send(Head(1, kEcho.path));
  EXPECT_TRUE(attacker.AwaitText(StatusOf(4)));
}

TEST_P(HostileTest, AReplyThatTheClientDoesNotTakeEndsAtItsDeadline) {
  Serve();
  Attacker attacker = Attacker::Greeting(address(), "\0\4\0\0\0\0"s);  // no window
  const std::string request = Text("m").SerializeAsString();
  attacker.Send(Head(1, kEcho.path, FieldOf("grpc-timeout", "100m")) +
                DataOf(1, Prefix(request.size()) + request, true));
  EXPECT_TRUE(attacker.AwaitText(StatusOf(4)));
  EXPECT_TRUE(Eventually([&] { return server_->Sample().open_calls == 0; }));
  // The connection goes on: with a window, the next call is answered.
  attacker.Send(FrameOf(4, 0, 0, "\0\4\0\1\0\0"s) + Head(3, kEcho.path) +
                DataOf(3, Prefix(request.size()) + request, true));
  EXPECT_TRUE(attacker.AwaitText(request));
}

TEST_P(HostileTest, AClientThatTakesNoBytesIsCutOff) {
  options_.write_timeout = milliseconds(100);
  Serve();
  // Windows as large as can be, a socket that holds little, and replies that nobody reads.
  Attacker attacker(address(), 4096);
  attacker.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FrameOf(4, 0, 0, "\0\4\x7f\0\0\0"s) +
                FrameOf(8, 0, 0, "\x7f\0\0\0"s));
  const std::string request = BigText(200'000);
  for (uint32_t stream = 1; stream < 40; stream += 2) {
    if (!attacker.Send(Head(stream, kEcho.path) + DataOf(stream, Prefix(request.size()) + request, true)))
      break;
  }
  EXPECT_TRUE(Eventually([&] { return Reached("stalled write") == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_->Sample().connections == 0; }));
  EXPECT_TRUE(Eventually([&] { return server_->Sample().held_bytes == 0; }));
}

TEST_P(HostileTest, AConnectionWithoutCallsIsToldGoodbye) {
  options_.idle_timeout = milliseconds(300);
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  EXPECT_TRUE(attacker.AwaitClose());
  EXPECT_THAT(attacker.heard(), HasSubstr("\7\0\0\0\0\0"s));  // GOAWAY
  EXPECT_EQ(Reached("idle time"), 1u);
}

TEST_P(HostileTest, UnfinishedRequestsOfOneConnectionAreLimited) {
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  const std::string whole = Prefix(1 << 20) + std::string(1 << 20, 'x');
  for (uint32_t i = 0; i < 40; ++i) {  // whole messages, and requests that do not end
    if (!attacker.Send(Head(1 + 2 * i, kEcho.path) + DataOf(1 + 2 * i, whole, false))) break;
  }
  EXPECT_TRUE(Eventually([&] { return Reached("held bytes") >= 7; }));
  EXPECT_LT(server_->Sample().held_bytes, 40u << 20);
  EXPECT_TRUE(attacker.AwaitText(StatusOf(8)));
}

// Requests of twenty connections wait for their rest: those that hold most end, so that the others are served.
TEST_P(HostileTest, TheBudgetSpansConnections) {
  options_.max_held_bytes = 8u << 20;
  Serve();
  Client client;
  Channel probe(&client, address());
  std::vector<Attacker> attackers;
  for (int i = 0; i < 20; ++i) {
    attackers.push_back(Attacker::Greeting(address()));
    const std::string half = Prefix(4 << 20) + std::string(1 << 20, 'x');
    attackers.back().Send(Head(1, kEcho.path) + DataOf(1, half, false));
    ASSERT_TRUE(Call(probe, kEcho, "probe").ok()) << i;
  }
  EXPECT_TRUE(Eventually([&] { return Reached("held bytes in all") + Reached("held bytes") >= 12; }));
  EXPECT_TRUE(Eventually([&] { return server_->Sample().held_bytes <= 8u << 20; }));
  ASSERT_TRUE(Call(probe, kEcho, "probe").ok());
  attackers.clear();
  EXPECT_TRUE(Eventually([&] { return server_->Sample().held_bytes < 64u << 10; }));
  EXPECT_TRUE(Call(probe, kEcho, std::string(1 << 20, 'p')).ok());
}

// Calls with metadata from HPACK's table: a few bytes each, 16 KiB of memory each.
TEST_P(HostileTest, HeaderFieldsCountToo) {
  options_.max_held_bytes = 8u << 20;
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  std::string block = "\x83\x86" + FieldOf(":path", kEcho.path) + FieldOf("content-type", "application/grpc");
  const std::string value(3900, 'v');
  std::string size = "\x7f";
  size += static_cast<char>(0x80 | ((3900 - 127) & 0x7f));
  size += static_cast<char>((3900 - 127) >> 7);
  attacker.Send(FrameOf(1, kEndHeaders, 1, block + "\x40\1k" + size + value));
  for (uint32_t stream = 3; stream < 8000; stream += 2) {
    if (!attacker.Send(FrameOf(1, kEndHeaders, stream, block + "\xbe\xbe\xbe"))) break;
  }
  EXPECT_TRUE(Eventually([&] { return Reached("held bytes in all") > 0; }));
  EXPECT_LT(server_->Sample().held_bytes, 20u << 20);
  attacker = Attacker(address());
  EXPECT_TRUE(Eventually([&] { return server_->Sample().held_bytes < 64u << 10; }));
}

// Newcomers find room: the oldest of those that say nothing goes.
TEST_P(HostileTest, TheOldestSilentConnectionMakesRoom) {
  options_.max_connections = 8;
  Serve();
  Client client;
  Channel probe(&client, address());
  ASSERT_TRUE(Call(probe, kEcho, "before").ok());
  std::vector<Attacker> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(Attacker::Greeting(address()));
    ASSERT_TRUE(silent.back().AwaitText("\4\1"s)) << i;
    ASSERT_TRUE(Call(probe, kEcho, "beside").ok()) << i;
  }
  EXPECT_TRUE(silent.front().AwaitClose());
  EXPECT_TRUE(Eventually([&] { return server_->Sample().connections <= 8; }));
  EXPECT_EQ(Reached("connections"), 13u);
  Channel newcomer(&client, address());
  EXPECT_TRUE(Call(newcomer, kEcho, "after").ok());
}

// Stands for a library that throws.
class Thrower final : public CallObserver {
 public:
  uint32_t Wants() const override { return kCallArrived; }
  uint64_t Arrived(const CallRecord& call) override {
    if (call.path == kHang.path) throw std::length_error("from a library");
    return 0;
  }
};

TEST_P(HostileTest, AnExceptionEndsItsConnectionAlone) {
  Thrower thrower;
  options_.observers = {&thrower};
  Serve();
  const uint64_t before = ContainedExceptions();
  Client client;
  Channel probe(&client, address()), thrown(&client, address()), newcomer(&client, address());
  ASSERT_TRUE(Call(probe, kEcho, "before").ok());
  EXPECT_EQ(Call(thrown, kHang, "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Call(probe, kEcho, "after").ok());
  EXPECT_TRUE(Call(newcomer, kEcho, "on a new connection").ok());
  EXPECT_EQ(ContainedExceptions(), before + 1);
}

// The attacks of the test below, each on connections of its own until the server has had enough.
using Attack = std::function<void(const std::string& address)>;

// Sends `bytes`, for streams 1, 3, 5, again and again, and reads nothing; then waits for the end of the connection if the
// server `ends` it.
Attack Flood(std::function<std::string(uint32_t stream)> bytes, int times, bool ends) {
  return [=](const std::string& address) {
    Attacker attacker = Attacker::Greeting(address);
    for (int i = 0; i < times; ++i) {
      if (!attacker.Send(bytes(1 + 2 * static_cast<uint32_t>(i)))) return;
    }
    if (ends) {
      EXPECT_TRUE(attacker.AwaitClose());
    }
  };
}

std::vector<Attack> Attacks() {
  const std::string whole = Prefix(1 << 20) + std::string(1 << 20, 'x');
  const std::string big = BigText(200'000);
  std::string settings;
  for (int i = 0; i < 1300; ++i) settings += "\0\4\0\1\0\0\0\4\0\2\0\0"s;
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += FrameOf(6, 0, 0, "12345678");
  return {
      Flood([=](uint32_t) { return FrameOf(4, 0, 0, settings); }, 200, true),
      Flood([=](uint32_t) { return pings; }, 300, false),
      Flood([](uint32_t stream) { return FrameOf(1, kEndHeaders, stream, "\x83\x86"); }, 1000, true),
      Flood([](uint32_t stream) { return Head(stream, kEcho.path) + FrameOf(3, 0, stream, "\0\0\0\x8"s); },
            40'000, false),
      Flood([=](uint32_t stream) { return Head(stream, kEcho.path) + DataOf(stream, whole, false); }, 50,
            false),
      Flood(
          [=](uint32_t stream) {
            return Head(stream, kEcho.path) + DataOf(stream, Prefix(big.size()) + big, true);
          },
          100, false),
      [=](const std::string& address) {  // half messages on twenty connections, which then leave
        std::vector<Attacker> attackers;
        for (int i = 0; i < 20; ++i) {
          attackers.push_back(Attacker::Greeting(address));
          attackers.back().Send(Head(1, kEcho.path) + DataOf(1, whole.substr(0, whole.size() - 1), false));
        }
      },
      [](const std::string& address) {  // silence
        std::vector<Attacker> attackers;
        for (int i = 0; i < 100; ++i) attackers.emplace_back(address);
      }};
}

TEST_P(HostileTest, AClientIsServedWhateverOthersDo) {
  options_.max_held_bytes = 8u << 20;
  options_.max_connections = 50;
  options_.health = true;
  Serve();
  std::atomic<bool> over{false};
  std::atomic<int> served{0};
  std::thread prober([&] {
    Client client;
    Channel probe(&client, address());
    while (!over) {
      const absl::Status status = Call(probe, kEcho, "probe", nullptr, kMaxTestWait / 2);
      EXPECT_TRUE(status.ok()) << status << " after " << served;
      if (!status.ok()) return;
      ++served;
    }
  });
  for (const Attack& attack : Attacks()) {
    attack(address());
    const int before = served;
    EXPECT_TRUE(Eventually([&] { return served > before + 1; }));
  }
  over = true;
  prober.join();
  EXPECT_TRUE(Eventually([&] { return server_->Sample().held_bytes < 64u << 10; }));
  for (const char* limit : {"settings", "malformed", "connections"}) EXPECT_GT(Reached(limit), 0u) << limit;
}

// Bytes that inflate a thousandfold: the connection rests between its shares of a thread, and its call is served.
TEST_P(HostileTest, InflatingTakesAShareOfTheTime) {
  Serve();
  Client client;
  Channel channel(&client, address(), {.encoding = wire::Encoding::kGzip});
  const TimePoint begin = Now();
  EXPECT_TRUE(Call(channel, kEcho, std::string(4 << 20, 'x')).ok());
  EXPECT_GE(Reached("inflating"), 7u);
  EXPECT_GE(Now() - begin, 7 * milliseconds(16));
  EXPECT_TRUE(Call(channel, kEcho, "behind").ok());
}

// The same of requests of some bytes that have 15.6 KB of fields copied: forty or so of them run at a stretch.
TEST_P(HostileTest, FieldsByIndexTakeAShareOfTheTime) {
  constexpr uint32_t kRequests = 500, kAtAStretch = 50;
  Serve();
  Attacker attacker = Attacker::Greeting(address());
  std::string requests = Head(1, kEcho.path, wire::Literal('\x40', "a", std::string(3900, 'v')), kEndStream);
  for (uint32_t stream = 3; stream < 3 + 2 * kRequests; stream += 2)
    requests += Head(stream, kEcho.path, "\xbe\xbe\xbe\xbe", kEndStream);
  const TimePoint begin = Now();
  attacker.Send(requests + FrameOf(6, 0, 0, "12345678"));
  Client client;
  Channel channel(&client, address());
  EXPECT_TRUE(Call(channel, kEcho, "beside").ok());
  EXPECT_TRUE(attacker.AwaitText("12345678"));
  EXPECT_GE(Reached("inflating"), uint64_t{kRequests / kAtAStretch});
  EXPECT_GE(Now() - begin, (kRequests / kAtAStretch - 1) * milliseconds(16));
}

// The more connections inflate, the less each does. Others are served.
TEST_P(HostileTest, ConnectionsShareTheTimeForInflating) {
  constexpr int kOthers = 25;
  Serve();
  std::string bomb;
  ASSERT_TRUE(wire::internal::Compress(wire::Encoding::kGzip, std::string(32 << 20, 'x'), &bomb));
  std::vector<Attacker> others;
  for (int i = 0; i < kOthers; ++i) {
    others.push_back(Attacker::Greeting(address()));
    others.back().Send(Head(1, kEcho.path, FieldOf("grpc-encoding", "gzip")) +
                       DataOf(1, wire::Framed(bomb, 1), /*end=*/true));
  }
  ASSERT_TRUE(Eventually([&] { return Reached("inflating") >= kOthers; }));
  Client client;
  Channel channel(&client, address()), compressed(&client, address(), {.encoding = wire::Encoding::kGzip});
  EXPECT_TRUE(Call(channel, kEcho, "beside").ok());
  const TimePoint begin = Now();
  EXPECT_TRUE(Call(compressed, kEcho, std::string(1 << 20, 'x'), nullptr, kMaxTestWait).ok());
  EXPECT_GE(Now() - begin, 2 * kOthers * milliseconds(4)) << "a connection alone takes 32 ms";
}

INSTANTIATE_TEST_SUITE_P(Models, HostileTest, testing::Values("SIB1", "SDB1-2", "FIB1", "auto"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace curtail
