// SPDX-License-Identifier: Apache-2.0
//
// The codec of HTTP/2 against a server's end of nghttp2 that says whatever a test wants.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"
#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/http/http_client_codec.h"
#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/raw_peer_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using testing::HasSubstr;
using wire::Block;
using wire::Frame;
using wire::HeaderList;
using wire::RawPeer;
using wire::internal::kEndHeaders;
using wire::internal::kEndStream;

constexpr uint8_t kData = 0, kHeaders = 1, kPushPromise = 5, kGoaway = 7, kContinuation = 9;
const std::string kServerHello = Frame(/*SETTINGS*/ 4, 0, 0, "");

std::string Reply(const HeaderList& fields, uint8_t flags = kEndHeaders | kEndStream, uint32_t stream = 1) {
  return Frame(kHeaders, flags, stream, Block(fields));
}
std::string Body(std::string_view body, uint8_t flags = kEndStream) { return Frame(kData, flags, 1, body); }

class Http2CodecTest : public testing::Test {
 protected:
  HttpExchange& Ask(std::string body = "") {
    HttpExchange& exchange = *exchanges_.emplace_back(std::make_unique<HttpExchange>());
    exchange.endpoint = &endpoint_;
    exchange.body = std::move(body);
    EXPECT_TRUE(codec_->CanStart());
    codec_->Start(&exchange);
    return exchange;
  }
  // Moves bytes both ways until both ends are silent.
  void Pump() {
    for (bool moved = true; moved && status_.ok();) {
      std::string out;
      codec_->Pull(&out, 1u << 24);
      nghttp2_session_mem_recv(peer_.h2, reinterpret_cast<const uint8_t*>(out.data()), out.size());
      const std::string in = peer_.Output();
      if (!in.empty()) status_ = codec_->Receive(in, &ended_);
      moved = !out.empty() || !in.empty();
    }
  }
  bool Over(const HttpExchange& exchange) const {
    return std::count(ended_.begin(), ended_.end(), &exchange) == 1;
  }
  void Refuse(int32_t last, uint32_t code) {
    nghttp2_submit_goaway(peer_.h2, NGHTTP2_FLAG_NONE, last, code, nullptr, 0);
  }

  const HttpEndpoint endpoint_{"PUT", "http", "host:80", "/path?q"};
  const std::unique_ptr<HttpCodec> codec_ = MakeHttp2Codec(HttpLimits{.max_body_bytes = 1000});
  RawPeer peer_{wire::Role::kServer};
  std::vector<std::unique_ptr<HttpExchange>> exchanges_;
  HttpCodec::Ended ended_;
  absl::Status status_;
};

