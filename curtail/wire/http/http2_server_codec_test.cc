// SPDX-License-Identifier: Apache-2.0
//
// The server's end of HTTP/2 against the client's end that load tests use.
#include <deque>
#include <map>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http_client_codec.h"
#include "curtail/wire/http/http_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::wire {
namespace {

using curtail::internal::HttpEndpoint;
using curtail::internal::HttpExchange;
using testing::HasSubstr;

class ServerHttp2Test : public testing::Test {
 protected:
  HttpExchange& Ask(std::string body = {}) {
    HttpExchange& exchange = exchanges_.emplace_back();
    exchange.endpoint = &endpoint_;
    exchange.body = std::move(body);
    client_->Start(&exchange);
    return exchange;
  }
  // Moves bytes both ways until both ends are silent; `piece` is a read's size.
  void Pump(size_t piece = 1 << 20) {
    for (bool moved = true; moved;) {
      std::string up, down;
      client_->Pull(&up, 1 << 16);
      for (std::string_view left = up; !left.empty(); left.remove_prefix(std::min(piece, left.size()))) {
        status_.Update(server_->Receive(left.substr(0, piece), &requests_));
      }
      server_->Pull(&down, 1 << 16);
      if (!down.empty()) status_.Update(client_->Receive(down, &ended_));
      moved = !up.empty() || !down.empty();
    }
  }
  void Answer(size_t i, int status, std::string body) {
    server_->Reply(requests_[i].stream, {status, {{"content-type", "text/plain"}}, std::move(body)});
  }

