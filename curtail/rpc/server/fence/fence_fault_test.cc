// SPDX-License-Identifier: Apache-2.0
//
// A service that stops in the middle of its work, with its connections open, as a process does under SIGSTOP: its path
// keeps to its permits, other paths go on, and all permits are back when it goes on.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/rpc/server/fence/fence_server_testing.h"
#include "curtail/rpc/transport/transport_testing.h"

namespace curtail {
namespace {

// Copies bytes between clients and a server, and keeps the server's while it stalls.
class StallingRelay {
 public:
  explicit StallingRelay(std::string server)
      : server_(std::move(server)),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 64), 0);
    thread_ = std::thread([this] {
      while (!over_) Turn();
    });
  }
  ~StallingRelay() {
    over_ = true;
    Tell();
    thread_.join();
  }
  std::string address() const { return internal::BoundAddress(listener_.get()); }

  // The server's next bytes pass, and no more.
  void Stall(size_t bytes) { may_pass_ = bytes; }
  void Resume() {
    may_pass_ = SIZE_MAX;
    Tell();
  }

 private:
  struct Pair {
    internal::UniqueFd client, server;
  };

  void Tell() { EXPECT_EQ(eventfd_write(news_.get(), 1), 0); }
  void Turn() {
    std::vector<pollfd> fds = {{news_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    const bool stalled = may_pass_ == 0;
    for (const Pair& pair : pairs_) {
      fds.push_back({pair.client.get(), POLLIN, 0});
      fds.push_back({stalled ? -1 : pair.server.get(), POLLIN, 0});
    }
    ASSERT_GT(poll(fds.data(), fds.size(), static_cast<int>(kMaxTestWait / milliseconds(1))), 0);
    eventfd_t news;
    eventfd_read(news_.get(), &news);  // if there are any
    for (size_t i = pairs_.size(); i-- > 0;) {
      const Pair& pair = pairs_[i];
      bool open = fds[2 + 2 * i].revents == 0 || Copy(pair.client.get(), pair.server.get(), SIZE_MAX) > 0;
      if (open && fds[3 + 2 * i].revents != 0) {
        size_t limit = may_pass_;
        const ssize_t copied = limit == 0 ? 1 : Copy(pair.server.get(), pair.client.get(), limit);
        open = copied > 0;
        if (limit != SIZE_MAX && limit > 0 && open) {  // unless the test resumed meanwhile
          may_pass_.compare_exchange_strong(limit, limit - static_cast<size_t>(copied));
        }
      }
      if (!open) pairs_.erase(pairs_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (fds[1].revents != 0) {
      pairs_.push_back(
          {internal::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)), Dial(server_)});
    }
  }
  // Copies what is there; 0 or less at the end.
  static ssize_t Copy(int from, int to, size_t limit) {
    char bytes[4096];
    const ssize_t n = recv(from, bytes, std::min(limit, sizeof bytes), 0);
    return n <= 0 ? n : send(to, bytes, static_cast<size_t>(n), MSG_NOSIGNAL);  // they fit a socket's buffer
  }

  const std::string server_;
  const internal::UniqueFd listener_, news_;
  std::vector<Pair> pairs_;  // owned by the thread
  // Atomic: written by the test, and by the thread while it is finite.
  std::atomic<size_t> may_pass_{SIZE_MAX};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

struct HasRelay {
  std::unique_ptr<StallingRelay> relay_;
};

struct Stall {
  const char* config;
  size_t bytes;  // of the answer that come before it
};

class FenceFault : private HasRelay, public FenceServerTest, public testing::WithParamInterface<Stall> {
 protected:
  static constexpr uint64_t kPermits = 3;

  FenceFault()
      : FenceServerTest([this](std::string leaf) {
          relay_ = std::make_unique<StallingRelay>(std::move(leaf));
          return relay_->address();
        }) {
    holder_.Open();
  }
  ~FenceFault() override { relay_->Resume(); }

  // The service has answered once, and stops.
  void ServeAndStall() {
    Serve(FenceMode::kStrict, GetParam().config);
    ASSERT_TRUE(Call(*channel_, kSlow, "x").ok());
    ASSERT_TRUE(Becomes([&] { return ClassOf("test.Hold").in_use == 0; }))
        << "its permit is back after its reply";
    relay_->Stall(GetParam().bytes);
  }
  void Resume() { relay_->Resume(); }
  // All permits are back, and the path works.
  void ExpectWhole(uint64_t begun) {
    EXPECT_TRUE(Becomes([&] { return ClassOf("test.Hold").in_use == 0; })) << "a permit is missing";
    EXPECT_EQ(ClassOf("test.Hold").waiting, 0u);
    EXPECT_EQ(ClassOf("test.Hold").begun, begun);
    EXPECT_TRUE(Call(*channel_, kSlow, "x").ok());
  }
};

// The rest of the path waits, then is refused, under the model of the start and under those it is switched to.
TEST_P(FenceFault, AServiceThatStopsKeepsToItsPermits) {
  ServeAndStall();
  CallSlow(kPermits + 4);
  AwaitStalled(kPermits, 4, 0, 1);
  ExpectRefused();
  ExpectQuick(20);
  for (const char* next : {"FIB1", "ADB1-8-1", "SDB1-8"}) {
    SCOPED_TRACE(next);
    ASSERT_TRUE(mid_->SwitchTo(*Config::Parse(next)).ok());
    AwaitStalled(kPermits, 4, ClassOf("test.Hold").refused, 1);
    ExpectRefused();
    ExpectQuick(3);
  }
  Resume();
  Release();
  EXPECT_EQ(answered_, kPermits + 4);
  EXPECT_EQ(refused_ + failed_, 0);
  ExpectWhole(1 + kPermits + 4);
}

// Requests whose time runs out meanwhile return their permits, without the service.
TEST_P(FenceFault, RequestsThatTimeOutReturnTheirPermits) {
  ServeAndStall();
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kPermits; ++i) {
      callers_.emplace_back([this] {
        ++(absl::IsDeadlineExceeded(Call(*channel_, kSlow, "x", nullptr, milliseconds(30))) ? failed_
                                                                                            : answered_);
      });
    }
    Release();
    EXPECT_TRUE(Becomes([&] { return ClassOf("test.Hold").in_use == 0; })) << "a permit is missing";
    ExpectQuick(3);
  }
  EXPECT_EQ(failed_, 2 * kPermits);
  Resume();
  ExpectWhole(ClassOf("test.Hold").begun);
}

INSTANTIATE_TEST_SUITE_P(Models, FenceFault,
                         testing::Values(Stall{"SDB1-8", 0}, Stall{"SDB1-8", 1}, Stall{"SIB8", 1},
                                         Stall{"FIB1", 0}, Stall{"FIB1", 1}, Stall{"ADB1-8-1", 0},
                                         Stall{"ADB1-8-1", 1}),
                         [](const auto& info) {
                           return std::string(info.param.config).substr(0, 3) + "After" +
                                  std::to_string(info.param.bytes);
                         });

}  // namespace
}  // namespace curtail
