// SPDX-License-Identifier: Apache-2.0
//
// gateway_fixture.h - a gateway in front of a server, and clients of it, for tests.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/gateway.h"
#include "curtail/gateway/testing/library_service.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/transport/socket.h"
#include "gtest/gtest.h"

namespace curtail::gateway {

// A frame of HTTP/2.
inline std::string Frame(char type, char flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += {type, flags};
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame.append(payload);
}
// A client's beginning of HTTP/2.
inline std::string Preface(std::string_view settings = {}) {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, settings);
}
// Its streams have no window until it opens them.
inline std::string ParkingPreface() { return Preface({"\0\4\0\0\0\0", 6}); }
// The head of a GET, which is all of it.
inline std::string GetFrame(uint32_t stream, std::string_view path) {
  return Frame(1, 5, stream,
               Join("\x82\x86\x04", std::string(1, static_cast<char>(path.size())), path, "\1\1x"));
}

// A client's socket. Its reads wait for kMaxTestWait at most.
class Peer {
 public:
  explicit Peer(const std::string& address) {
    bool connected = false;
    auto fd = curtail::internal::StartConnect(*Address::Resolve(address), &connected);
    EXPECT_TRUE(fd.ok()) << fd.status();
    fd_ = *std::move(fd);
    const timeval limit{.tv_sec = kMaxTestWait.count() / 1'000'000'000, .tv_usec = 0};
    const int flags = fcntl(fd_.get(), F_GETFL);
    fcntl(fd_.get(), F_SETFL, flags & ~O_NONBLOCK);
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void Write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Waits until what came holds `text`; returns all that came, and forgets it.
  std::string ReadUntil(std::string_view text) {
    while (in_.find(text) == std::string::npos && More()) {
    }
    return std::exchange(in_, {});
  }
  // A reply of HTTP/1.1 with its body.
  std::string Read() {
    size_t end;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return std::exchange(in_, {});
    }
    const size_t field = in_.find("content-length: ");
    const size_t body = field < end ? std::stoul(in_.substr(field + 16)) : 0;
    while (in_.size() < end + 4 + body && More()) {
    }
    std::string reply = in_.substr(0, end + 4 + body);
    in_.erase(0, reply.size());
    return reply;
  }
  // A reply of HTTP/1.1 that comes in chunks: its head, and what was in them.
  std::string ReadChunks() {
    const std::string all = ReadUntil("0\r\n\r\n");
    size_t at = all.find("\r\n\r\n") + 4;
    std::string reply = all.substr(0, at);
    while (at < all.size()) {
      const size_t size = std::stoul(all.substr(at), nullptr, 16);
      at = all.find("\r\n", at) + 2;
      reply += all.substr(at, size);
      at += size + 2;
    }
    return reply;
  }
  // The next bytes, if some come.
  std::string ReadSome() {
    if (in_.empty()) More();
    return std::exchange(in_, {});
  }
  bool Closed() {
    while (More()) {
    }
    return ended_;
  }
  // Leaves by a reset.
  void Abandon() {
    const linger reset{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    fd_.Reset();
  }
  // Closed, and not in good order.
  bool Reset() { return Closed() && reset_; }

 private:
  bool More() {
    char buffer[4096];
    const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    reset_ |= n < 0 && errno == ECONNRESET;
    ended_ = n == 0 || reset_;
    if (n > 0) in_.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }
  curtail::internal::UniqueFd fd_;
  std::string in_;
  bool ended_ = false;
  bool reset_ = false;
};

// A gateway, which starts with its first use, in front of a server of LibraryService.
class GatewayTest : public testing::Test {
 protected:
  GatewayTest() { Serve({}); }
  // Nothing that a client asked for is left in the server.
  void TearDown() override {
    if (server_ == nullptr) return;
    library_->Release();
    gateway_.reset();
    EXPECT_TRUE(Await([this] { return server_->Sample().open_calls == 0; }));
  }
  void Serve(ServerOptions options) {
    options.listen = {"127.0.0.1:0"};
    std::vector<std::unique_ptr<Service>> services;
    auto library = std::make_unique<LibraryService>();
    library_ = library.get();
    services.push_back(std::move(library));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    options_.target = server_->addresses()[0];
    options_.listen = "127.0.0.1:0";
    options_.allowed_hosts = {"x"};
  }
  Gateway& gateway() {
    if (gateway_ == nullptr) {
      const absl::StatusOr<Catalog> catalog =
          Catalog::FromServer(options_.target, options_.channel, kMaxTestWait);
      EXPECT_TRUE(catalog.ok()) << catalog.status();
      auto gateway = Gateway::Start(options_, *catalog);
      EXPECT_TRUE(gateway.ok()) << gateway.status();
      gateway_ = *std::move(gateway);
    }
    return *gateway_;
  }
  Peer Connect() { return Peer(gateway().address()); }
  std::string Ask(std::string_view verb_and_path, std::string_view body = {}, std::string_view headers = {}) {
    Peer peer = Connect();
    peer.Write(Join(verb_and_path, " HTTP/1.1\r\nhost: x\r\n", headers));
    if (!body.empty() && headers.find("content-type") == std::string_view::npos) {
      peer.Write("content-type: application/json\r\n");
    }
    if (!body.empty()) peer.Write(Join("content-length: ", body.size(), "\r\n"));
    peer.Write(Join("\r\n", body));
    return peer.Read();
  }

  // Waits until `done` holds.
  template <class Done>
  static bool Await(Done done) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!done() && !deadline.Expired()) std::this_thread::yield();
    return done();
  }
  // A request with a body of JSON.
  static std::string Post(std::string_view path, std::string_view body) {
    return Join("POST ", path,
                " HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ", body.size(),
                "\r\n\r\n", body);
  }
  // One that the gateway answers itself.
  static constexpr char kNowhere[] = "GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n";

  LibraryService* library_ = nullptr;  // the server's
  GatewayOptions options_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace curtail::gateway
