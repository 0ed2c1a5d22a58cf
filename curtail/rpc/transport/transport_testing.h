// SPDX-License-Identifier: Apache-2.0
//
// transport_testing.h - networks and peers that misbehave, and servers with TLS, for the tests of transports.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/rpc/rpc_testing.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/rpc/transport/tls_testing.h"

namespace curtail {

// Gives a socket that is not connected yet buffers of about `bytes`, and small segments: a window below the size of a
// segment makes TCP wait for timers.
inline void SetTinyBuffers(int fd, int bytes) {
  const int segment = 536;
  setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

// A blocking connection to an address; `buffer` > 0: with tiny buffers.
inline internal::UniqueFd Dial(const std::string& address, int buffer = 0) {
  const auto resolved = Address::Resolve(address);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  internal::UniqueFd fd(socket(resolved->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer > 0) SetTinyBuffers(fd.get(), buffer);
  EXPECT_EQ(connect(fd.get(), resolved->raw(), resolved->size), 0) << address;
  return fd;
}

// A TestListener accepts on 127.0.0.1 in a thread of its own, which handles one connection after the other.
class TestListener {
 public:
  // `handle` gets a connection and a descriptor that becomes readable when the test is over.
  using Handle = std::function<void(internal::UniqueFd connection, int stop)>;

  explicit TestListener(Handle handle, int buffer = 0)
      : handle_(std::move(handle)), stop_(eventfd(0, EFD_CLOEXEC)) {
    listener_ = internal::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (buffer > 0) SetTinyBuffers(listener_.get(), buffer);  // those accepted inherit them
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    address_ = internal::BoundAddress(listener_.get());
    thread_ = std::thread([this] {
      while (Wait(listener_.get(), stop_.get())) {
        handle_(internal::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)), stop_.get());
      }
    });
  }
  ~TestListener() {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  TestListener(const TestListener&) = delete;
  TestListener& operator=(const TestListener&) = delete;

  const std::string& address() const { return address_; }

  // True if `fd` is readable (or ended) before the test is over.
  static bool Wait(int fd, int stop) {
    pollfd fds[] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
    return poll(fds, 2, static_cast<int>(kMaxTestWait / milliseconds(1))) > 0 && fds[1].revents == 0;
  }

 private:
  const Handle handle_;
  internal::UniqueFd listener_;
  internal::UniqueFd stop_;
  std::string address_;
  std::thread thread_;
};

// A server that waits until it hears something, says `words`, and then goes or stays silent.
class ScriptedServer {
 public:
  enum After { kClose, kStay };
  ScriptedServer(std::string words, After after)
      : listener_([words = std::move(words), after](internal::UniqueFd connection, int stop) {
          char heard[4096];
          if (!TestListener::Wait(connection.get(), stop)) return;
          // All that was sent, or the end is a reset.
          if (recv(connection.get(), heard, sizeof heard, 0) <= 0) return;
          if (!words.empty()) send(connection.get(), words.data(), words.size(), MSG_NOSIGNAL);
          while (after == kStay && TestListener::Wait(connection.get(), stop)) {
            if (recv(connection.get(), heard, sizeof heard, 0) <= 0) return;
          }
        }) {}
  const std::string& address() const { return listener_.address(); }

 private:
  TestListener listener_;
};

struct RelayOptions {
  size_t chunk = 1024;          // bytes copied at a time
  int buffer = 0;               // of the sockets, in bytes; 0: the system's
  size_t cut_after = SIZE_MAX;  // bytes from the server, after which both sides are closed
};

// Copies bytes between a client and a server, in small pieces.
class SlowRelay {
 public:
  SlowRelay(std::string target, RelayOptions options)
      : listener_(
            [target = std::move(target), options](internal::UniqueFd client, int stop) {
              Run(client, Dial(target, options.buffer), stop, options);
            },
            options.buffer) {}
  const std::string& address() const { return listener_.address(); }

 private:
  static bool Write(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

 public:
  // Copies until one side ends, or `stop` is readable.
  static void Run(const internal::UniqueFd& client, const internal::UniqueFd& server, int stop,
                  RelayOptions options) {
    internal::SetTcpOptions(client.get());
    internal::SetTcpOptions(server.get());
    std::vector<char> bytes(options.chunk);
    size_t left = options.cut_after;
    while (true) {
      pollfd fds[] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}, {stop, POLLIN, 0}};
      if (poll(fds, 3, static_cast<int>(kMaxTestWait / milliseconds(1))) <= 0 || fds[2].revents != 0) return;
      for (const bool from_server : {false, true}) {
        if (fds[from_server ? 1 : 0].revents == 0) continue;
        const int from = from_server ? server.get() : client.get();
        const size_t room = from_server ? std::min(options.chunk, left) : options.chunk;
        const ssize_t n = recv(from, bytes.data(), room, 0);
        if (n <= 0) return;
        const int on = 1;  // or small buffers wait for delayed acknowledgements
        setsockopt(from, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
        const std::string_view piece(bytes.data(), static_cast<size_t>(n));
        if (!Write(from_server ? client.get() : server.get(), piece)) return;
        if (from_server && (left -= piece.size()) == 0) {
          // The client's bytes of meanwhile are read, or it would see a reset.
          shutdown(client.get(), SHUT_WR);
          while (TestListener::Wait(client.get(), stop) &&
                 recv(client.get(), bytes.data(), options.chunk, 0) > 0) {
          }
          return;
        }
      }
    }
  }

 private:
  TestListener listener_;
};

// An authority, a certificate of it for this machine, and servers and channels that use them.
class TlsBase : protected RpcBase {
 protected:
  struct Setup {
    const TestCertificate* certificate = nullptr;  // null: plain text
    const TestCertificate* clients = nullptr;      // who vouches for clients
    std::vector<Channel*> leaves = {};
    std::string listen = "127.0.0.1:0";
  };
  std::unique_ptr<Server> StartTls(const Setup& setup, const std::string& config = "SIB1") {
    ServerOptions options;
    options.listen = {setup.listen};
    options.config = *Config::Parse(config);
    if (setup.certificate != nullptr) {
      auto tls = ServerTls::Load({.certificate_file = setup.certificate->file(),
                                  .key_file = setup.certificate->key_file(),
                                  .client_ca_file = setup.clients != nullptr ? setup.clients->file() : ""});
      EXPECT_TRUE(tls.ok()) << tls.status();
      options.tls = *std::move(tls);
    }
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, setup.leaves, &cancelled_));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  static std::shared_ptr<const ClientTls> Trust(const TestCertificate& authority) {
    auto tls = ClientTls::Load({.ca_file = authority.file()});
    EXPECT_TRUE(tls.ok()) << tls.status();
    return *std::move(tls);
  }

  const TestCertificate authority_{{.common_name = "test authority", .names = ""}};
  const TestCertificate leaf_{{.common_name = "test server"}, &authority_};
  Client client_;
};

}  // namespace curtail
