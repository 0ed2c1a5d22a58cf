// SPDX-License-Identifier: Apache-2.0
#include "relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace curtail::interop {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

int ConnectTo(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in peer = Loopback(std::atoi(address.c_str() + address.rfind(':') + 1));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    close(fd);
    return -1;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

Relay::Relay(const std::string& target) : target_(target), stop_(eventfd(0, EFD_CLOEXEC)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, length) != 0 || listen(listener_, 64) != 0) std::abort();
  getsockname(listener_, generic, &length);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  Cut();
  close(stop_);
}

void Relay::Cut() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_, 1);
  thread_.join();
}

void Relay::Run() {
  while (true) {
    std::vector<pollfd> events = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& [caller, server] : connections_) {
      events.push_back({caller, POLLIN, 0});
      events.push_back({server, POLLIN, 0});
    }
    if (poll(events.data(), events.size(), -1) < 0) continue;
    if (events[0].revents != 0) break;
    for (size_t i = connections_.size(); i-- > 0;) {
      const auto [caller, server] = connections_[i];
      const bool lives = (events[2 + 2 * i].revents == 0 || Copy(caller, server)) &&
                         (events[3 + 2 * i].revents == 0 || Copy(server, caller));
      if (lives) continue;
      close(caller);
      close(server);
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (events[1].revents != 0) Accept();
  }
  close(listener_);
  for (const auto& [caller, server] : connections_) {
    close(caller);
    close(server);
  }
  connections_.clear();
}

void Relay::Accept() {
  const int caller = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (caller < 0) return;
  const int server = ConnectTo(target_);
  if (server < 0) {
    close(caller);
    return;
  }
  connections_.emplace_back(caller, server);
}

bool Relay::Copy(int from, int to) {
  char buffer[16 << 10];
  const ssize_t n = recv(from, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) return false;
  for (ssize_t at = 0; at < n;) {
    const ssize_t sent = send(to, buffer + at, static_cast<size_t>(n - at), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
  }
  return true;
}

}  // namespace curtail::interop
