// SPDX-License-Identifier: Apache-2.0
#include "message_loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace curtail::bench {
namespace {

constexpr size_t kReadBytes = 64 << 10;

timespec ToTimespec(Nanos nanos) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(nanos);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((nanos - seconds).count())};
}

}  // namespace

MessageLoop::MessageLoop(OnMessage on_message)
    : on_message_(std::move(on_message)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status MessageLoop::AddListener(int listener) {
  listener_ = listener;
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener, &event) != 0) return ErrnoStatus("epoll_ctl");
  return absl::OkStatus();
}

absl::StatusOr<MessageLoop::ConnectionId> MessageLoop::AddConnection(Fd fd) {
  const ConnectionId id = fd.get();
  epoll_event event{.events = EPOLLIN, .data = {.fd = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, id, &event) != 0) return ErrnoStatus("epoll_ctl");
  connections_[id].fd = std::move(fd);
  return id;
}

void MessageLoop::Send(ConnectionId id, const Message& message) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;  // the peer went away; so does its reply
  Connection& connection = found->second;
  connection.out.append(reinterpret_cast<const char*>(&message), sizeof(message));
  if (!connection.queued) {
    connection.queued = true;
    dirty_.push_back(id);
  }
}

absl::Status MessageLoop::Turn(Deadline deadline) {
  FlushDirty();
  epoll_event events[64];
  const timespec timeout = ToTimespec(deadline.Remaining());
  const int n = epoll_pwait2(epoll_.get(), events, std::size(events),
                             deadline.infinite() ? nullptr : &timeout, nullptr);
  if (n < 0 && errno != EINTR) return ErrnoStatus("epoll_wait");
  for (int i = 0; i < n; ++i) {
    const int fd = events[i].data.fd;
    if (fd == listener_) {
      AcceptOne();
      continue;
    }
    if (events[i].events & EPOLLOUT) Flush(fd);
    if (events[i].events & ~static_cast<uint32_t>(EPOLLOUT)) ReadFrom(fd);
  }
  FlushDirty();
  return absl::OkStatus();
}

void MessageLoop::AcceptOne() {
  absl::StatusOr<Fd> fd = Accept(listener_);
  if (fd.ok()) (void)AddConnection(std::move(*fd));
}

void MessageLoop::ReadFrom(ConnectionId id) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  char buffer[kReadBytes];
  const ssize_t n = recv(id, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    connections_.erase(found);
    return;
  }
  std::string& in = found->second.in;
  in.append(buffer, static_cast<size_t>(n));
  size_t at = 0;
  for (; in.size() - at >= sizeof(Message); at += sizeof(Message)) {
    Message message;
    std::memcpy(&message, in.data() + at, sizeof(message));
    on_message_(id, message);
  }
  in.erase(0, at);
}

void MessageLoop::Flush(ConnectionId id) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const ssize_t n = send(id, connection.out.data(), connection.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN && errno != EINTR) {
    connections_.erase(found);
    return;
  }
  if (n > 0) connection.out.erase(0, static_cast<size_t>(n));
  WatchWrites(connection, !connection.out.empty());
}

void MessageLoop::WatchWrites(Connection& connection, bool watch) {
  if (connection.waits_to_write == watch) return;
  connection.waits_to_write = watch;
  epoll_event event{.events = EPOLLIN | (watch ? EPOLLOUT : 0u), .data = {.fd = connection.fd.get()}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event);
}

void MessageLoop::FlushDirty() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    const ConnectionId id = dirty_[i];
    if (auto found = connections_.find(id); found != connections_.end()) found->second.queued = false;
    Flush(id);
  }
  dirty_.clear();
}

}  // namespace curtail::bench
