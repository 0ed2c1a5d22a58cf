// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace_sender.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/address.h"

namespace curtail::observe {

void TraceSender::Send(std::string body, TimePoint now) {
  out_ = Join("POST ", url_.path, " HTTP/1.1\r\nhost: ", url_.authority,
              "\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ", body.size(),
              "\r\n\r\n");
  out_.append(body);
  sent_ = 0;
  due_ = now + kMostTime;
  reader_.Begin(/*head_only=*/false);
  state_ = State::kConnecting;
  if (!Connect().ok()) {
    state_ = State::kFailed;
    due_ = now;
  }
}

absl::Status TraceSender::Connect() {
  const absl::StatusOr<Address> address = Address::Resolve(url_.Address());
  if (!address.ok()) return address.status();
  fd_.Reset(socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return absl::ResourceExhaustedError("no descriptor");
  if (connect(fd_.get(), address->raw(), address->size) == 0 || errno == EINPROGRESS) return absl::OkStatus();
  return absl::UnavailableError("no connection");
}

short TraceSender::events() const { return state_ == State::kReading ? POLLIN : POLLOUT; }

std::optional<bool> TraceSender::OnReady(TimePoint now) {
  if (state_ == State::kFailed) return End(false);
  if (state_ == State::kConnecting) {
    pollfd socket{fd_.get(), POLLOUT, 0};
    if (poll(&socket, 1, 0) > 0) {
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return End(false);
      state_ = State::kWriting;
    }
  }
  std::optional<bool> ended;
  if (state_ == State::kWriting) ended = Write();
  if (!ended && state_ == State::kReading) ended = Read();
  if (!ended && now >= due_) return End(false);
  return ended;
}

std::optional<bool> TraceSender::Write() {
  while (sent_ < out_.size()) {
    const ssize_t n = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n < 0) return End(false);
    sent_ += static_cast<size_t>(n);
  }
  state_ = State::kReading;
  return std::nullopt;
}

// One piece at a time, so that a collector that never stops does not keep the thread.
std::optional<bool> TraceSender::Read() {
  std::array<char, 4096> buffer;
  const ssize_t n = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (n < 0) {
    if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    return End(false);
  }
  std::string_view bytes(buffer.data(), static_cast<size_t>(n));
  if (n == 0) {
    reader_.End();
  } else if (!reader_.Read(&bytes).ok()) {
    return End(false);
  }
  if (reader_.done()) return End(reader_.status() >= 200 && reader_.status() < 300);
  if (n == 0) return End(false);
  return std::nullopt;
}

bool TraceSender::End(bool delivered) {
  state_ = State::kIdle;
  fd_.Reset();
  std::string().swap(out_);
  return delivered;
}

}  // namespace curtail::observe
