// SPDX-License-Identifier: Apache-2.0
//
// A server's turns at a connection, over a pair of sockets.
#include "curtail/rpc/transport/connection.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "curtail/wire/http/http2_frames_testing.h"

namespace curtail::internal {
namespace {

// A server whose requests take `cost` each to take in.
class Busy final : public Connection {
 public:
  Busy(UniqueFd fd, std::shared_ptr<Poller> poller)
      : Connection(wire::Role::kServer, {}, std::move(fd), std::move(poller), /*connected=*/true, nullptr) {}

  Nanos cost{0};
  size_t requests = 0;
  bool closed = false;

 private:
  void HandleOp(Op*) override {}
  void HandleGoodbye(uint32_t) override {}
  void OnClosed(const absl::Status&, bool) override { closed = true; }
  void* OnRequest(wire::StreamId id, wire::RequestHead&&) override {
    ++requests;
    for (const Deadline end = Deadline::In(cost); !end.Expired();) {
    }
    session().EndCall(id, absl::OkStatus());
    return nullptr;
  }
  void OnMessage(wire::StreamId, void*, std::string&&) override {}
  void OnCallEnd(wire::StreamId, void*, absl::Status&&, wire::Metadata&&) override {}
};

// Property: input that costs much is taken a little at a time. Others have their turns in between, and nothing is lost.
TEST(Connection, ATurnIsShort) {
  constexpr size_t kRequests = 2000, kFirst = 64u << 10, kLittle = 4u << 10;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd peer(ends[0]);
  const auto poller = std::make_shared<Poller>();
  const auto busy = std::make_shared<Busy>(UniqueFd(ends[1]), poller);
  busy->cost = std::chrono::microseconds(20);
  ASSERT_TRUE(busy->Register().ok());
  const std::string block = wire::Block(
      {{":method", "POST"}, {":scheme", "http"}, {":path", "/a.B/C"}, {"content-type", "application/grpc"}});
  const size_t size = wire::Frame(1, 5, 1, block).size();
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + wire::Frame(4, 0, 0, "");
  for (uint32_t i = 0; i < kRequests; ++i) bytes += wire::Frame(1, 5, 1 + 2 * i, block);
  std::string answers(64u << 10, '\0');
  size_t sent = 0;
  for (size_t turns = 0; busy->requests < kRequests; ++turns) {
    const ssize_t n = send(peer.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    sent += n > 0 ? static_cast<size_t>(n) : 0;
    while (recv(peer.get(), answers.data(), answers.size(), 0) > 0) continue;
    const size_t before = busy->requests;
    busy->OnEvents(EPOLLIN, nullptr);
    // A turn ends behind the read in which its time is over.
    const size_t most = turns == 0 ? kFirst + kLittle : 2 * kLittle;
    ASSERT_LE(busy->requests - before, most / size + 1) << "turn " << turns;
    ASSERT_GT(busy->requests, before);
  }
  ASSERT_EQ(shutdown(peer.get(), SHUT_RDWR), 0);
  busy->OnEvents(EPOLLIN, nullptr);  // and lets go of itself, as the turn ends
  EXPECT_TRUE(busy->closed);
}

}  // namespace
}  // namespace curtail::internal
