// SPDX-License-Identifier: Apache-2.0
//
// A Session, mostly a server's, against peers that send what is allowed, far too often. bench/wire/hostile_bench.cc has
// the costs.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using internal::kEndHeaders;
using internal::kEndStream;
using std::string_literals::operator""s;

// POST, http, and a path and content type that nothing puts into the table.
std::string Fields() {
  return "\x83\x86" + Literal('\0', ":path", "/a.B/C") + Literal('\0', "content-type", "application/grpc");
}

// A server that answers a request when it ends, and counts the limits that its peer reaches.
struct Server : Recorder {
  explicit Server(const SessionOptions& options = {}) : session(Role::kServer, options, this) {
    on_request_end = [this](StreamId id) { session.EndCall(id, absl::OkStatus()); };
    EXPECT_TRUE(session.Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "")).ok());
  }
  void OnLimit(Limit limit) override { ++limits[limit]; }

  // How many of `bytes` the session takes, one after the other, until it ends the connection; `most` if it does not.
  int Taken(std::string_view bytes, int most) {
    std::string out;
    for (int i = 0; i < most; ++i) {
      const bool taken = session.Receive(bytes).ok();
      out.clear();
      while (session.Pull(&out)) continue;
      if (!taken) {
        last = out;
        return i;
      }
    }
    return most;
  }
  // The same for requests, each on a stream of its own: `block` is its header block, `then` comes after it.
  int TakenRequests(const std::string& block, uint8_t flags, int most,
                    const std::function<std::string(uint32_t)>& then = nullptr) {
    for (int i = 0; i < most; ++i, stream += 2) {
      std::string bytes = Frame(1, flags, stream, block);
      if (then) bytes += then(stream);
      if (Taken(bytes, 1) == 0) return i;
    }
    return most;
  }

  std::map<Limit, int> limits;
  std::string last;  // what it said at the end
  uint32_t stream = 1;
  Session session;
};

bool IsCalm(const std::string& goaway, std::string_view why) {
  return goaway.ends_with("\0\0\0\xb"s.append(why));
}

TEST(Flood, SettingsAreLimitedAndTheirRepetitionsCount) {
  Server server;
  const std::string once = Frame(4, 0, 0, "\0\4\0\1\0\0\0\4\0\2\0\0"s);
  EXPECT_EQ(server.Taken(once, 1000), 109);  // the first was the client's own
  EXPECT_EQ(server.limits[Limit::kSettings], 1);
  EXPECT_TRUE(IsCalm(server.last, "too many settings"));
}

TEST(Flood, SettingsMayGoOnAtALowRate) {
  Server server;
  EXPECT_EQ(server.Taken(Frame(4, 0, 0, ""), 99), 99);
  for (int second = 0; second < 100; ++second) {
    server.time += std::chrono::seconds(1);
    ASSERT_EQ(server.Taken(Frame(4, 0, 0, ""), 10), 10) << second;
  }
  EXPECT_TRUE(server.limits.empty());
}