  HttpEndpoint endpoint_{"POST", "http", "host:80", "/path?q"};
  const HttpLimits limits_{.max_body_bytes = 3'000'000, .max_streams = 10, .max_partial_bytes = 4'000'000};
  const std::unique_ptr<HttpServerCodec> server_ = MakeAnyHttpCodec(limits_);
  const std::unique_ptr<curtail::internal::HttpCodec> client_ = curtail::internal::MakeHttp2Codec({});
  std::deque<HttpExchange> exchanges_;
  curtail::internal::HttpCodec::Ended ended_;
  std::vector<HttpRequest> requests_;
  absl::Status status_;
};

TEST_F(ServerHttp2Test, CarriesRequestsAndAnswersOfAnySize) {
  const std::string body(2'500'000, 'b');  // more than any window
  HttpExchange& large = Ask(body);
  HttpExchange& small = Ask();
  Pump(1000);
  ASSERT_EQ(requests_.size(), 2u) << status_;
  EXPECT_EQ(server_->in_flight(), 2u);
  const HttpRequest& whole = requests_[requests_[0].stream == 1 ? 0 : 1];
  EXPECT_EQ(whole.verb, "POST");
  EXPECT_EQ(whole.target, "/path?q");
  EXPECT_EQ(whole.headers.Find("host"), "host:80");
  EXPECT_EQ(whole.body, body);
  Answer(0, 200, std::string(20'000'000, 'r'));
  Answer(1, 404, "");
  EXPECT_EQ(server_->unsent(requests_[0].stream) + server_->unsent(requests_[1].stream), 20'000'000u);
  EXPECT_THAT(server_->held_bytes(), testing::AllOf(testing::Ge(20'000'000u), testing::Lt(20'000'200u)));
  EXPECT_TRUE(server_->WantsInput()) << "it brings windows";
  HttpExchange& refused = Ask();  // while so much is to leave
  Pump();
  EXPECT_EQ(ended_.size(), 3u);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(large.status + small.status, 604);
  EXPECT_EQ(large.reply.size() + small.reply.size(), 20'000'000u);
  EXPECT_EQ(server_->held_bytes(), 0u);
  EXPECT_EQ(server_->in_flight(), 0u);
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ServerHttp2Test, AnAnswerMayComeInParts) {
  HttpExchange& exchange = Ask();
  Pump();
  ASSERT_EQ(requests_.size(), 1u);
  const int32_t stream = requests_[0].stream;
  server_->Reply(stream, {200, {}, "head,", /*more=*/true});
  Pump();
  EXPECT_EQ(server_->in_flight(), 1u);
  EXPECT_EQ(server_->unsent(stream), 0u);
  std::string whole = "head,";
  for (int i = 0; i < 100; ++i) {
    const std::string part(static_cast<size_t>(i) * 100, static_cast<char>('a' + i % 26));
    server_->AddBody(stream, part, /*last=*/false);
    whole += part;
    if (i % 7 == 0) Pump();
  }
  EXPECT_GT(server_->unsent(stream), 0u);
  EXPECT_EQ(server_->owed_bytes(), server_->unsent(stream));
  server_->AddBody(stream, "tail", /*last=*/true);
  EXPECT_EQ(server_->in_flight(), 0u);
  Pump();
  EXPECT_EQ(exchange.reply, whole + "tail");
  EXPECT_EQ(server_->held_bytes(), 0u);
  EXPECT_TRUE(server_->TakeGivenUp().empty());
  server_->AddBody(stream, "late", /*last=*/false);
  Pump();
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ServerHttp2Test, EitherEndCutsAnAnswerShort) {
  HttpExchange& left = Ask();
  HttpExchange& cut = Ask();
  Pump();
  ASSERT_EQ(requests_.size(), 2u);
  for (const HttpRequest& request : requests_) {
    server_->Reply(request.stream, {200, {}, std::string(1000, 'r'), /*more=*/true});
  }
  Pump();
  client_->Cancel(&left);
  Pump();
  const std::vector<int32_t> given_up = server_->TakeGivenUp();
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_TRUE(server_->TakeGivenUp().empty());
  const int32_t other = requests_[requests_[0].stream == given_up[0] ? 1 : 0].stream;
  server_->AddBody(other, std::string(10'000'000, 'r'), /*last=*/false);
  EXPECT_TRUE(server_->Abort(other));
  Pump();
  EXPECT_FALSE(cut.error.ok());
  EXPECT_EQ(server_->held_bytes(), 0u);
  EXPECT_EQ(server_->in_flight(), 0u);
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ServerHttp2Test, RefusesWhatIsTooLong) {
  HttpExchange& body = Ask(std::string(3'000'001, 'x'));
  Pump();
  EXPECT_EQ(body.status, 413);
  HttpExchange& head = Ask();
  head.headers.Add("x", std::string(1, 'x'));
  HttpExchange& header = exchanges_.emplace_back();
  header.endpoint = &endpoint_;
  header.headers.Add("x", std::string(17'000, 'x'));
  client_->Start(&header);
  Pump();
  EXPECT_EQ(header.status, 431);
  EXPECT_TRUE(status_.ok()) << status_;
  ASSERT_EQ(requests_.size(), 1u) << "the one between";
  EXPECT_EQ(server_->held_bytes(), 0u);
}

TEST_F(ServerHttp2Test, BodiesThatDoNotEndHoldNoMoreThanTheLimit) {
  Pump();
  // Bodies that go together over the limit, each below its own: their ends are held back.
  std::string up;
  for (int i = 0; i < 3; ++i) Ask(std::string(1'900'000, 'x'));
  for (int round = 0; round < 100; ++round) {
    std::string part, down;
    client_->Pull(&part, 1 << 16);
    ASSERT_TRUE(server_->Receive(part, &requests_).ok());
    EXPECT_LE(server_->held_bytes(), limits_.max_partial_bytes + 1000);
    server_->Pull(&down, 1 << 16);
    ASSERT_TRUE(client_->Receive(down, &ended_).ok());
  }
  EXPECT_EQ(requests_.size() + ended_.size(), 3u) << "whole, or refused";
}

TEST_F(ServerHttp2Test, RefusesBodiesOnDemand) {
  EXPECT_FALSE(server_->RefuseBodies(true)) << "which version it is comes to light with the first bytes";
  EXPECT_TRUE(server_->RefuseBodies(false));
  HttpExchange& begun = Ask(std::string(2'500'000, 'x'));  // more than the window of a stream
  std::string up;
  client_->Pull(&up, 1 << 16);
  ASSERT_TRUE(server_->Receive(up, &requests_).ok());
  EXPECT_GT(server_->held_bytes(), 50'000u);
  EXPECT_TRUE(server_->RefuseBodies(true));
  EXPECT_EQ(server_->held_bytes(), server_->owed_bytes()) << "which is the refusal alone";
  HttpExchange& with_body = Ask("x");
  HttpExchange& without = Ask();
  Pump();
  EXPECT_EQ(begun.status, 503);
  EXPECT_EQ(with_body.status, 503);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(server_->held_bytes(), 0u);
  Answer(0, 200, "");
  EXPECT_TRUE(server_->RefuseBodies(false));
  HttpExchange& later = Ask("x");
  Pump();
  ASSERT_EQ(requests_.size(), 2u);
  Answer(1, 200, "");
  Pump();
  EXPECT_EQ(without.status + later.status, 400);
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ServerHttp2Test, AnAnswerToARequestThatWasGivenUpIsDropped) {
  HttpExchange& exchange = Ask();
  Pump();
  ASSERT_EQ(requests_.size(), 1u);
  client_->Cancel(&exchange);
  Pump();
  EXPECT_EQ(server_->in_flight(), 0u);
  Answer(0, 200, "late");
  Pump();
  EXPECT_EQ(server_->held_bytes(), 0u);
  EXPECT_TRUE(status_.ok());
}

TEST_F(ServerHttp2Test, DrainsAfterTheLastAnswer) {
  HttpExchange& exchange = Ask();
  Pump();
  server_->Drain();
  Pump();
  EXPECT_FALSE(server_->Finished());
  Answer(0, 200, "last");
  Pump();
  EXPECT_EQ(exchange.reply, "last");
  EXPECT_TRUE(server_->Finished());
}

TEST_F(ServerHttp2Test, ALastCallEndsNothing) {
  HttpExchange& exchange = Ask();
  Pump();
  server_->LastCall();
  Pump();
  Answer(0, 200, "served");
  Pump();
  EXPECT_EQ(exchange.reply, "served");
  EXPECT_FALSE(server_->Finished()) << "the client may have sent a request meanwhile";
  server_->Drain();
  Pump();
  EXPECT_TRUE(server_->Finished());
}

TEST_F(ServerHttp2Test, ALastCallLetsANewConnectionMakeARequest) {
  server_->LastCall();
  Pump();  // the client has the server's SETTINGS
  ASSERT_TRUE(client_->CanStart());
  HttpExchange& exchange = Ask();
  Pump();
  EXPECT_FALSE(client_->CanStart()) << "its next one goes elsewhere";
  ASSERT_EQ(requests_.size(), 1u);
  Answer(0, 200, "served");
  Pump();
  EXPECT_EQ(exchange.reply, "served");
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST(AnyHttpTest, ALastCallIsTheLastAnswerOfHttp1) {
  const auto codec = MakeAnyHttpCodec({});
  codec->LastCall();  // before it is known what the client speaks
  std::vector<HttpRequest> requests;
  ASSERT_TRUE(codec->Receive("GET / HTTP/1.1\r\nhost: x\r\n\r\n", &requests).ok());
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_FALSE(codec->Finished());
  codec->Reply(requests[0].stream, {.status = 200, .headers = {}, .body = "x"});
  std::string out;
  codec->Pull(&out, 1000);
  EXPECT_NE(out.find("connection: close\r\n"), out.npos) << out;
  EXPECT_TRUE(codec->Finished());
}

// A head that has left cannot say so any more.
TEST(AnyHttpTest, ALastCallDuringAStreamOfHttp1IsForTheNextAnswer) {
  const auto codec = MakeAnyHttpCodec({});
  std::vector<HttpRequest> requests;
  std::string out;
  ASSERT_TRUE(codec->Receive("GET /stream HTTP/1.1\r\nhost: x\r\n\r\n", &requests).ok());
  ASSERT_EQ(requests.size(), 1u);
  codec->Reply(requests[0].stream, {.status = 200, .headers = {}, .body = "a", .more = true});
  codec->LastCall();
  codec->AddBody(requests[0].stream, "b", /*last=*/true);
  codec->Pull(&out, 1000);
  EXPECT_EQ(out.find("connection: close"), out.npos) << out;
  EXPECT_FALSE(codec->Finished());
  ASSERT_TRUE(codec->Receive("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", &requests).ok());
  ASSERT_EQ(requests.size(), 2u);
  codec->Reply(requests[1].stream, {.status = 200, .headers = {}, .body = "c"});
  out.clear();
  codec->Pull(&out, 1000);
  EXPECT_NE(out.find("connection: close\r\n"), out.npos) << out;
  EXPECT_TRUE(codec->Finished());
}

TEST(AnyHttpTest, TellsTheVersions) {
  std::vector<HttpRequest> requests;
  const auto http1 = MakeAnyHttpCodec({});
  ASSERT_TRUE(http1->Receive("P", &requests).ok());
  ASSERT_TRUE(http1->Receive("UT / HTTP/1.1\r\nhost: x\r\n\r\n", &requests).ok());
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].verb, "PUT");
  const auto http2 = MakeAnyHttpCodec({});
  for (const char c : std::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nx")) {
    ASSERT_TRUE(http2->Receive({&c, 1}, &requests).ok());
  }
  EXPECT_FALSE(http2->Receive("a frame that is none at all .....", &requests).ok() && !http2->Finished() &&
               http2->WantsInput() && http2->held_bytes() > 100);
}

}  // namespace
}  // namespace curtail::wire