TEST_F(Http2CodecTest, SendsARequestAndReadsItsReply) {
  HttpExchange& exchange = *exchanges_.emplace_back(std::make_unique<HttpExchange>());
  exchange.endpoint = &endpoint_;
  exchange.headers.Add("x-id", "7");
  exchange.headers.Add("Host", "other");
  exchange.body = std::string(100'000, 'b');  // more than a window
  codec_->Start(&exchange);
  Pump();
  const RawPeer::Stream& stream = peer_.streams.at(1);
  EXPECT_EQ(stream.Field(":method"), "PUT");
  EXPECT_EQ(stream.Field(":path"), "/path?q");
  EXPECT_EQ(stream.Field(":scheme"), "http");
  EXPECT_EQ(stream.Field(":authority"), "other");
  EXPECT_EQ(stream.Field("host"), "");
  EXPECT_EQ(stream.Field("x-id"), "7");
  EXPECT_EQ(stream.Field("content-length"), "100000");
  EXPECT_EQ(stream.data.size(), 100'000u);
  peer_.Reply(1, {{":status", "201"}}, "hello", {{"x-trailer", "1"}});
  Pump();
  ASSERT_TRUE(Over(exchange));
  EXPECT_TRUE(exchange.error.ok()) << exchange.error;
  EXPECT_EQ(exchange.status, 201);
  EXPECT_EQ(exchange.reply, "hello");
}

TEST_F(Http2CodecTest, EndsEachOfManyRequestsForItself) {
  HttpExchange& first = Ask("one");
  HttpExchange& second = Ask();
  HttpExchange& third = Ask("three");
  Pump();
  peer_.Reply(5, {{":status", "503"}}, "busy", {});
  peer_.ResetStream(3, NGHTTP2_INTERNAL_ERROR);
  Pump();
  EXPECT_FALSE(Over(first));
  ASSERT_TRUE(Over(second) && Over(third));
  EXPECT_THAT(Message(second.error), HasSubstr("INTERNAL_ERROR"));
  EXPECT_FALSE(second.unprocessed);
  EXPECT_EQ(third.status, 503);
  EXPECT_TRUE(third.error.ok());
}

TEST_F(Http2CodecTest, SaysWhichRequestsTheServerHasNotSeen) {
  HttpExchange& refused = Ask();
  HttpExchange& late = Ask();
  Pump();
  peer_.ResetStream(1, NGHTTP2_REFUSED_STREAM);
  Refuse(1, NGHTTP2_NO_ERROR);
  Pump();
  ASSERT_TRUE(Over(refused) && Over(late));
  EXPECT_TRUE(refused.unprocessed);
  EXPECT_TRUE(late.unprocessed);
  EXPECT_FALSE(codec_->CanStart());
  EXPECT_TRUE(codec_->Finished());
}

TEST_F(Http2CodecTest, FinishesWhatWasBegunBeforeAGoodbye) {
  HttpExchange& exchange = Ask();
  Pump();
  Refuse(1, NGHTTP2_NO_ERROR);
  Pump();
  EXPECT_FALSE(codec_->CanStart());
  EXPECT_FALSE(codec_->Finished());
  peer_.ReplyHeadersOnly(1, {{":status", "200"}});
  Pump();
  EXPECT_TRUE(Over(exchange));
  EXPECT_EQ(exchange.status, 200);
}

TEST_F(Http2CodecTest, ForgetsARequestThatIsGivenUp) {
  HttpExchange& before = Ask(std::string(100'000, 'x'));
  EXPECT_TRUE(codec_->Cancel(&before)) << "before it was sent";
  before.body.clear();
  HttpExchange& exchange = Ask(std::string(100'000, 'x'));
  Pump();
  EXPECT_TRUE(codec_->Cancel(&exchange));
  exchange.body.clear();
  Pump();
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(peer_.streams.at(3).reset, uint32_t{NGHTTP2_CANCEL});
  HttpExchange& next = Ask();
  Pump();
  peer_.ReplyHeadersOnly(5, {{":status", "204"}});
  Pump();
  EXPECT_TRUE(Over(next));
}

TEST_F(Http2CodecTest, HoldsServersToItsLimits) {
  HttpExchange& body = Ask();
  HttpExchange& head = Ask();
  HttpExchange& hints = Ask();
  Pump();
  peer_.Reply(1, {{":status", "200"}}, std::string(1001, 'x'), {});
  Pump();
  // A long field that the others repeat: a short block.
  wire::internal::HpackEncoder encoder;
  std::string block;
  encoder.Encode(":status", "200", wire::internal::HpackEncoder::Indexing::kIndex, &block);
  const std::string value(3500, 'x');
  for (int i = 0; i < 20; ++i)
    encoder.Encode("x-long", value, wire::internal::HpackEncoder::Indexing::kIndex, &block);
  EXPECT_TRUE(codec_->Receive(Frame(kHeaders, kEndHeaders | kEndStream, 3, block), &ended_).ok());
  // Interim replies without end, each short.
  const std::string interim = Reply({{":status", "103"}, {"link", "</style.css>"}}, kEndHeaders, 5);
  for (int i = 0; i < 1000 && !Over(hints); ++i) EXPECT_TRUE(codec_->Receive(interim, &ended_).ok());
  for (const HttpExchange* exchange : {&body, &head, &hints}) {
    EXPECT_TRUE(Over(*exchange));
    EXPECT_TRUE(absl::IsResourceExhausted(exchange->error)) << exchange->error;
  }
}

// ----- servers that break the rules -----------------------------------------------------------------------

struct ReplyCase {
  std::string frames;
  std::string error;  // "": none
};

const HeaderList kOk = {{":status", "200"}};
const HeaderList kOkOfFour = {{":status", "200"}, {"content-length", "4"}};

const std::string kBroke = "the peer broke HTTP/2: PROTOCOL_ERROR";
const ReplyCase kReplyCases[] = {
    {Reply(kOk), ""},
    {Reply(kOkOfFour, kEndHeaders) + Body("body"), ""},
    {Reply({{":status", "103"}}, kEndHeaders) + Reply(kOk), ""},
    {Reply(kOk, kEndHeaders) + Body("body", 0) + Reply({{"x-sum", "1"}}), ""},
    {Reply({{":status", "304"}, {"content-length", "4"}}), ""},
    {Reply({}), kBroke},
    {Reply({{"x", "1"}}), kBroke},
    {Reply({{":status", "200"}, {":status", "200"}}), kBroke},
    {Reply({{"x", "1"}, {":status", "200"}}), kBroke},
    {Reply({{":status", "200"}, {":path", "/"}}), kBroke},
    {Reply({{":status", "20"}}), kBroke},
    {Reply({{":status", "2000"}}), kBroke},
    {Reply({{":status", "2x0"}}), kBroke},
    {Reply({{":status", "099"}}), kBroke},
    {Reply({{":status", "200"}, {"Upper", "1"}}), kBroke},
    {Reply({{":status", "200"}, {"connection", "close"}}), kBroke},
    {Reply({{":status", "200"}, {"transfer-encoding", "chunked"}}), kBroke},
    {Reply({{":status", "200"}, {"content-length", "-0"}}), kBroke},
    {Reply({{":status", "200"}, {"content-length", "1"}, {"content-length", "2"}}), kBroke},
    {Reply({{":status", "101"}}, kEndHeaders), kBroke},
    {Reply({{":status", "100"}}), kBroke},
    {Body("body"), kBroke},
    {Reply(kOkOfFour), kBroke},
    {Reply(kOkOfFour, kEndHeaders) + Body("bod"), kBroke},
    {Reply(kOkOfFour, kEndHeaders) + Body("body+"), kBroke},
    {Reply(kOk, kEndHeaders) + Reply({{"x-sum", "1"}}, kEndHeaders), kBroke},
    {Reply(kOk, kEndHeaders) + Reply({{":status", "200"}}), kBroke},
    {Reply({{":status", "204"}}, kEndHeaders) + Body("x"), kBroke},
    {Frame(8, 0, 1, std::string(4, '\0')), kBroke},
    {Frame(8, 0, 1, "\x7f\xff\xff\xff"), "FLOW_CONTROL_ERROR"},
};

TEST(Http2Replies, MalformedOnesFailAndTheConnectionGoesOn) {
  const HttpEndpoint endpoint{"GET", "http", "h", "/p"};
  for (const ReplyCase& c : kReplyCases) {
    const auto codec = MakeHttp2Codec({});
    HttpExchange first{.endpoint = &endpoint}, second{.endpoint = &endpoint};
    codec->Start(&first);
    codec->Start(&second);
    HttpCodec::Ended ended;
    const absl::Status status = codec->Receive(kServerHello + c.frames, &ended);
    ASSERT_TRUE(status.ok()) << status << absl::CHexEscape(c.frames);
    ASSERT_THAT(ended, testing::ElementsAre(&first)) << absl::CHexEscape(c.frames);
    EXPECT_EQ(first.error.ok(), c.error.empty()) << absl::CHexEscape(c.frames) << first.error;
    EXPECT_THAT(Message(first.error), HasSubstr(c.error));
    ASSERT_TRUE(codec->Receive(Reply(kOk, kEndHeaders | kEndStream, 3), &ended).ok());
    EXPECT_THAT(ended, testing::ElementsAre(&first, &second)) << absl::CHexEscape(c.frames);
  }
}

TEST(Http2Replies, AnAnswerToHeadHasNoContent) {
  const HttpEndpoint endpoint{"HEAD", "http", "h", "/p"};
  for (const bool with_body : {false, true}) {
    const auto codec = MakeHttp2Codec({});
    HttpExchange exchange{.endpoint = &endpoint};
    codec->Start(&exchange);
    HttpCodec::Ended ended;
    const std::string reply = with_body ? Reply(kOkOfFour, kEndHeaders) + Body("body") : Reply(kOkOfFour);
    ASSERT_TRUE(codec->Receive(kServerHello + reply, &ended).ok());
    EXPECT_EQ(exchange.error.ok(), !with_body);
  }
}

struct Breach {
  const char* name;
  std::string begin;
  std::string again;
  std::string error;
};

TEST(Http2Replies, AServerThatBreaksTheConnectionOrFloodsItIsLeft) {
  const HttpEndpoint endpoint{"GET", "http", "h", "/p"};
  const auto thousand = [](const std::string& frame) {
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += frame;
    return bytes;
  };
  const std::string goodbye("\x7f\xff\xff\xff\0\0\0\0", 8);
  const Breach breaches[] = {
      {"a reply to nothing", Reply(kOk, kEndHeaders | kEndStream, 5), "", "HEADERS without a request"},
      {"a push", Frame(kPushPromise, 4, 1, std::string(4, '\0')), "", "pushes were not asked for"},
      {"DATA of nothing", Frame(kData, 0, 5, "x"), "", "DATA without a stream"},
      {"goodbyes", "", thousand(Frame(kGoaway, 0, 0, goodbye)), "too many empty frames"},
      {"empty DATA", Reply(kOk, kEndHeaders), thousand(Body("", 0)), "too many empty frames"},
      {"a header block without end", Frame(kHeaders, 0, 1, ""),
       Frame(kContinuation, 0, 1, std::string(9000, 'x')), "a header block has more than 262144 bytes"},
      {"SETTINGS", "", kServerHello, "too many settings"},
  };
  for (const Breach& breach : breaches) {
    const auto codec = MakeHttp2Codec({});
    HttpExchange exchange{.endpoint = &endpoint};
    codec->Start(&exchange);
    HttpCodec::Ended ended;
    absl::Status status = codec->Receive(kServerHello + breach.begin, &ended);
    for (int i = 0; i < 10'000 && status.ok(); ++i) status = codec->Receive(breach.again, &ended);
    EXPECT_THAT(Message(status), HasSubstr(breach.error)) << breach.name;
    EXPECT_EQ(codec->TakeAll().size() + ended.size(), 1u) << breach.name;
  }
}

TEST_F(Http2CodecTest, GivesBackWhatIsInFlight) {
  HttpExchange& sent = Ask();
  Pump();
  HttpExchange& unsent = Ask();
  const HttpCodec::Ended all = codec_->TakeAll();
  EXPECT_THAT(all, testing::UnorderedElementsAre(&sent, &unsent));
  EXPECT_FALSE(sent.unprocessed);
  EXPECT_TRUE(unsent.unprocessed);
}

TEST_F(Http2CodecTest, KnowsServersOfOtherProtocols) {
  HttpCodec::Ended ended;
  const std::unique_ptr<HttpCodec> other = MakeHttp2Codec({});
  EXPECT_TRUE(other->Receive("HTT", &ended).ok());
  EXPECT_THAT(Message(other->Receive("P/1.1 400 Bad Request\r\n", &ended)),
              HasSubstr("speaks HTTP/1.1, not HTTP/2"));
  EXPECT_THAT(Message(codec_->Receive(std::string(100, '\xff'), &ended)),
              HasSubstr("the server broke HTTP/2: "));
}

}  // namespace
}  // namespace curtail::internal