TEST(Flood, FramesThatCarryNothingAreLimited) {
  const std::map<std::string_view, std::string> frames = {{"PING", Frame(6, 0, 0, "12345678")},
                                                          {"PRIORITY", Frame(2, 0, 1, "\0\0\0\0\1"s)},
                                                          {"WINDOW_UPDATE", Frame(8, 0, 0, "\0\0\0\1"s)},
                                                          {"DATA", Frame(0, 0, 1, "")},
                                                          {"unknown", Frame(77, 0, 0, "")}};
  for (const auto& [name, frame] : frames) {
    Server server;
    ASSERT_EQ(server.TakenRequests(Fields(), kEndHeaders, 1), 1);
    EXPECT_EQ(server.Taken(frame, 300'000), 200'000) << name;  // 100,000 a second, and as many at first
    EXPECT_EQ(server.limits[Limit::kEmptyFrames], 1) << name;
    EXPECT_TRUE(IsCalm(server.last, "too many empty frames")) << name;
  }
}

TEST(Flood, MalformedRequestsEndTheConnectionAfterSomeHundred) {
  const std::map<std::string_view, std::string> blocks = {
      {"no path", "\x83\x86"},
      {"a bad name", Fields() + Literal('\0', "Upper", "")},
      {"a bad timeout", Fields() + Literal('\0', "grpc-timeout", "soon")},
      {"no base64", Fields() + Literal('\0', "x-bin", "!")}};
  for (const auto& [name, block] : blocks) {
    Server server;
    EXPECT_EQ(server.TakenRequests(block, kEndHeaders | kEndStream, 1000), 220) << name;
    EXPECT_EQ(server.limits[Limit::kMalformed], 1) << name;
    EXPECT_TRUE(IsCalm(server.last, "too many malformed")) << name;
  }
}

// "MadeYouReset": the peer does not reset streams, it makes the server do so.
TEST(Flood, ResetsThatThePeerProvokesAreLimitedToo) {
  const std::map<std::string_view, std::function<std::string(uint32_t)>> ways = {
      {"a window by nothing", [](uint32_t id) { return Frame(8, 0, id, "\0\0\0\0"s); }},
      {"a window too large", [](uint32_t id) { return Frame(8, 0, id, "\x7f\xff\xff\xff"); }},
      {"DATA after the end",
       [](uint32_t id) { return Frame(0, kEndStream, id, "") + Frame(0, 0, id, "x"); }}};
  for (const auto& [name, way] : ways) {
    Server server;
    server.on_request_end = nullptr;  // they run
    EXPECT_EQ(server.TakenRequests(Fields(), kEndHeaders, 1000, way), 220) << name;
    EXPECT_EQ(server.limits[Limit::kMalformed], 1) << name;
    EXPECT_EQ(server.session.open_streams(), 0u) << name;
  }
}

TEST(Flood, RefusedStreamsCountAsResets) {
  Server server;
  ASSERT_EQ(server.TakenRequests(Fields(), kEndHeaders, 4096), 4096);
  EXPECT_EQ(server.TakenRequests(Fields(), kEndHeaders, 50'000), 30'000);
  EXPECT_EQ(server.limits[Limit::kStreams], 30'001);
  EXPECT_EQ(server.limits[Limit::kResets], 1);
}

TEST(Flood, ANewWindowReachesEveryStreamAndBlockedMessagesGoOn) {
  Server server;
  ASSERT_EQ(server.Taken(Frame(4, 0, 0, "\0\4\0\0\0\0"s), 1), 1);  // no window
  for (int i = 0; i < 3; ++i) {
    const auto id = static_cast<StreamId>(server.stream);
    ASSERT_EQ(server.TakenRequests(Fields(), kEndHeaders, 1), 1);
    server.session.SendMessage(id, "twelve bytes");
  }
  std::string out;
  EXPECT_FALSE(server.session.Pull(&out));
  EXPECT_EQ(server.session.queued_bytes(), 3 * 17u);
  // Up and down again in one frame: nothing changes.
  ASSERT_TRUE(server.session.Receive(Frame(4, 0, 0, "\0\4\0\0\0\x20\0\4\0\0\0\0"s)).ok());
  server.session.Pull(&out);
  EXPECT_EQ(server.session.queued_bytes(), 3 * 17u);
  // One stream's own credit, then a window for all, which is made smaller before anything is written.
  ASSERT_TRUE(server.session.Receive(Frame(8, 0, 3, "\0\0\0\x11"s)).ok());
  server.session.Pull(&out);
  EXPECT_EQ(server.session.queued_bytes(), 2 * 17u);
  ASSERT_TRUE(
      server.session.Receive(Frame(4, 0, 0, "\0\4\0\0\0\x20"s) + Frame(4, 0, 0, "\0\4\0\0\0\5"s)).ok());
  while (server.session.Pull(&out)) continue;
  EXPECT_EQ(server.session.queued_bytes(), 2 * 12u);
  ASSERT_TRUE(server.session.Receive(Frame(4, 0, 0, "\0\4\0\0\0\x11"s)).ok());
  while (server.session.Pull(&out)) continue;
  EXPECT_EQ(server.session.queued_bytes(), 0u);
}

TEST(Flood, AWindowThatOverflowsOneStreamEndsTheConnection) {
  for (const bool ended : {false, true}) {
    Server server;
    ASSERT_EQ(server.TakenRequests(Fields(), kEndHeaders, 2), 2);
    ASSERT_EQ(server.Taken(Frame(8, 0, 1, "\x7f\xff\0\0"s), 1), 1);
    if (ended) {
      ASSERT_EQ(server.Taken(Frame(3, 0, 1, "\0\0\0\x8"s), 1), 1);
    }
    EXPECT_EQ(server.Taken(Frame(4, 0, 0, "\0\4\x7f\0\0\0"s), 1), ended ? 1 : 0);
  }
}

// Three bytes that have a long name copied.
TEST(Flood, ABlockThatCopiesALongNameForeverIsRefused) {
  Server server;
  ASSERT_EQ(server.TakenRequests(Fields() + Literal('\x40', std::string(3900, 'n'), ""), kEndHeaders, 1), 1);
  std::string copies;
  for (int i = 0; i < 16; ++i) copies += "\x7e\1v";
  EXPECT_EQ(server.TakenRequests(Fields() + copies, kEndHeaders, 1), 1);
  EXPECT_EQ(server.TakenRequests(Fields() + copies + "\x7e\1v", kEndHeaders, 1), 0);
}

// So many requests with these fields, each on a stream of its own.
std::string Requests(const std::string& block, uint32_t first_stream, uint32_t count) {
  std::string out;
  for (uint32_t i = 0; i < count; ++i) out += Frame(1, kEndHeaders | kEndStream, first_stream + 2 * i, block);
  return out;
}

// Four bytes that have 15.6 KB copied: the session rests behind some requests, and takes each in its turn.
TEST(Flood, CopiesOfTheTableAreTakenAFewAtATime) {
  constexpr uint32_t kRequests = 100;
  constexpr size_t kCopies = 4 * 3909, kShare = 80'000;
  const std::string value(3900, 'v');
  const std::string bytes = Requests(Fields() + Literal('\x40', "a", value), 1, 1) +
                            Requests(Fields() + "\xbe\xbe\xbe\xbe", 3, kRequests) +
                            Frame(6, 0, 0, "12345678");
  for (const size_t piece : {size_t{1}, size_t{100}, bytes.size()}) {
    SessionOptions options;
    options.inflate_bytes = kShare;
    Server server(options);
    for (size_t at = 0; at < bytes.size(); at += piece)
      ASSERT_TRUE(server.session.Receive(bytes.substr(at, piece)).ok());
    EXPECT_EQ(server.calls.size(), 2u);  // a new connection has an eighth
    int rests = 0;
    for (; server.session.stalled(); ++rests) {
      const size_t before = server.calls.size();
      ASSERT_TRUE(server.session.GoOn().ok());
      EXPECT_LE((server.calls.size() - before - 1) * (kCopies / 2), kShare);
    }
    EXPECT_EQ(server.limits[Limit::kInflating], rests);
    EXPECT_GE(rests, 10);
    ASSERT_EQ(server.calls.size(), 1 + kRequests);
    for (const auto& [id, call] : server.calls) {
      EXPECT_EQ(call.request.metadata.size(), id == 1 ? 1u : 4u);
      EXPECT_EQ(call.request.metadata.Find("a"), value);
      EXPECT_TRUE(call.request_ended);
    }
    EXPECT_FALSE(server.session.input_unfinished());
  }
}

// Only a peer that names an entry twice gets more than the table has, or than it sends.
TEST(Flood, WhoeverNamesEachEntryOnceGoesOn) {
  constexpr uint32_t kRequests = 1000;
  const std::string value(950, 'v');
  std::string entries;
  for (const char* name : {"a", "b", "c", "d"}) entries += Literal('\x40', name, value);
  SessionOptions options;
  options.inflate_bytes = 8;
  Server server(options);
  const std::string literal = Literal('\0', "long", std::string(15'000, 'v'));
  EXPECT_TRUE(server.session
                  .Receive(Requests(Fields() + entries, 1, 1) +
                           Requests(Fields() + "\xbe\xbf\xc0\xc1", 3, kRequests) +
                           Requests(Fields() + literal, 3 + 2 * kRequests, kRequests))
                  .ok());
  EXPECT_FALSE(server.session.stalled());
  EXPECT_EQ(server.calls.size(), 1 + 2 * kRequests);
  EXPECT_EQ(server.calls[3].request.metadata.size(), 4u);
  EXPECT_EQ(server.limits[Limit::kInflating], 0);
}

TEST(Flood, ABadNameStaysBadWhoeverRefersToIt) {
  Server server;
  ASSERT_EQ(server.TakenRequests(Fields() + Literal('\x40', "Upper", "v"), kEndHeaders, 1), 1);
  EXPECT_EQ(server.TakenRequests(Fields() + "\xbe", kEndHeaders, 1), 1);         // the pair
  EXPECT_EQ(server.TakenRequests(Fields() + "\x0f\x2f\1w", kEndHeaders, 1), 1);  // its name
  EXPECT_EQ(server.TakenRequests(Fields() + "\x7e\1w\xbe", kEndHeaders, 1), 1);  // inserted again
  EXPECT_TRUE(server.calls.empty());
  // A good name with a value that is not: another value makes it good.
  ASSERT_EQ(server.TakenRequests(Fields() + Literal('\x40', "good", "\n"), kEndHeaders, 1), 1);
  EXPECT_TRUE(server.calls.empty());
  EXPECT_EQ(server.TakenRequests(Fields() + "\x0f\x2f\1w", kEndHeaders, 1), 1);
  EXPECT_EQ(server.calls.size(), 1u);
}

TEST(Flood, JoinedBinaryValuesAreLimited) {
  Server server;
  ASSERT_EQ(server.TakenRequests(Fields() + Literal('\0', "x-bin", std::string(16, ',')), kEndHeaders, 1), 1);
  EXPECT_EQ(server.calls[1].request.metadata.size(), 17u);
  ASSERT_EQ(server.TakenRequests(Fields() + Literal('\0', "x-bin", std::string(17, ',')), kEndHeaders, 1), 1);
  EXPECT_EQ(server.calls.size(), 1u);
  EXPECT_EQ(server.limits[Limit::kHeaderFields], 1);
}

Nanos ThreadCpuTime() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

std::string Goaway(StreamId last) {
  std::string payload;
  for (const int shift : {24, 16, 8, 0}) payload += static_cast<char>(last >> shift);
  return Frame(7, 0, 0, payload + std::string(4, '\0'));
}

// Property: a GOAWAY costs its client as much as the streams that it refuses, however many are open.
TEST(Flood, GoawaysOfAServerCostLittleWithManyStreams) {
  constexpr int kStreams = 20'000;
  constexpr int kGoaways = 10'000;
  Recorder events;
  Session client(Role::kClient, {}, &events);
  ASSERT_TRUE(client.Receive(Frame(4, 0, 0, "")).ok());
  std::vector<StreamId> ids;
  for (int i = 0; i < kStreams; ++i) ids.push_back(client.StartUnaryCall(Head(), "m", nullptr).value());
  std::string out;
  while (client.Pull(&out)) out.clear();
  int refused = 0;
  events.on_end = [&](StreamId id) {
    ++refused;
    EXPECT_EQ(events.calls[id].status.code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(events.calls[id].unprocessed);
  };
  const Nanos begin = ThreadCpuTime();
  for (int i = 0; i < kGoaways; ++i) ASSERT_TRUE(client.Receive(Goaway(ids.back())).ok());
  EXPECT_EQ(refused, 0);
  for (int i = 1; i <= kGoaways; ++i) {
    ASSERT_TRUE(client.Receive(Goaway(ids[static_cast<size_t>(kStreams - 1 - i)])).ok());
    ASSERT_EQ(refused, i);
  }
  ASSERT_TRUE(client.Receive(Goaway(ids.back())).ok()) << "the last one may not rise";
  EXPECT_EQ(refused, kGoaways);
  EXPECT_LT(ThreadCpuTime() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace curtail::wire
