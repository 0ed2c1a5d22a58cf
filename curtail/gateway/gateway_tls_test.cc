// SPDX-License-Identifier: Apache-2.0
//
// TLS at the gateway's front, with clients of HTTP/1.1 and of HTTP/2.
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"
#include "curtail/rpc/tls.h"
#include "curtail/rpc/transport/tls_stream.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using curtail::internal::TlsStream;
using testing::HasSubstr;
using testing::StartsWith;

class GatewayTlsTest : public GatewayTest {
 protected:
  GatewayTlsTest() {
    ServerTlsOptions options;
    options.certificate_file = certificate_.file();
    options.key_file = certificate_.key_file();
    options.reload_interval = std::chrono::nanoseconds(1);
    auto tls = ServerTls::Load(options);
    EXPECT_TRUE(tls.ok()) << tls.status();
    options_.tls = *std::move(tls);
  }
  static std::shared_ptr<const ClientTls> Trust(const TestCertificate& authority) {
    auto tls = ClientTls::Load({.ca_file = authority.file()});
    EXPECT_TRUE(tls.ok()) << tls.status();
    return *std::move(tls);
  }
  // Speaks TLS over `peer` until the gateway's answer holds `text`, or the stream ends; returns what came.
  static std::string Talk(Peer& peer, TlsStream& tls, std::string_view request, std::string_view text) {
    std::string plain;
    while (plain.find(text) == std::string::npos && tls.status().ok()) {
      if (tls.standing() && tls.Write(request) > 0) request = {};
      std::string out;
      tls.TakeOutput(&out);
      peer.Write(out);
      const std::string in = peer.ReadSome();
      if (in.empty()) break;
      tls.Feed(in);
      char buffer[4096];
      while (const size_t n = tls.Read(buffer, sizeof buffer)) plain.append(buffer, n);
    }
    return plain;
  }
  absl::StatusOr<LoadResult> Load(bool http2, std::string_view path) {
    RunOptions run;
    run.targets = {Join("https://", gateway().address(), path)};
    run.http = HttpOptions{.http2 = http2};
    run.channel.tls = Trust(authority_);
    run.warmup = Nanos::zero();
    run.requests = 50;
    run.timeout = kMaxTestWait;
    const auto workload = MakeHttpWorkload({}, 1);
    if (!workload.ok()) return workload.status();
    return RunClosedLoop(run, **workload, 4, kMaxTestWait);
  }

  const TestCertificate authority_{{.common_name = "authority", .names = ""}};
  const TestCertificate certificate_{{}, &authority_};
  static constexpr char kRequest[] = "GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n";
};

TEST_F(GatewayTlsTest, AlpnPicksTheVersion) {
  for (const bool http2 : {false, true}) {
    for (const char* path : {"/v1/shelves/1/books/2", "/v1/watch/a?count=20&titleBytes=1000"}) {
      const absl::StatusOr<LoadResult> result = Load(http2, path);
      ASSERT_TRUE(result.ok()) << result.status();
    }
  }
  EXPECT_GE(gateway().stats().requests, 200u);
  EXPECT_GE(library_->sent(), 2 * 50 * 20);
  EXPECT_EQ(gateway().stats().failed, 0u);
  // One that agreed to HTTP/2 does not get HTTP/1.1.
  Peer peer = Connect();
  const auto tls = TlsStream::Client(*Trust(authority_)->context(), "127.0.0.1", /*verify=*/true);
  EXPECT_THAT(Talk(peer, *tls, kRequest, "HTTP/1.1"), testing::Not(HasSubstr("200 OK")));
  EXPECT_EQ(tls->protocol(), TlsStream::kHttp2);
}

TEST_F(GatewayTlsTest, PlainTextIsTurnedAway) {
  Peer peer = Connect();
  peer.Write(kRequest);
  EXPECT_THAT(peer.ReadSome(), StartsWith("\x15\x03")) << "an alert";
  EXPECT_TRUE(peer.Closed());
}

TEST_F(GatewayTlsTest, HandshakesHaveATime) {
  options_.request_timeout = std::chrono::milliseconds(200);
  Peer silent = Connect();
  Peer slow = Connect();
  slow.Write("\x16\x03\x01");
  EXPECT_TRUE(silent.Closed());
  EXPECT_TRUE(slow.Closed());
  EXPECT_EQ(gateway().stats().timed_out, 2u);
}

// Property: a handshake, which holds nothing, waits while readers that make progress hold too much.
TEST_F(GatewayTlsTest, HandshakesWaitForRoom) {
  options_.max_held_bytes = 100'000;
  options_.files = {{"large.txt", std::string(64u << 20, 'l')}};
  const auto client = [this] {
    return TlsStream::Client(*Trust(authority_)->context(), "127.0.0.1", /*verify=*/true, TlsStream::kHttp1);
  };
  Peer reader = Connect(), waiting = Connect();
  EXPECT_THAT(Talk(reader, *client(), "GET /large.txt HTTP/1.1\r\nhost: x\r\n\r\n", "200 OK"),
              StartsWith("HTTP/1.1 200"));
  for (const Deadline end = Deadline::In(std::chrono::seconds(2)); !end.Expired();) {
    for (int i = 0; i < 64; ++i) reader.ReadSome();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the pace of a reader
  }
  EXPECT_GT(gateway().stats().held, 1'000'000u);
  reader.Abandon();
  EXPECT_THAT(Talk(waiting, *client(), kRequest, "as of 0"), StartsWith("HTTP/1.1 200"));
}

TEST_F(GatewayTlsTest, NewKeysAreTakenWithoutARestart) {
  const TestCertificate other_authority({.common_name = "other authority", .names = ""});
  const TestCertificate other({}, &other_authority);
  const auto ask = [&](const TestCertificate& authority) {
    Peer peer = Connect();
    const auto tls =
        TlsStream::Client(*Trust(authority)->context(), "127.0.0.1", /*verify=*/true, TlsStream::kHttp1);
    return Talk(peer, *tls, kRequest, "as of 0");
  };
  EXPECT_THAT(ask(authority_), StartsWith("HTTP/1.1 200"));
  using std::filesystem::copy_options;
  std::filesystem::copy(other.file(), certificate_.file(), copy_options::overwrite_existing);
  std::filesystem::copy(other.key_file(), certificate_.key_file(), copy_options::overwrite_existing);
  EXPECT_THAT(ask(other_authority), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(ask(authority_), "");
}

TEST_F(GatewayTlsTest, ADrainEndsWithAGoodbye) {
  Peer peer = Connect();
  const auto tls = TlsStream::Client(*Trust(authority_)->context(), "127.0.0.1", true, TlsStream::kHttp1);
  EXPECT_THAT(Talk(peer, *tls, kRequest, "as of 0"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(gateway().Stop(Deadline::In(kMaxTestWait)));
  Talk(peer, *tls, {}, "nothing");
  EXPECT_TRUE(tls->ended());
}

}  // namespace
}  // namespace curtail::gateway
