// SPDX-License-Identifier: Apache-2.0
//
// Compressed messages, alone and between sessions.
#include "curtail/wire/internal/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "curtail/wire/raw_peer_testing.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using internal::Compress;
using internal::Inflate;
using internal::Inflated;
using testing::ElementsAre;

// zlib's opinion; empty: no whole stream, or longer than `limit`.
std::optional<std::string> ByZlib(std::string_view bytes, bool gzip, size_t limit) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + (gzip ? 16 : 0)), Z_OK);
  std::string out(limit, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool ended = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
  out.resize(stream.total_out);
  inflateEnd(&stream);
  if (!ended) return std::nullopt;
  return out;
}

class CompressionTest : public testing::TestWithParam<Encoding> {
 protected:
  static std::string Compressed(std::string_view message) {
    std::string out;
    EXPECT_TRUE(Compress(GetParam(), message, &out));
    return out;
  }
  static RawPeer::Fields Request() {
    RawPeer::Fields fields = RawPeer::GrpcRequest();
    fields.emplace_back("grpc-encoding", std::string(internal::EncodingName(GetParam())));
    return fields;
  }
};
constexpr Encoding kEncodings[] = {Encoding::kGzip, Encoding::kDeflate,
#ifdef CURTAIL_ZSTD
                                   Encoding::kZstd
#endif
};
INSTANTIATE_TEST_SUITE_P(Encodings, CompressionTest, testing::ValuesIn(kEncodings),
                         [](const auto& info) { return std::string(internal::EncodingName(info.param)); });

TEST_P(CompressionTest, InflatesWhatItCompressed) {
  for (const size_t size : {100u, 4095u, 4096u, 4097u, 70000u, 3u << 20}) {
    std::string message(size, '\0');
    for (size_t i = 0; i < size; ++i) message[i] = static_cast<char>(i / 7 % 50);
    std::string out;
    EXPECT_EQ(Inflate(GetParam(), Compressed(message), size, &out), Inflated::kOk) << size;
    EXPECT_EQ(out, message);
  }
}

TEST_P(CompressionTest, WhatDoesNotShrinkIsNotCompressed) {
  std::mt19937 rng(TestSeed());
  std::string noise(5000, '\0');
  for (char& c : noise) c = static_cast<char>(rng());
  std::string out;
  EXPECT_FALSE(Compress(GetParam(), noise, &out));
  for (const char* text : {"", "a", "ab"}) EXPECT_FALSE(Compress(GetParam(), text, &out));
}

// A bomb costs no more than the limit.
TEST_P(CompressionTest, StopsInflatingAtTheLimit) {
  const std::string bomb = Compressed(std::string(64 << 20, '\0'));
  EXPECT_LT(bomb.size(), 100'000u);
  std::string out;
  EXPECT_EQ(Inflate(GetParam(), bomb, 1000, &out), Inflated::kTooLong);
  EXPECT_EQ(out.capacity(), std::string().capacity());
  const std::string exact = Compressed(std::string(1000, 'x'));
  EXPECT_EQ(Inflate(GetParam(), exact, 1000, &out), Inflated::kOk);
  EXPECT_EQ(Inflate(GetParam(), exact, 999, &out), Inflated::kTooLong);
}

TEST_P(CompressionTest, RefusesBytesThatAreNoWholeStream) {
  const std::string whole = Compressed(std::string(1000, 'x'));
  std::string out;
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_EQ(Inflate(GetParam(), whole.substr(0, cut), 2000, &out), Inflated::kMalformed) << cut;
  }
  EXPECT_EQ(Inflate(GetParam(), whole + "x", 2000, &out), Inflated::kMalformed);
  EXPECT_EQ(Inflate(GetParam(), "not compressed at all", 2000, &out), Inflated::kMalformed);
}

// Streams with a few bytes changed, cut out or added. Of what zlib refuses, only what is the message all the same is taken:
// reserved flags, and code lengths that nothing uses.
TEST(Compression, AgreesWithZlibOnDamagedStreams) {
  std::mt19937 rng(TestSeed());
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng); };
  const size_t kLimit = 8000;
  int whole = 0;
  for (int round = 0; round < Repeats(3'000, 1'000'000); ++round) {
    const bool gzip = round % 2 == 0;
    std::string message(2 + below(5000), 'x');
    for (char& c : message) c = static_cast<char>('a' + below(1 + static_cast<size_t>(round) % 9));
    std::string bytes, out;
    if (!Compress(gzip ? Encoding::kGzip : Encoding::kDeflate, message, &bytes)) continue;
    for (size_t changes = below(3); changes > 0; --changes) {
      const size_t at = below(bytes.size());
      if (below(8) == 0) {
        bytes.erase(at, 1 + below(3));
      } else if (below(8) == 0) {
        bytes.insert(at, 1 + below(20), static_cast<char>(rng()));
      } else {
        bytes[at] = static_cast<char>(rng());
      }
      if (bytes.empty()) break;
    }
    const std::optional<std::string> expected = ByZlib(bytes, gzip, kLimit);
    const Inflated inflated = Inflate(gzip ? Encoding::kGzip : Encoding::kDeflate, bytes, kLimit, &out);
    if (expected) {
      ++whole;
      ASSERT_EQ(inflated, Inflated::kOk) << testing::PrintToString(bytes);
      ASSERT_EQ(out, *expected);
    } else if (inflated == Inflated::kOk) {
      ASSERT_EQ(out, message) << testing::PrintToString(bytes);
    }
  }
  EXPECT_GT(whole, 500);
}

