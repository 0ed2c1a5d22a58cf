// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/socket.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

TEST(Address, PrintsWhatItParsed) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:80", "unix:/tmp/x.sock", "0.0.0.0:0"}) {
    const auto address = Address::Resolve(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(Address, RefusesOtherForms) {
  const std::string long_path = "unix:" + std::string(200, 'p');
  for (const std::string& text :
       {std::string("host"), std::string("1.2.3.4:"), std::string("1.2.3.4:65536"), std::string("1.2.3.4:-1"),
        std::string("::1:80"), std::string("unix:"), long_path}) {
    EXPECT_EQ(Address::Resolve(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  const auto error = [](const char* text) { return std::string(Message(Address::Resolve(text).status())); };
  EXPECT_EQ(error("9090"), "address \"9090\" has no host; write 127.0.0.1:9090");
  EXPECT_EQ(error("a:99999"), "address \"a:99999\": port 99999 is above 65535");
  EXPECT_THAT(error("a:http"),
              testing::StartsWith("address \"a:http\" has a port that is not a number; write"));
}

TEST(Listen, TakesOverAUnixPathThatNobodyServes) {
  const auto address = Address::Resolve(Join("unix:", testing::TempDir(), "/curtail_socket_test.", getpid()));
  ASSERT_TRUE(address.ok());
  {
    const auto first = Listen(*address);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Listen(*address).status().code(), absl::StatusCode::kAlreadyExists);
  }
  const auto second = Listen(*address);  // the path is still there, its server is not
  EXPECT_TRUE(second.ok()) << second.status();
  unlink(address->ToString().c_str() + 5);
}

TEST(Listen, LeavesOtherFilesAlone) {
  const std::string path = Join(testing::TempDir(), "/curtail_socket_test_file.", getpid());
  std::ofstream(path) << "precious";
  const auto address = Address::Resolve("unix:" + path);
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(Listen(*address).status().code(), absl::StatusCode::kAlreadyExists);
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "precious");
  unlink(path.c_str());
}

// A connection to a listening socket: both of its ends.
struct Pair {
  explicit Pair(const std::string& text) {
    const auto listener = Listen(*Address::Resolve(text));
    if (!listener.ok()) return;
    bool connected = false;
    auto started = StartConnect(*Address::Resolve(BoundAddress(listener->get())), &connected);
    if (!started.ok()) return;
    near = *std::move(started);
    pollfd waits{.fd = listener->get(), .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, 10'000) == 1)
      far = UniqueFd(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  UniqueFd near, far;
};

TEST(Arrival, IsWhenTheBytesCameAndNotWhenTheyAreRead) {
  constexpr Nanos kUnread = std::chrono::milliseconds(20);
  const Pair pair("127.0.0.1:0");
  ASSERT_TRUE(pair.far);
  ASSERT_TRUE(StampArrivals(pair.near.get()));
  bool told = false;
  // The kernel may begin to note times a little later than it was asked to. This thread may lose its CPU at any point.
  for (int i = 0; i < 50 && !told; ++i) {
    const TimePoint before = Now();
    ASSERT_EQ(send(pair.far.get(), "abcdef", 6, 0), 6);
    const TimePoint sent = Now();
    while (Now() < sent + kUnread) {
    }
    char first[2], second[16];
    TimePoint arrived;
    ASSERT_EQ(ReceiveStamped(pair.near.get(), first, second, &arrived), 6);
    EXPECT_EQ(std::string(first, 2) + std::string(second, 4), "abcdef");
    EXPECT_LE(arrived, Now());
    told = arrived > before - kUnread / 4 && arrived < sent + kUnread / 4;
  }
  EXPECT_TRUE(told);
}

TEST(Arrival, OfAUnixSocketIsNotKnown) {
  const std::string path = Join(testing::TempDir(), "/curtail_arrival_test.", getpid());
  const Pair pair("unix:" + path);
  ASSERT_TRUE(pair.far);
  EXPECT_FALSE(StampArrivals(pair.near.get()));
  ASSERT_EQ(send(pair.far.get(), "a", 1, 0), 1);
  char byte[1];
  TimePoint arrived = Now();
  ASSERT_EQ(ReceiveStamped(pair.near.get(), {}, byte, &arrived), 1);
  EXPECT_EQ(arrived, TimePoint());
  unlink(path.c_str());
}

}  // namespace
}  // namespace curtail::internal
