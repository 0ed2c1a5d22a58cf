// SPDX-License-Identifier: Apache-2.0
//
// A connection's turns, over a pair of sockets.
#include "curtail/gateway/internal/http_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "gtest/gtest.h"

namespace curtail::gateway::internal {
namespace {

using curtail::internal::UniqueFd;

class HttpConnectionTest : public testing::Test, public HttpConnection::Owner {
 protected:
  HttpConnectionTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer_.Reset(ends[0]);
    connection_ = std::make_shared<HttpConnection>(UniqueFd(ends[1]), HttpLimits(), nullptr, poller_,
                                                   static_cast<HttpConnection::Owner*>(this));
    EXPECT_TRUE(connection_->Register().ok());
  }
  ~HttpConnectionTest() override { connection_->Close(); }  // else it and its poller keep each other
  void Send(std::string_view bytes) const {
    EXPECT_EQ(send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // The requests of one turn.
  size_t Turn(uint32_t events = 0) {
    const size_t before = requests_;
    wants_another_ = false;
    connection_->OnEvents(events, nullptr);
    return requests_ - before;
  }

  void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override {
    ++requests_;
    for (const Deadline end = Deadline::In(cost_); !end.Expired();) {
    }
    connection->Reply(request.stream, {.status = 404, .headers = {}, .body = ""});
  }
  void OnClosed(HttpConnection&) override {}
  void OnTurnOver(const std::shared_ptr<HttpConnection>&) override { wants_another_ = true; }
  void OnLongRequest(const std::shared_ptr<HttpConnection>&) override { wants_long_turn_ = true; }
  void OnHeld(ptrdiff_t change) override { held_ += change; }
  void OnRefused(uint64_t) override {}
  Nanos OnTurn() override { return std::chrono::microseconds(200); }
  bool MayShakeHands() override { return true; }
  bool MayRead() const override { return may_read_; }

  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();
  UniqueFd peer_;
  std::shared_ptr<HttpConnection> connection_;
  Nanos cost_ = std::chrono::milliseconds(1);
  size_t requests_ = 0;
  bool wants_another_ = false;
  bool wants_long_turn_ = false;
  bool may_read_ = true;
  ptrdiff_t held_ = 0;
};

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
std::string PostOf(size_t bytes) {
  return Join("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ", bytes, "\r\n\r\n", std::string(bytes, 'b'));
}

// Property: requests that came together share a turn only if they are short; each has its turn, and none is lost.
TEST_F(HttpConnectionTest, ATurnIsShort) {
  std::string many;
  for (int i = 0; i < 50; ++i) many += kGet;
  Send(many);
  EXPECT_EQ(Turn(EPOLLIN), 1u);
  EXPECT_GT(held_, 0);
  for (int i = 1; i < 50; ++i) {
    EXPECT_TRUE(wants_another_);
    EXPECT_EQ(Turn(), 1u);
  }
  Turn();
  EXPECT_FALSE(wants_another_);
  EXPECT_EQ(held_, 0);
}

TEST_F(HttpConnectionTest, RequestsOfHttp2HaveTurnsToo) {
  std::string many = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (char stream = 1; stream < 100; stream += 2) {
    many += std::string("\0\0\6\1\5\0\0\0", 8) + stream + "\x82\x86\x84\x01\x01x";  // GET http / x
  }
  Send(many);
  EXPECT_EQ(Turn(EPOLLIN), 1u);
  while (wants_another_) EXPECT_LE(Turn(), 1u);
  EXPECT_EQ(requests_, 50u);
  EXPECT_EQ(held_, 0);
}

TEST_F(HttpConnectionTest, ARequestThatIsTakenBackAtOnceIsNotRun) {
  std::string many = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (char stream = 1; stream < 8; stream += 2)
    many += std::string("\0\0\6\1\5\0\0\0", 8) + stream + "\x82\x86\x84\x01\x01x";
  Send(many + std::string("\0\0\4\3\0\0\0\0\7\0\0\0\10", 13));  // RST_STREAM, CANCEL, of the last
  EXPECT_EQ(Turn(EPOLLIN), 1u);
  while (wants_another_) Turn();
  EXPECT_EQ(requests_, 3u);
  EXPECT_EQ(held_, 0);
}

// Property: a long body does not have the thread for itself.
TEST_F(HttpConnectionTest, ATurnReadsAFewChunks) {
  constexpr ptrdiff_t kBody = 2'000'000, kMost = 140'000;
  const std::string post = PostOf(kBody);
  int turns = 0;
  for (std::string_view left = post; !left.empty() || wants_another_; ++turns) {
    const ssize_t n = send(peer_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (n > 0) left.remove_prefix(static_cast<size_t>(n));
    const ptrdiff_t before = held_;
    Turn(EPOLLIN);
    EXPECT_LE(held_ - before, kMost);
  }
  EXPECT_GE(turns, kBody / kMost);
  connection_->LongTurn();
  EXPECT_EQ(requests_, 1u);
}

// Property: short requests do not wait behind the long requests of others.
TEST_F(HttpConnectionTest, LongRequestsHaveATurnEach) {
  Send(PostOf(10'000) + PostOf(10'000));
  Turn(EPOLLIN);
  for (const size_t requests : {1u, 2u}) {
    EXPECT_EQ(Turn(), 0u);
    EXPECT_TRUE(std::exchange(wants_long_turn_, false));
    connection_->LongTurn();
    EXPECT_EQ(requests_, requests);
  }
  Send(kGet);
  EXPECT_EQ(Turn(EPOLLIN), 1u);
}

// Property: while all connections hold too much, one that holds little is served.
TEST_F(HttpConnectionTest, LittleIsReadWhateverOthersHold) {
  may_read_ = false;
  Send(kGet);
  EXPECT_EQ(Turn(EPOLLIN), 1u);
  Send(PostOf(2 * HttpConnection::kLittle));
  EXPECT_EQ(Turn(EPOLLIN), 0u);
  EXPECT_LE(held_, static_cast<ptrdiff_t>(HttpConnection::kLittle));
  EXPECT_FALSE(wants_long_turn_);
  may_read_ = true;
  Turn();
  EXPECT_TRUE(wants_long_turn_);
}

}  // namespace
}  // namespace curtail::gateway::internal
