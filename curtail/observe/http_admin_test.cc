// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/http_admin.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/boundary.h"
#include "curtail/base/testing.h"
#include "curtail/observe/http_admin_testing.h"

namespace curtail::observe {
namespace {

using curtail::internal::UniqueFd;
using std::chrono::milliseconds;
using wire::HttpReply;
using wire::HttpRequest;

constexpr size_t kBigPage = 8u << 20;

class HttpAdminTest : public testing::Test {
 protected:
  // Serves /small, which takes POSTs, and /big, on a free port.
  void StartPort(HttpAdminOptions options) {
    UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in at = {.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(listen(listener.get(), 128), 0);
    socklen_t size = sizeof at;
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size);
    address_ = Join("127.0.0.1:", ntohs(at.sin_port));
    std::vector<HttpAdminPage> pages;
    const auto small = [](const HttpRequest& request, const HttpAdminStats&) {
      return HttpAdminReply(200, "text/plain", request.verb + request.body);
    };
    pages.push_back({"/small", small, small});
    pages.push_back({"/broken", [](const HttpRequest&, const HttpAdminStats&) -> HttpReply {
                       throw std::length_error("from a library");
                     }});
    pages.push_back({"/big", [](const HttpRequest&, const HttpAdminStats&) {
                       return HttpAdminReply(200, "text/plain", std::string(kBigPage, 'x'));
                     }});
    auto port = HttpAdmin::Start(std::move(listener), std::move(options), std::move(pages));
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
  }

  template <class Condition>
  bool Await(Condition condition) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!condition(port_->stats())) {
      if (deadline.Expired()) return false;
      BetweenLooks();
    }
    return true;
  }

  std::string address_;
  std::unique_ptr<HttpAdmin> port_;
};

