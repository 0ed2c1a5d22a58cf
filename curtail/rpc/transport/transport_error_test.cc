// SPDX-License-Identifier: Apache-2.0
//
// Servers that speak something else than the client thought: the call fails at once, and says what they speak.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "curtail/rpc/transport/transport_error.h"
#include "curtail/rpc/transport/transport_testing.h"

namespace curtail {
namespace {

using internal::ExplainOpening;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class TransportError : public testing::Test, protected TlsBase {
 protected:
  std::string CallFails(const std::string& address, bool tls, ChannelOptions options = {}) {
    if (tls) options.tls = Trust(authority_);
    Client client;
    Channel channel(&client, address, options);
    const absl::Status status = Call(channel, kEcho, "");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(address));
    return std::string(Message(status));
  }
};

TEST_F(TransportError, OwnServersTellPlainFromTls) {
  auto tls = StartTls({.certificate = &leaf_});
  auto plain = StartTls({});
  const std::string address = tls->addresses()[0];
  EXPECT_EQ(CallFails(address, false), address + ": the server speaks TLS; the call was plain text");
  EXPECT_THAT(CallFails(plain->addresses()[0], true), HasSubstr("does not speak TLS"));
}

TEST_F(TransportError, ServersThatAnswerInAnotherLanguage) {
  const struct {
    std::string words;
    bool tls;
    const char* answer;
  } cases[] = {
      {std::string("\x15\x03\x01\x00\x02\x02\x46", 7), false,
       "the server speaks TLS; the call was plain text"},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", false, "the server answers in HTTP/1.1; gRPC needs HTTP/2"},
      {"HTTP/1.0 505", false, "the server answers in HTTP/1.0; gRPC needs HTTP/2"},
      {"220 mail\r\n", false, "the server does not speak HTTP/2: it begins with \"220 mail\\r\""},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", true,
       "the server answers in HTTP/1.1: it does not speak TLS; the call was TLS"},
      {std::string("\0\0\0\4\0\0\0\0\0", 9), true, "the server does not speak TLS; the call was TLS"},
      {"SSH-2.0", true, "the server does not speak TLS; the call was TLS"},
  };
  for (const auto& each : cases) {
    for (const auto after : {ScriptedServer::kClose, ScriptedServer::kStay}) {
      ScriptedServer server(each.words, after);
      EXPECT_EQ(CallFails(server.address(), each.tls), server.address() + ": " + each.answer);
    }
  }
}

TEST_F(TransportError, ServersThatSayNothing) {
  ScriptedServer closes("", ScriptedServer::kClose);
  EXPECT_THAT(CallFails(closes.address(), false), HasSubstr("before it said anything: does it expect TLS?"));
  EXPECT_THAT(CallFails(closes.address(), true), HasSubstr("it probably does not speak TLS"));
  ScriptedServer silent("", ScriptedServer::kStay);
  EXPECT_THAT(CallFails(silent.address(), true, {.connect_timeout = milliseconds(30)}),
              HasSubstr("TLS handshake timed out"));
  ScriptedServer begins("\x16\x03\x03", ScriptedServer::kStay);
  EXPECT_THAT(CallFails(begins.address(), true, {.connect_timeout = milliseconds(30)}),
              EndsWith(": TLS handshake timed out"));
}

// A server that dies while calls wait has answered before: a guess about TLS would lead astray.
TEST_F(TransportError, NoGuessAboutTlsWhereCallsWereAnswered) {
  for (const bool tls : {false, true}) {
    auto server = tls ? StartTls({.certificate = &leaf_}) : StartTls({});
    const std::string behind = server->addresses()[0];
    std::atomic<bool> dead = false;
    TestListener front([&](internal::UniqueFd connection, int stop) {
      if (!dead) return SlowRelay::Run(connection, Dial(behind), stop, {});
      char heard[4096];
      if (TestListener::Wait(connection.get(), stop)) recv(connection.get(), heard, sizeof heard, 0);
    });
    Client client;
    ChannelOptions options = {.initial_backoff = milliseconds(1), .max_backoff = milliseconds(1)};
    if (tls) options.tls = Trust(authority_);
    Channel channel(&client, front.address(), options);
    ASSERT_TRUE(Call(channel, kEcho, "").ok());
    dead = true;
    server.reset();
    const Deadline deadline = Deadline::In(kMaxTestWait);
    std::string message;
    while (message.find("before it said anything") == std::string::npos && !deadline.Expired()) {
      message = std::string(Message(Call(channel, kEcho, "")));
      ASSERT_THAT(message, Not(HasSubstr("expect TLS")));
      ASSERT_THAT(message, Not(HasSubstr("does not speak TLS")));
    }
    EXPECT_THAT(message, HasSubstr("before it said anything"));
  }
}

TEST_F(TransportError, EventDrivenCallsHearOfTheTimeoutToo) {
  struct Keep final : Completion {
    void Done(absl::Status&& status, std::string&&) override { last = std::move(status); }
    absl::Status last;
  } keep;
  ScriptedServer silent("", ScriptedServer::kStay);
  Channel channel(&client_, silent.address(),
                  {.tls = Trust(authority_), .connect_timeout = milliseconds(30)});
  channel.Start(kEcho.path, Deadline::Infinite(), {}, "", &keep);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (keep.last.ok() && !deadline.Expired()) client_.Poll(deadline);
  EXPECT_EQ(keep.last.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(keep.last)), HasSubstr("TLS handshake timed out"));
}

TEST_F(TransportError, APlainServerClosesOnAClientHelloWithoutAWord) {
  auto server = StartTls({});
  const internal::UniqueFd fd = Dial(server->addresses()[0]);
  const std::string hello("\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03", 11);
  ASSERT_EQ(send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL), static_cast<ssize_t>(hello.size()));
  pollfd waiting = {fd.get(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, static_cast<int>(kMaxTestWait / milliseconds(1))), 1);
  char byte = 0;
  EXPECT_EQ(recv(fd.get(), &byte, 1, 0), 0);
  Channel channel(&client_, server->addresses()[0]);
  EXPECT_TRUE(Call(channel, kEcho, "").ok());
}

// No prefix of a proper beginning is a reason to give up, and any bytes are judged without harm.
TEST(ExplainOpening, JudgesNoSoonerThanItCan) {
  const std::string settings("\0\0\x12\4\0\0\0\0\0", 9);
  const std::string hello("\x16\x03\x03\0\x7a\2\0\0\x76", 9);
  for (size_t n = 0; n <= 9; ++n) {
    EXPECT_EQ(ExplainOpening(settings.substr(0, n), false), "");
    EXPECT_EQ(ExplainOpening(hello.substr(0, n), true), "");
  }
  EXPECT_EQ(ExplainOpening("HTTP/1.", false), "");
  EXPECT_NE(ExplainOpening("HTTP/1.1", false), "");
  EXPECT_EQ(ExplainOpening("\x15", false), "");
  EXPECT_NE(ExplainOpening("\x15\x03", false), "");
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string any = {static_cast<char>(a), static_cast<char>(b), 'x', 'y', 'z', 'x', 'y', 'z', 'z'};
      EXPECT_NE(ExplainOpening(any, false), "");  // 'y' is no frame type
      EXPECT_EQ(ExplainOpening(any, true).empty(), a >= 0x14 && a <= 0x17 && b == 3);
    }
  }
}

}  // namespace
}  // namespace curtail
