// SPDX-License-Identifier: Apache-2.0
#include "bench/victims/crowd.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace curtail::victims {

Crowd::Crowd(std::string address, const Attack& attack, std::string_view bytes)
    : address_(std::move(address)),
      manner_(attack.manner),
      bytes_(bytes),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      peers_(static_cast<size_t>(attack.connections)),
      answers_(256u << 10),
      thread_([this] { Run(); }) {}

uint64_t Crowd::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return sent_;
}

void Crowd::Run() {
  std::array<epoll_event, 256> events;
  constexpr int kTickMs = 10;
  while (!stop_) {
    for (Peer& peer : peers_) {
      if (peer.fd.get() < 0) Connect(peer);
    }
    const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kTickMs);
    for (int i = 0; i < n; ++i) Drive(peers_[events[i].data.u32], events[i].events);
  }
}

// A connection that the machine has no room for is tried again later.
void Crowd::Connect(Peer& peer) {
  absl::StatusOr<bench::Fd> fd = bench::BeginToConnect(address_);
  if (!fd.ok()) return;
  peer.fd = *std::move(fd);
  peer.sent = 0;
  Watch(peer, EPOLL_CTL_ADD, EPOLLOUT);
}

void Crowd::Watch(Peer& peer, int how, uint32_t events) {
  epoll_event event{.events = events | EPOLLRDHUP | (manner_ == Manner::kReads ? EPOLLIN : 0u),
                    .data = {.u32 = static_cast<uint32_t>(&peer - peers_.data())}};
  epoll_ctl(epoll_.get(), how, peer.fd.get(), &event);
}

void Crowd::Drive(Peer& peer, uint32_t events) {
  bool open = (events & (EPOLLERR | EPOLLHUP)) == 0;
  if (manner_ != Manner::kReads) {
    open = open && (events & EPOLLRDHUP) == 0;
  } else if (open && (events & EPOLLIN) != 0) {
    const ssize_t n = recv(peer.fd.get(), answers_.data(), answers_.size(), 0);
    open = n > 0 || (n < 0 && errno == EAGAIN);
  }
  if (open && (events & EPOLLOUT) != 0) open = Send(peer);
  if (!open) peer.fd = {};
}

bool Crowd::Send(Peer& peer) {
  constexpr size_t kMost = 256u << 10;
  const std::string_view next = bytes_.substr(peer.sent, kMost);
  const ssize_t n = send(peer.fd.get(), next.data(), next.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN;
  peer.sent += static_cast<size_t>(n);
  sent_ += static_cast<uint64_t>(n);
  if (peer.sent < bytes_.size()) return true;
  if (manner_ == Manner::kLeaves) return false;
  if (manner_ == Manner::kReads) shutdown(peer.fd.get(), SHUT_WR);
  Watch(peer, EPOLL_CTL_MOD, 0);
  return true;
}

}  // namespace curtail::victims
