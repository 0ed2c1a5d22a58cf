// SPDX-License-Identifier: Apache-2.0
//
// The pool and its streams against a peer that sends back what it gets.
#include "curtail/store/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/exec/fiber/fiber_testing.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

using ::testing::HasSubstr;

Deadline InGoodTime() { return Deadline::In(kMaxTestWait); }
Deadline Shortly() { return Deadline::In(std::chrono::milliseconds(20)); }

// Sends back what it gets, on every connection, until it is closed.
class Echo {
 public:
  explicit Echo(const std::string& path) : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Echo() { Close(); }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  // Returns once every connection is closed.
  void Close() {
    if (!acceptor_.joinable()) return;
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int peer : peers_) shutdown(peer, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int peer : peers_) close(peer);
    close(listener_);
  }

 private:
  void Accept() {
    for (int peer; (peer = accept(listener_, nullptr, nullptr)) >= 0;) {
      peers_.push_back(peer);
      threads_.emplace_back([peer] {
        char bytes[4096];
        for (ssize_t got; (got = recv(peer, bytes, sizeof bytes, 0)) > 0;) {
          for (ssize_t sent = 0; sent < got;) {
            const ssize_t more = send(peer, bytes + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
            if (more <= 0) return;
            sent += more;
          }
        }
      });
    }
  }

  const int listener_;
  std::thread acceptor_;
  // Owned by the acceptor; after its end by Close().
  std::vector<int> peers_;
  std::vector<std::thread> threads_;
};

class PoolTest : public testing::Test {
 protected:
  // Returns when the store is gone and another one listens at its address.
  std::unique_ptr<Echo> Restart() {
    echo_.Close();
    unlink(dir_.File("echo").c_str());
    return std::make_unique<Echo>(dir_.File("echo"));
  }

  TempDir dir_;
  Echo echo_{dir_.File("echo")};
  StreamPool pool_{*StoreAddress::Parse("unix:" + dir_.File("echo")), "echo", 2};
};

TEST_F(PoolTest, AStreamCarriesMoreThanItsBuffer) {
  StreamPool::Lease lease;
  ASSERT_TRUE(pool_.Take(false, InGoodTime(), &lease).ok());
  const std::string body(50'000, 'b');
  ASSERT_TRUE(lease->Send({"head", body, "tail"}, InGoodTime()).ok());
  const std::string all = "head" + body + "tail";
  while (lease->received().size() < all.size()) {
    ASSERT_TRUE(lease->Receive(all.size(), InGoodTime()).ok());
  }
  EXPECT_EQ(lease->received(), all);
  EXPECT_EQ(lease->Receive(0, Shortly()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(lease->TryReceive(), Stream::State::kQuiet);
}

TEST_F(PoolTest, KeepsLittleOfAStoreThatSpeaksUnasked) {
  StreamPool::Lease lease;
  ASSERT_TRUE(pool_.Take(false, InGoodTime(), &lease).ok());
  const std::string all(150'000, 'b');
  ASSERT_TRUE(lease->Send({all}, InGoodTime()).ok());
  const Deadline late = InGoodTime();
  for (size_t come = 0; come < all.size();) {
    ASSERT_FALSE(late.Expired());
    const size_t before = lease->received().size() > 65'536 ? 0 : lease->received().size();
    if (lease->TryReceive() == Stream::State::kQuiet) continue;
    come += lease->received().size() - before;
    EXPECT_LE(lease->received().size(), 131'072u);
  }
}

TEST_F(PoolTest, LendsAConnectionAgainAndNoMoreThanItsLimit) {
  StreamPool::Lease first;
  {
    StreamPool::Lease second;
    ASSERT_TRUE(pool_.Take(false, InGoodTime(), &first).ok());
    ASSERT_TRUE(pool_.Take(false, InGoodTime(), &second).ok());
    EXPECT_FALSE(second.reused());
    StreamPool::Lease third;
    const absl::Status late = pool_.Take(false, Shortly(), &third);
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(late.message()), HasSubstr("all 2 connections to echo unix:"));
  }
  StreamPool::Lease again;
  ASSERT_TRUE(pool_.Take(false, InGoodTime(), &again).ok());
  EXPECT_TRUE(again.reused());
  EXPECT_NE(first.Remove(), nullptr);
  StreamPool::Lease fresh;
  ASSERT_TRUE(pool_.Take(false, InGoodTime(), &fresh).ok()) << "the removed one left room";
  EXPECT_FALSE(fresh.reused());
}

// On a thread and on a fiber, which have connections of their own.
TEST_F(PoolTest, ConnectionsThatEndedLeaveRoomForOthers) {
  std::unique_ptr<Echo> other;
  const auto use_all = [&] {
    StreamPool::Lease one, two, third;
    EXPECT_TRUE(pool_.Take(other != nullptr, InGoodTime(), &one).ok());
    EXPECT_TRUE(pool_.Take(false, InGoodTime(), &two).ok());
    EXPECT_FALSE(other != nullptr && (one.reused() || two.reused()));
    EXPECT_TRUE(absl::IsDeadlineExceeded(pool_.Take(false, Shortly(), &third)));
  };
  const auto fail = [&] {
    for (int more_than_the_limit = 0; more_than_the_limit < 3; ++more_than_the_limit) {
      StreamPool::Lease lease;
      EXPECT_TRUE(absl::IsUnavailable(pool_.Take(true, InGoodTime(), &lease)));
    }
  };
  use_all();
  RunOnFibers({[&] {
    use_all();
    echo_.Close();
    fail();
    std::thread(fail).join();
    other = Restart();
    use_all();
  }});
  use_all();
}

TEST_F(PoolTest, NoticesThatTheStoreIsGone) {
  StreamPool::Lease kept;
  ASSERT_TRUE(pool_.Take(false, InGoodTime(), &kept).ok());
  {
    StreamPool::Lease lease;
    ASSERT_TRUE(pool_.Take(false, InGoodTime(), &lease).ok());
    ASSERT_TRUE(lease->Send({"x"}, InGoodTime()).ok());
    ASSERT_TRUE(lease->Receive(0, InGoodTime()).ok());
  }
  EXPECT_FALSE(pool_.AnyIdleBroken());
  echo_.Close();
  EXPECT_TRUE(pool_.AnyIdleBroken());
  const absl::Status gone = kept->Receive(0, InGoodTime());
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("is gone"));
  StreamPool::Lease fresh;
  kept.Remove();
  const absl::Status refused = pool_.Take(true, InGoodTime(), &fresh);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is it running?"));
}

}  // namespace
}  // namespace curtail