// Short messages and long ones, some of which stand in the queue, come back as they were; fewer bytes travel.
TEST_P(CompressionTest, SessionsAnswerInTheEncodingOfTheRequest) {
  Pair pair;
  pair.ServeEcho();
  RequestHead head;
  head.path = "/a.B/C";
  head.encoding = GetParam();
  std::map<StreamId, std::string> sent;
  for (const size_t size : {0u, 10u, 127u, 128u, 20'000u, 3u << 20}) {
    std::string message(size, 'm');
    const auto id = pair.client.StartUnaryCall(head, std::string(message), nullptr);
    ASSERT_TRUE(id.ok());
    sent[*id] = std::move(message);
  }
  EXPECT_LT(pair.client.queued_bytes(), 40'000u);
  ASSERT_TRUE(pair.Pump(1000).ok());
  for (const auto& [id, message] : sent) {
    EXPECT_TRUE(pair.client_events.calls[id].status.ok()) << pair.client_events.calls[id].status;
    EXPECT_THAT(pair.client_events.calls[id].messages, ElementsAre(message));
  }
}

TEST_P(CompressionTest, ServersTakeCompressedAndPlainMessagesOfOneCall) {
  Recorder events;
  Session session(Role::kServer, {}, &events);
  events.on_message = [&](StreamId id, const std::string& m) { session.SendMessage(id, std::string(m)); };
  events.on_request_end = [&](StreamId id) { session.EndCall(id, absl::OkStatus()); };
  RawPeer peer(Role::kClient);
  const std::string message(1000, 'x');
  const int32_t id = peer.Request(Request(), Framed(Compressed(message), 1) + Framed("plain"));
  ASSERT_TRUE(peer.Pump(&session).ok());
  EXPECT_THAT(events.calls[id].messages, ElementsAre(message, "plain"));
  EXPECT_EQ(peer.streams[id].Field("grpc-encoding"), internal::EncodingName(GetParam()));
  EXPECT_EQ(peer.streams[id].data, Framed(Compressed(message), 1) + Framed("plain"));
}

TEST_P(CompressionTest, TheLimitHoldsForTheInflatedMessage) {
  SessionOptions options;
  options.max_message_bytes = 10'000;
  Recorder events;
  Session session(Role::kServer, options, &events);
  RawPeer peer(Role::kClient);
  const auto status_of = [&](const std::string& body) {
    const int32_t id = peer.Request(Request(), body);
    EXPECT_TRUE(peer.Pump(&session).ok());
    return std::string(peer.streams[id].Field("grpc-status"));
  };
  EXPECT_EQ(status_of(Framed(Compressed(std::string(10'001, 'x')), 1)), "8");
  EXPECT_EQ(status_of(Framed("no stream of zlib", 1)), "13");
  EXPECT_EQ(status_of(Framed("", 1)), "13");
  EXPECT_TRUE(events.calls[1].messages.empty());
}

// Steps of any size make the same message, and the limit holds in each.
TEST_P(CompressionTest, InflatesInSteps) {
  const std::string message(300'000, 'x');
  const std::string bytes = Compressed(message);
  for (const size_t step : {1u << 10, 4095u, 4096u, 300'000u}) {
    std::string out;
    const auto inflater = internal::MakeInflater(GetParam(), bytes, message.size(), &out);
    Inflated result = Inflated::kMore;
    for (size_t steps = 1; result == Inflated::kMore; ++steps) {
      result = inflater->Step(step);
      ASSERT_LE(inflater->done(), steps * step);
    }
    EXPECT_EQ(result, Inflated::kOk) << step;
    EXPECT_EQ(out, message);
    const auto limited = internal::MakeInflater(GetParam(), bytes, message.size() - 1, &out);
    while ((result = limited->Step(step)) == Inflated::kMore) continue;
    EXPECT_EQ(result, Inflated::kTooLong);
  }
}

// A server that may inflate so much at a stretch, and a client's calls: long messages, which stall the session, and
// what comes behind them.
class StalledSessionTest : public CompressionTest {
 protected:
  StalledSessionTest() {
    options_.inflate_bytes = 100'000;
    session_.emplace(Role::kServer, options_, &events_);
    for (const std::string& content :
         {Framed(Compressed(long_), 1) + Framed("behind"), Framed("other"), Framed(Compressed(long_), 1)}) {
      ids_.push_back(peer_.Request(Request(), content));
    }
    EXPECT_TRUE(peer_.Pump(&*session_).ok());
    EXPECT_TRUE(session_->stalled());
    EXPECT_TRUE(events_.calls[ids_[0]].messages.empty());
    EXPECT_FALSE(session_->input_unfinished());
    EXPECT_GT(session_->memory_bytes(), 10'000u);
  }
  // The times that it takes until the session has taken all.
  int GoOn() {
    int times = 0;
    for (; session_->stalled(); ++times) EXPECT_TRUE(session_->GoOn().ok());
    EXPECT_LT(session_->memory_bytes(), 10'000u);
    return times;
  }

  const std::string long_ = std::string(1'000'000, 'm');
  SessionOptions options_;
  Recorder events_;
  std::optional<Session> session_;
  RawPeer peer_{Role::kClient};
  std::vector<int32_t> ids_;
};
INSTANTIATE_TEST_SUITE_P(Encodings, StalledSessionTest, testing::ValuesIn(kEncodings),
                         [](const auto& info) { return std::string(internal::EncodingName(info.param)); });

TEST_P(StalledSessionTest, GoesOnInOrder) {
  const int times = GoOn();
  EXPECT_GE(times, 18);
  EXPECT_LE(times, 21);
  EXPECT_THAT(events_.calls[ids_[0]].messages, ElementsAre(long_, "behind"));
  EXPECT_THAT(events_.calls[ids_[1]].messages, ElementsAre("other"));
  EXPECT_THAT(events_.calls[ids_[2]].messages, ElementsAre(long_));
  for (const int32_t id : ids_) EXPECT_TRUE(events_.calls[id].request_ended);
}

TEST_P(StalledSessionTest, ACallThatEndsMeanwhileIsSkipped) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(session_->GoOn().ok());
  EXPECT_GT(session_->memory_bytes(), 200'000u);
  session_->FailCall(ids_[0], absl::DeadlineExceededError("late"));
  EXPECT_LT(session_->memory_bytes(), 50'000u);
  GoOn();
  EXPECT_TRUE(events_.calls[ids_[0]].messages.empty());
  EXPECT_THAT(events_.calls[ids_[1]].messages, ElementsAre("other"));
  EXPECT_THAT(events_.calls[ids_[2]].messages, ElementsAre(long_));
  EXPECT_EQ(events_.late_events, 0);
}

TEST_P(StalledSessionTest, TheEndOfTheConnectionEndsIt) {
  session_->Abort(absl::UnavailableError("gone"));
  EXPECT_FALSE(session_->GoOn().ok());
  EXPECT_TRUE(events_.calls[ids_[0]].messages.empty());
}

// A refused call can be made again although its message was compressed and queued.
TEST_P(CompressionTest, TheCallersMessageIsUntouched) {
  Pair pair;
  RequestHead head;
  head.path = "/a.B/C";
  head.encoding = GetParam();
  std::string message(1 << 20, 'm');
  ASSERT_TRUE(pair.client.StartUnaryCall(head, std::move(message), nullptr).ok());
  EXPECT_EQ(message, std::string(1 << 20, 'm'));  // NOLINT(bugprone-use-after-move)
}

#ifdef CURTAIL_ZSTD
// A frame of a few bytes that asks for a window of 2 GiB, and one that claims to hold an exabyte.
TEST(ZstdCompression, AFrameDecidesOnNoMemory) {
  const std::string window("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9);
  const std::string size("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x10\x01\x00\x00", 16);
  for (const std::string& frame : {window, size}) {
    std::string out;
    EXPECT_EQ(Inflate(Encoding::kZstd, frame, 1000, &out), Inflated::kMalformed);
    EXPECT_EQ(out.capacity(), std::string().capacity());
  }
}
#else
TEST(ZstdCompression, WithoutItMessagesTravelAsTheyAre) {
  std::string out;
  EXPECT_FALSE(Compress(Encoding::kZstd, std::string(1000, 'x'), &out));
  EXPECT_EQ(internal::EncodingName(Encoding::kZstd), "identity");
  EXPECT_FALSE(internal::EncodingOf("zstd").has_value());
  EXPECT_EQ(internal::EncodingOf("identity"), Encoding::kIdentity);
}
#endif

}  // namespace
}  // namespace curtail::wire
