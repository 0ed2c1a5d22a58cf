// SPDX-License-Identifier: Apache-2.0
//
// hostile_testing.h - a client of HTTP/2 that says what it likes, and a server for it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/wire/http/http2_frames_testing.h"

namespace curtail {

inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;

using wire::DataOf;
using wire::Prefix;

inline std::string FrameOf(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  return wire::Frame(type, flags, stream, payload);
}

// A field that leaves HPACK's table as it is.
inline std::string FieldOf(std::string_view name, std::string_view value) {
  return wire::Literal('\0', name, value);
}

inline std::string Head(uint32_t stream, std::string_view path, const std::string& more = "",
                        uint8_t flags = 0) {
  return FrameOf(1, kEndHeaders | flags, stream,
                 "\x83\x86" + FieldOf(":path", path) + FieldOf("content-type", "application/grpc") + more);
}

// A StringValue of `size` letters.
inline std::string BigText(size_t size) { return Text(std::string(size, 'x')).SerializeAsString(); }

inline std::string StatusOf(int code) { return "grpc-status\x01" + std::to_string(code); }

// A client on a socket of its own, which says what it likes.
class Attacker {
 public:
  explicit Attacker(const std::string& address, int buffer = 0) : fd_(Dial(address, buffer)) {
    const timeval timeout{.tv_sec = std::chrono::duration_cast<seconds>(kMaxTestWait).count(), .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  }
  // With the preface and these settings.
  static Attacker Greeting(const std::string& address, std::string_view settings = {}) {
    Attacker attacker(address);
    attacker.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FrameOf(4, 0, 0, settings));
    return attacker;
  }

  // The server may stop reading, or close in the middle of it: false.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Reads until the server has said `text`; false if it closes, or says nothing in time.
  bool AwaitText(const std::string& text) {
    while (heard_.find(text) == std::string::npos) {
      if (!Read()) return false;
    }
    return true;
  }
  // Reads so many bytes; the same.
  bool AwaitBytes(size_t bytes) {
    while (heard_.size() < bytes) {
      if (!Read()) return false;
    }
    return true;
  }
  // Reads until the server closes; false if it does not in time.
  bool AwaitClose() {
    while (Read()) continue;
    return closed_;
  }
  const std::string& heard() const { return heard_; }
  int fd() const { return fd_.get(); }

 private:
  bool Read() {
    char buffer[16384];
    const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    closed_ = n == 0 || (n < 0 && errno == ECONNRESET);
    if (n > 0) heard_.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  internal::UniqueFd fd_;
  std::string heard_;
  bool closed_ = false;
};

// By config.
class HostileTest : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  HostileTest() {
    options_.config = *Config::Parse(GetParam());
    options_.health = options_.reflection = false;
  }
  void TearDown() override {
    gate_.Open();
    ExpectNothingInUse(server_.get());
  }
  void Serve() {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), &cancelled_));
    auto server = Server::Start(options_, std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string address() { return server_->addresses()[0]; }
  uint64_t Reached(std::string_view limit) {
    for (const LimitCount& count : server_->Sample().limits) {
      if (count.name == limit) return count.times;
    }
    return 0;
  }
  static bool Eventually(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!condition()) {
      if (deadline.Expired()) return false;
      BetweenLooks();
    }
    return true;
  }

  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

}  // namespace curtail
