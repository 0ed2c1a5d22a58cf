// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/target/http_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr size_t kReadChunk = 64u << 10;
// Chunks that one connection may read while others wait.
constexpr int kReadBatch = 16;
constexpr size_t kWriteChunk = 256u << 10;
// A connection unused for this long may have been closed by its server unnoticed.
constexpr Nanos kIdle = std::chrono::milliseconds(100);

}  // namespace

HttpConnection::HttpConnection(Transport transport, std::unique_ptr<HttpCodec> codec,
                               std::shared_ptr<Poller> poller, TimePoint give_up, Owner* owner)
    : poller_(std::move(poller)),
      tls_(std::move(transport.tls)),
      codec_(std::move(codec)),
      give_up_(give_up),
      owner_(owner),
      fd_(std::move(transport.fd)),
      connected_(transport.connected),
      stood_(standing()),
      blocked_(!transport.connected) {}

HttpConnection::~HttpConnection() {
  if (fd_) poller_->Remove(fd_.get());
}

void HttpConnection::LookIfIdle(TimePoint now) {
  const bool idle = connected_ && last_used_ != TimePoint() && now - last_used_ > kIdle;
  last_used_ = now;
  if (idle && !closed_) ReadAll(/*hangup=*/true);
}

void HttpConnection::OnEvents(uint32_t events, TaskList*) {
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  if (closed_) return;
  if ((events & EPOLLOUT) != 0) {
    if (!connected_ && !FinishConnect()) return;
    blocked_ = false;
  }
  const bool hangup = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (connected_ && (hangup || (events & EPOLLIN) != 0)) ReadAll(hangup);
  if (!closed_) Flush();
}

bool HttpConnection::FinishConnect() {
  if (const int error = ConnectError(fd_.get()); error != 0) {
    Close(absl::UnavailableError(Join("cannot connect: ", std::strerror(error))));
    return false;
  }
  connected_ = true;
  stood_ |= standing();
  return true;
}

void HttpConnection::ReadAll(bool hangup) {
  std::array<char, kReadChunk> buffer;
  for (int i = 0; i < kReadBatch; ++i) {
    const ssize_t n = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (n == 0) return Ended();
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      return Close(absl::UnavailableError(Join("connection lost: ", std::strerror(errno))));
    }
    const std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    if (!(tls_ == nullptr ? Receive(bytes) : ReceiveSealed(bytes))) return;
    // A short read emptied the socket: what comes later is a new edge. Not so after a hang-up, whose edge is this one.
    if (static_cast<size_t>(n) < buffer.size() && !hangup) return;
  }
  poller_->Rearm(fd_.get());  // there may be more: let other connections have a turn first
}

bool HttpConnection::Receive(std::string_view bytes) {
  heard_ = true;
  HttpCodec::Ended ended;
  const absl::Status status = codec_->Receive(bytes, &ended);
  Tell(ended);
  if (closed_) return false;
  if (!Account()) {
    Close(absl::ResourceExhaustedError("the replies in flight are too long together: use fewer connections"));
    return false;
  }
  if (status.ok() && !codec_->Finished()) return true;
  Flush();  // perhaps a goodbye
  Close(status.ok() ? absl::UnavailableError("the server closes its connection") : status);
  return false;
}

bool HttpConnection::Account() {
  const size_t held = closed_ ? 0 : codec_->held_bytes();
  const ptrdiff_t change = static_cast<ptrdiff_t>(held) - static_cast<ptrdiff_t>(std::exchange(held_, held));
  return owner_ == nullptr || owner_->OnHeld(change);
}

bool HttpConnection::ReceiveSealed(std::string_view bytes) {
  std::array<char, kReadChunk> plain;
  tls_->Feed(bytes);
  while (const size_t n = tls_->Read(plain.data(), plain.size())) {
    stood_ = true;
    if (!Receive({plain.data(), n})) return false;
  }
  stood_ |= standing();
  if (tls_->status().ok()) return true;
  if (tls_->ended()) {
    Ended();
  } else {
    Flush();  // the alert
    if (!closed_) Close(tls_->status());
  }
  return false;
}

void HttpConnection::Cancel(HttpExchange* exchange) {
  if (!codec_->Cancel(exchange)) return Close(absl::CancelledError("a request was given up"));
  Account();
  Flush();  // what tells the server
  if (!closed_ && codec_->Finished()) Close(absl::UnavailableError("the server closes its connection"));
}

bool HttpConnection::FillOutput() {
  out_.clear();
  sent_ = 0;
  if (tls_ == nullptr) {
    codec_->Pull(&out_, kWriteChunk);
  } else {
    if (standing() && tls_->status().ok()) {
      if (plain_.empty()) codec_->Pull(&plain_, kWriteChunk);
      if (tls_->Write(plain_) > 0) plain_.clear();  // all or none
    }
    tls_->TakeOutput(&out_);
  }
  return !out_.empty();
}

void HttpConnection::Flush() {
  dirty = false;
  while (!closed_ && !blocked_) {
    if (sent_ == out_.size() && !FillOutput()) return;
    const ssize_t n = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n >= 0) {
      sent_ += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      blocked_ = true;
    } else if (errno != EINTR) {
      const int error = errno;
      blocked_ = true;
      ReadAll(/*hangup=*/true);  // the server may have answered before it closed
      if (!closed_) Close(absl::UnavailableError(Join("connection lost: ", std::strerror(error))));
    }
  }
}

void HttpConnection::GiveUpIfLate(TimePoint now) {
  if (closed_ || standing() || now < give_up_) return;
  Close(absl::UnavailableError(connected_ ? "TLS handshake timed out: does the server speak TLS?"
                                          : "cannot connect: timed out"));
}

void HttpConnection::Ended() {
  HttpCodec::Ended ended;
  codec_->ReceiveEnd(&ended);
  Tell(ended);
  if (closed_) return;
  Close(absl::UnavailableError(heard_ ? "connection closed by the server"
                                      : "connection closed by the server without a word"));
}

void HttpConnection::Tell(const HttpCodec::Ended& ended) {
  for (HttpExchange* exchange : ended) {
    if (owner_ != nullptr) owner_->OnEnded(*this, exchange);
  }
}

void HttpConnection::Drop() {
  owner_ = nullptr;
  if (!closed_) Close(absl::CancelledError("dropped"));
}

void HttpConnection::Close(const absl::Status& status) {
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  const absl::Status why = status;
  closed_ = true;
  poller_->Remove(fd_.get());
  fd_.Reset();
  Account();
  const HttpCodec::Ended all = codec_->TakeAll();
  for (HttpExchange* exchange : all) {
    exchange->error = why;
    exchange->unprocessed &= stood_;
  }
  Tell(all);
  if (owner_ != nullptr) owner_->OnClosed(*this, why, stood_);
}

}  // namespace curtail::internal