TEST_F(HttpAdminTest, AnswersByVerbAndPath) {
  StartPort({.access = {.token = "secret"}});
  HttpPeer peer(address_);
  const HttpPeer::Reply got = peer.Get("/small?x=1");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "GET");
  EXPECT_NE(got.head.find("cache-control: no-store\r\n"), std::string::npos) << got.head;
  EXPECT_EQ(peer.Get("/small/").status, 404);
  EXPECT_EQ(peer.Get("/small", "Origin: http://evil.example\r\n").status, 403);
  peer.Send("HEAD /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(peer.Read(/*head_only=*/true).status, 200);
  peer.Send("DELETE /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const HttpPeer::Reply refused = peer.Read();
  EXPECT_EQ(refused.status, 405);
  EXPECT_NE(refused.head.find("allow: GET, HEAD, POST\r\n"), std::string::npos) << refused.head;
  const std::string post = " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n";
  peer.Send("POST /small" + post + "\r\nhi");
  EXPECT_EQ(peer.Read().status, 403);
  peer.Send("POST /small" + post + "Authorization: Bearer secret\r\n\r\nhi");
  EXPECT_EQ(peer.Read().body, "POSThi");
  peer.Send("POST /big" + post + "Authorization: Bearer secret\r\n\r\nhi");
  EXPECT_EQ(peer.Read().status, 405);
  EXPECT_EQ(port_->stats().requests, 8u);
  EXPECT_EQ(port_->stats().refused, 2u);
}

TEST_F(HttpAdminTest, RefusesRequestsThatAreTooLarge) {
  StartPort({});
  HttpPeer long_head(address_);
  EXPECT_EQ(long_head.Get("/small", "x: " + std::string(16u << 10, 'y') + "\r\n").status, 431);
  EXPECT_TRUE(long_head.Closed());
  HttpPeer long_body(address_);
  long_body.Send("POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8192\r\n\r\n");
  EXPECT_EQ(long_body.Read().status, 413);
  HttpPeer no_http(address_);
  no_http.Send("\x16\x03\x01\r\n\r\n");
  EXPECT_EQ(no_http.Read().status, 400);
}

// Requests that come faster than the rate are answered later, in order, on one connection or many.
TEST_F(HttpAdminTest, AnExceptionIsTheAnswersAlone) {
  StartPort({});
  const uint64_t before = ContainedExceptions();
  HttpPeer peer(address_);
  EXPECT_EQ(peer.Get("/broken").status, 500);
  EXPECT_EQ(peer.Get("/small").status, 200);
  EXPECT_EQ(ContainedExceptions(), before + 1);
}

TEST_F(HttpAdminTest, PacesRequests) {
  StartPort({.rate = 1000, .burst = 2});
  HttpPeer peer(address_);
  std::string requests;
  for (int i = 0; i < 8; ++i) requests += "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n";
  peer.Send(requests);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(peer.Read().status, 200);
  EXPECT_GE(port_->stats().paced, 1u);
  EXPECT_EQ(port_->stats().requests, 8u);
}

// They ask, close and come again as fast as they can.
TEST_F(HttpAdminTest, ThoseWhoLeaveWaitBehindTheOthers) {
  StartPort({.max_connections = 4, .rate = 1, .burst = 1});
  for (int i = 0; i < 20; ++i) HttpPeer(address_).Send("GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(HttpPeer(address_).Get("/small").status, 200);
  EXPECT_LE(port_->stats().requests, 4u);  // one at once, and one a second
}

TEST_F(HttpAdminTest, ClosesClientsThatDoNotFinishARequest) {
  StartPort({.client_time = milliseconds(20)});
  HttpPeer silent(address_), slow(address_);
  slow.Send("GET /small HTTP/1.1\r\nHost:");
  EXPECT_TRUE(silent.Closed());
  EXPECT_TRUE(slow.Closed());
  EXPECT_TRUE(
      Await([](const HttpAdminStats& stats) { return stats.timed_out == 2 && stats.connections == 0; }));
}

// The byte-a-second client: what it sends does not move the clock of its request.
TEST_F(HttpAdminTest, BytesNowAndThenDoNotKeepARequestAlive) {
  StartPort({.http = {.max_head_bytes = 64u << 20}, .client_time = milliseconds(20)});
  HttpPeer slow(address_);
  slow.Send("GET /small HTTP/1.1\r\nHost: ");
  EXPECT_TRUE(Await([&slow](const HttpAdminStats& stats) {
    slow.Send("x");
    return stats.timed_out == 1;
  }));
  EXPECT_TRUE(slow.Closed());
  EXPECT_EQ(port_->stats().requests, 0u);
}

TEST_F(HttpAdminTest, ClosesClientsThatDoNotRead) {
  StartPort({.client_time = milliseconds(20)});
  HttpPeer idle(address_, /*receive_buffer=*/4096);
  idle.Send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(
      Await([](const HttpAdminStats& stats) { return stats.timed_out == 1 && stats.connections == 0; }));
}

TEST_F(HttpAdminTest, ClosesIdleConnections) {
  StartPort({.idle_time = milliseconds(20)});
  HttpPeer peer(address_);
  EXPECT_EQ(peer.Get("/small").status, 200);
  EXPECT_TRUE(peer.Closed());
  EXPECT_EQ(port_->stats().timed_out, 1u);
}

TEST_F(HttpAdminTest, NewcomersTakeThePlaceOfTheSilent) {
  StartPort({.max_connections = 2, .eviction_time = milliseconds(1)});
  HttpPeer first(address_);
  EXPECT_EQ(first.Get("/small").status, 200);
  HttpPeer second(address_, /*receive_buffer=*/4096);
  second.Send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(Await([](const HttpAdminStats& stats) { return stats.requests == 2; }));
  HttpPeer third(address_);
  EXPECT_EQ(third.Get("/small").status, 200);
  EXPECT_TRUE(first.Closed());
  HttpPeer fourth(address_);
  EXPECT_EQ(fourth.Get("/small").status, 200);
  EXPECT_EQ(port_->stats().evicted, 2u);
  EXPECT_LE(port_->stats().connections, 2u);
}

// Property: silent clients, however many, keep out neither newcomers nor a client that is known.
TEST_F(HttpAdminTest, CrowdsOfSilentClientsKeepNobodyOut) {
  StartPort({.max_connections = 4, .eviction_time = std::chrono::hours(1)});
  HttpPeer known(address_);
  EXPECT_EQ(known.Get("/small").status, 200);
  std::deque<HttpPeer> silent;
  for (int i = 0; i < 100; ++i) {
    silent.emplace_back(address_);
    if (i % 2 == 1) silent.back().Send("GET /small HT");
    if (i % 10 != 9) continue;
    EXPECT_EQ(HttpPeer(address_).Get("/small").status, 200);
    EXPECT_EQ(known.Get("/small").status, 200);
  }
  EXPECT_GE(port_->stats().evicted, 90u);
  EXPECT_LE(port_->stats().connections, 4u);
}

// Property: clients that ask again at once keep nobody out, though each has a request that waits at all times.
TEST_F(HttpAdminTest, ClientsThatAskWithoutEndKeepNobodyOut) {
  StartPort({.max_connections = 3, .eviction_time = std::chrono::hours(1), .rate = 100, .burst = 1});
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::deque<HttpPeer> busy;
  for (int i = 0; i < 3; ++i) busy.emplace_back(address_).Send(requests);
  ASSERT_TRUE(Await([](const HttpAdminStats& stats) { return stats.requests >= 6; }));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(HttpPeer(address_).Get("/small").status, 200) << i;
  EXPECT_GE(port_->stats().evicted, 1u);
}

// Property: answers that nobody takes hold no more than the budget and one answer, and stop no others for long.
TEST_F(HttpAdminTest, AnswersShareABudget) {
  StartPort({.max_held_bytes = 2 * kBigPage, .client_time = kMaxTestWait, .eviction_time = milliseconds(50)});
  std::deque<HttpPeer> stuck;
  for (int i = 0; i < 6; ++i) {
    stuck.emplace_back(address_, /*receive_buffer=*/4096)
        .Send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(HttpPeer(address_).Get("/small").status, 200);
    EXPECT_LT(port_->stats().held, 3 * kBigPage + 10'000);
  }
  EXPECT_TRUE(Await([](const HttpAdminStats& stats) { return stats.evicted >= 3 && stats.held_back >= 1; }));
}

TEST_F(HttpAdminTest, BytesWithoutAnEndEndTheConnection) {
  StartPort({});
  const std::string chunked = "POST /small HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& endless : {chunked + "1;", chunked + "0\r\na: "}) {
    HttpPeer peer(address_);
    peer.Send(endless + std::string(1 << 20, 'x'));
    EXPECT_EQ(peer.Read().status, 431);
    EXPECT_TRUE(peer.Closed());
    EXPECT_LT(port_->stats().held, 100'000u);
  }
  EXPECT_EQ(port_->stats().malformed, 2u);
}

// Readers that never read, and others that come without pause, keep no reader away.
TEST_F(HttpAdminTest, AnswersUnderAFloodStress) {
  StartPort({.max_connections = 8, .eviction_time = milliseconds(1), .rate = 1'000'000, .burst = 1000});
  std::deque<HttpPeer> stuck;
  for (int i = 0; i < 16; ++i) {
    stuck.emplace_back(address_, /*receive_buffer=*/4096)
        .Send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 50; ++i) HttpPeer(address_).Get("/small");
    });
  }
  EXPECT_TRUE(Await([this](const HttpAdminStats& stats) {
    EXPECT_LE(stats.connections, 8u);
    return HttpPeer(address_).Get("/small").status == 200 && stats.evicted >= 8;
  }));
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(port_->stats().connections, 8u);
}

}  // namespace
}  // namespace curtail::observe
