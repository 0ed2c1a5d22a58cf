// SPDX-License-Identifier: Apache-2.0
#include "frame_loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace curtail::bench {
namespace {

constexpr size_t kReadBytes = 64 << 10;

timespec ToTimespec(Nanos nanos) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(nanos);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((nanos - seconds).count())};
}

// Servers wait without end, and without epoll_pwait2, which valgrind does not know.
int WaitFor(int epoll, Deadline deadline, epoll_event* events, int count) {
  if (deadline.infinite()) return epoll_wait(epoll, events, count, -1);
  const timespec timeout = ToTimespec(deadline.Remaining());
  return epoll_pwait2(epoll, events, count, &timeout, nullptr);
}

}  // namespace

FrameLoop::FrameLoop(OnFrame on_frame)
    : on_frame_(std::move(on_frame)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status FrameLoop::AddListener(int listener) {
  listener_ = listener;
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener, &event) != 0) return ErrnoStatus("epoll_ctl");
  return absl::OkStatus();
}

absl::StatusOr<FrameLoop::ConnectionId> FrameLoop::AddConnection(Fd fd) {
  const ConnectionId id = fd.get();
  epoll_event event{.events = EPOLLIN, .data = {.fd = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, id, &event) != 0) return ErrnoStatus("epoll_ctl");
  connections_[id].fd = std::move(fd);
  return id;
}

void FrameLoop::Send(ConnectionId id, std::string_view frame) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;  // the peer went away; so does its reply
  Connection& connection = found->second;
  connection.out.append(frame);
  if (!connection.queued) {
    connection.queued = true;
    dirty_.push_back(id);
  }
}

absl::Status FrameLoop::Turn(Deadline deadline) {
  FlushDirty();
  epoll_event events[64];
  const int n = WaitFor(epoll_.get(), deadline, events, std::size(events));
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

void FrameLoop::AcceptOne() {
  absl::StatusOr<Fd> fd = Accept(listener_);
  if (fd.ok()) (void)AddConnection(std::move(*fd));
}

void FrameLoop::Lose(ConnectionId id) { lost_ += connections_.erase(id); }

void FrameLoop::ReadFrom(ConnectionId id) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  char buffer[kReadBytes];
  const ssize_t n = recv(id, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Lose(id);
  found->second.in.append(buffer, static_cast<size_t>(n));
  if (!Deliver(id, &found->second.in)) Lose(id);
}

bool FrameLoop::Deliver(ConnectionId id, std::string* in) {
  size_t at = 0;
  while (in->size() - at >= kFrameHeaderBytes) {
    const size_t bytes = FrameBytes(in->data() + at);
    if (bytes < kFrameIdOffset + sizeof(uint32_t) || bytes > kMaxFrameBytes) return false;
    if (in->size() - at < bytes) break;
    on_frame_(id, std::string_view(*in).substr(at, bytes));
    at += bytes;
  }
  in->erase(0, at);
  return true;
}

void FrameLoop::Flush(ConnectionId id) {
  auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const ssize_t n = send(id, connection.out.data() + connection.written,
                         connection.out.size() - connection.written, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN && errno != EINTR) return Lose(id);
  if (n > 0) connection.written += static_cast<size_t>(n);
  if (connection.written == connection.out.size()) {
    connection.out.clear();
    connection.written = 0;
  }
  WatchWrites(connection, !connection.out.empty());
}

void FrameLoop::WatchWrites(Connection& connection, bool watch) {
  if (connection.waits_to_write == watch) return;
  connection.waits_to_write = watch;
  epoll_event event{.events = EPOLLIN | (watch ? EPOLLOUT : 0u), .data = {.fd = connection.fd.get()}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event);
}

void FrameLoop::FlushDirty() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    const ConnectionId id = dirty_[i];
    if (auto found = connections_.find(id); found != connections_.end()) found->second.queued = false;
    Flush(id);
  }
  dirty_.clear();
}

}  // namespace curtail::bench
