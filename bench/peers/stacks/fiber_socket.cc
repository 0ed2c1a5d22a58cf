// SPDX-License-Identifier: Apache-2.0
//
// Fibers wait for nothing but their sockets. So once the reactor has yielded and is back, every fiber has run as far
// as it could, and the thread may sleep in epoll_wait.
#include "bench/peers/stacks/fiber_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace curtail::bench {
namespace {

using apache::thrift::transport::TTransportException;

constexpr size_t kBufferBytes = 4096;

[[noreturn]] void Throw(const char* what) {
  throw TTransportException(TTransportException::UNKNOWN, what, errno);
}

}  // namespace

FiberSocket::FiberSocket(Fd fd) : fd_(std::move(fd)), buffer_(kBufferBytes) {}
FiberSocket::~FiberSocket() = default;

void FiberSocket::close() { fd_ = Fd(); }

uint32_t FiberSocket::read(uint8_t* to, uint32_t size) {
  if (begin_ == end_) {
    if (size >= buffer_.size()) return Receive(to, size);
    begin_ = 0;
    end_ = Receive(buffer_.data(), static_cast<uint32_t>(buffer_.size()));
  }
  const uint32_t take = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, take);
  begin_ += take;
  return take;
}

uint32_t FiberSocket::Receive(uint8_t* to, uint32_t size) {
  while (true) {
    if (!readable_) Await(readable_);
    const ssize_t n = recv(fd_.get(), to, size, MSG_DONTWAIT);
    if (n >= 0) {
      // Fewer than asked for: the socket is empty, and what comes next is an event (epoll(7), question 9).
      if (n > 0 && n < static_cast<ssize_t>(size)) readable_ = false;
      return static_cast<uint32_t>(n);
    }
    if (errno != EAGAIN && errno != EINTR) Throw("recv");
    if (errno == EAGAIN) readable_ = false;
  }
}

void FiberSocket::write(const uint8_t* from, uint32_t size) {
  while (size > 0) {
    if (!writable_) Await(writable_);
    const ssize_t n = send(fd_.get(), from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) Throw("send");
    if (n < 0 && errno == EAGAIN) writable_ = false;
    if (n > 0) from += n, size -= static_cast<uint32_t>(n);
  }
}

void FiberSocket::Await(const bool& condition) {
  while (!condition) {
    waiting_ = boost::fibers::context::active();
    waiting_->suspend();
  }
}

void FiberSocket::OnEvents(uint32_t events) {
  if (events & ~static_cast<uint32_t>(EPOLLOUT)) readable_ = true;
  if (events & ~static_cast<uint32_t>(EPOLLIN)) writable_ = true;
  if (boost::fibers::context* fiber = std::exchange(waiting_, nullptr)) {
    boost::fibers::context::active()->schedule(fiber);
  }
}

FiberReactor::FiberReactor() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status FiberReactor::Add(FiberSocket* socket) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = socket}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket->fd_.get(), &event) != 0) return ErrnoStatus("epoll_ctl");
  return absl::OkStatus();
}

absl::Status FiberReactor::AcceptOne(int listener,
                                     const std::function<void(std::shared_ptr<FiberSocket>)>& serve) {
  absl::StatusOr<Fd> fd = Accept(listener);
  if (!fd.ok()) return fd.status();
  auto socket = std::make_shared<FiberSocket>(std::move(*fd));
  if (absl::Status added = Add(socket.get()); !added.ok()) return added;
  boost::fibers::fiber([socket, serve] { serve(socket); }).detach();
  return absl::OkStatus();
}

absl::Status FiberReactor::Run(int listener, const std::function<void(std::shared_ptr<FiberSocket>)>& serve) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener, &event) != 0) return ErrnoStatus("epoll_ctl");
  while (true) {
    epoll_event events[64];
    const int n = epoll_wait(epoll_.get(), events, std::size(events), -1);
    if (n < 0 && errno != EINTR) return ErrnoStatus("epoll_wait");
    for (int i = 0; i < n; ++i) {
      if (events[i].data.ptr != nullptr) {
        static_cast<FiberSocket*>(events[i].data.ptr)->OnEvents(events[i].events);
      } else if (absl::Status accepted = AcceptOne(listener, serve); !accepted.ok()) {
        return accepted;
      }
    }
    boost::this_fiber::yield();
  }
}

}  // namespace curtail::bench
