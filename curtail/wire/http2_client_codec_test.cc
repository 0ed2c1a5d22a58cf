// SPDX-License-Identifier: Apache-2.0
//
// The codec of HTTP/2 against a server's end of nghttp2 that says whatever a test wants.
#include <memory>
#include <string>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/wire/http_client_codec.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/internal/hpack.h"
#include "curtail/wire/raw_peer_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using testing::HasSubstr;
using wire::RawPeer;

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
  Pump();
  peer_.Reply(1, {{":status", "200"}}, std::string(1001, 'x'), {});
  Pump();
  // A long field that the others repeat: a short block.
  wire::internal::HpackEncoder encoder;
  std::string block, frame;
  encoder.Encode(":status", "200", wire::internal::HpackEncoder::Indexing::kIndex, &block);
  const std::string value(3500, 'x');
  for (int i = 0; i < 20; ++i)
    encoder.Encode("x-long", value, wire::internal::HpackEncoder::Indexing::kIndex, &block);
  wire::internal::AppendFrameHeader({static_cast<uint32_t>(block.size()), wire::internal::FrameType::kHeaders,
                                     wire::internal::kEndHeaders | wire::internal::kEndStream, 3},
                                    &frame);
  EXPECT_TRUE(codec_->Receive(frame + block, &ended_).ok());
  for (const HttpExchange* exchange : {&body, &head}) {
    EXPECT_TRUE(Over(*exchange));
    EXPECT_TRUE(absl::IsResourceExhausted(exchange->error)) << exchange->error;
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
