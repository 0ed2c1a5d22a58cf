// SPDX-License-Identifier: Apache-2.0
//
// The memory of a server after a flood, seen from outside: a process of its own, and peers that fill its budget with
// half-sent messages, replies that they do not take, and streams that they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/testing.h"
#include "curtail/exec/address.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/wire/session.h"
#include "process.h"
#include "soak.pb.h"

namespace curtail::soak {
namespace {

constexpr size_t kMiB = 1u << 20;
// The time that the peers may take for it.
constexpr std::chrono::seconds kFlood(30);
constexpr std::chrono::seconds kBack(30);
constexpr double kRestMib = 100;
constexpr double kFloodMib = 300;

// A FloodPeer is a client that stops where it is told to. Thread-compatible.
class FloodPeer final : public wire::Events {
 public:
  explicit FloodPeer(const std::string& address) {
    const absl::StatusOr<Address> to = Address::Resolve(address);
    EXPECT_TRUE(to.ok()) << to.status();
    fd_.Reset(socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(connect(fd_.get(), to->raw(), to->size), 0);
  }
  void OnMessage(wire::StreamId, void*, std::string&&) override {}
  void OnCallEnd(wire::StreamId, void*, absl::Status&&, wire::Metadata&&) override {}
  TimePoint now() override { return Now(); }

  // A request of so many bytes.
  void Begin(const char* path, size_t bytes) {
    wire::RequestHead head;
    head.path = path;
    Packet packet;
    packet.set_payload(std::string(bytes, 'f'));
    ASSERT_TRUE(session_.StartUnaryCall(head, packet.SerializeAsString(), nullptr).ok());
  }
  // Sends so many bytes, if there are as many and the server takes them by `until`. Takes what the server says meanwhile,
  // and nothing afterwards.
  void Send(size_t bytes, Deadline until) {
    for (std::string out; sent_ < bytes && !until.Expired();) {
      if (out.empty()) session_.Pull(&out, 64u << 10);
      if (out.empty() && session_.queued_bytes() == 0) return;
      pollfd ready{fd_.get(), static_cast<short>(POLLIN | (out.empty() ? 0 : POLLOUT)), 0};
      poll(&ready, 1, 10);
      if ((ready.revents & POLLIN) != 0 && !Take()) return;
      const ssize_t n = send(fd_.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n <= 0) continue;
      sent_ += static_cast<size_t>(n);
      out.erase(0, static_cast<size_t>(n));
    }
  }

 private:
  bool Take() {
    char bytes[64 << 10];
    const ssize_t n = recv(fd_.get(), bytes, sizeof(bytes), 0);
    return n > 0 && session_.Receive({bytes, static_cast<size_t>(n)}).ok();
  }

  internal::UniqueFd fd_;
  wire::Session session_{wire::Role::kClient, {}, this};
  size_t sent_ = 0;
};

class MemoryTest : public testing::TestWithParam<const char*> {
 protected:
  MemoryTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    address_ = "unix:" + folder_ + "/server";
    server_ = std::make_unique<ServerProcess>(
        "server",
        std::vector<std::string>{CURTAIL_SOAK_SERVER, "--listen", address_, "--config", GetParam(), "--leaf",
                                 "unix:" + folder_ + "/none"},
        folder_ + "/log");
    const absl::Status started = server_->Start();
    EXPECT_TRUE(started.ok()) << started;
  }
  ~MemoryTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  double Resident() const { return HeldBy(server_->pid()).resident_mib; }
  // Twenty connections, of each kind in turn.
  std::vector<std::unique_ptr<FloodPeer>> Flood() {
    std::vector<std::unique_ptr<FloodPeer>> peers;
    const Deadline until = Deadline::In(kFlood);
    for (int i = 0; i < 20; ++i) {
      FloodPeer& peer = *peers.emplace_back(std::make_unique<FloodPeer>(address_));
      if (i % 5 == 0) {
        peer.Begin("/curtail.soak.Woven/Echo", 15 * kMiB);  // and takes no reply
      } else if (i % 5 == 1) {
        for (int stream = 0; stream < 15; ++stream) peer.Begin("/curtail.soak.Streams/Chat", kMiB);  // held
      } else {
        peer.Begin("/curtail.soak.Woven/Echo", 31 * kMiB);  // half sent
      }
      peer.Send(30 * kMiB, until);
    }
    return peers;
  }

  std::string folder_ = testing::TempDir() + "curtail_memory.XXXXXX";
  std::string address_;
  std::unique_ptr<ServerProcess> server_;
};
INSTANTIATE_TEST_SUITE_P(Models, MemoryTest, testing::Values("auto", "SDB1-8"));

TEST_P(MemoryTest, GoesBackToTheSystemOnceAFloodIsOver) {
  double most = 0;
  {
    const auto peers = Flood();
    for (const Deadline until = Deadline::In(kMaxTestWait); most < kFloodMib && !until.Expired();
         poll(nullptr, 0, 20))
      most = std::max(most, Resident());
  }
  EXPECT_GE(most, kFloodMib) << "the flood was none";
  const TimePoint over = Now();
  double now = Resident();
  for (const Deadline until = Deadline::In(kBack); now >= kRestMib && !until.Expired(); poll(nullptr, 0, 50))
    now = Resident();
  EXPECT_LT(now, kRestMib) << "MiB, " << kBack.count() << " s after a flood of " << most;
  std::cout << "resident: " << most << " MiB, then " << now << " after " << InSeconds(Now() - over) << " s\n";
}

}  // namespace
}  // namespace curtail::soak
