// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_sender.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/address.h"

namespace curtail::observe {
namespace {

constexpr char kNobody[] = "nobody listens there";

}  // namespace

void TraceSender::Send(std::string body, TimePoint now) {
  out_ = Join("POST ", url_.path, " HTTP/1.1\r\nhost: ", url_.authority,
              "\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ", body.size(),
              "\r\n\r\n");
  out_.append(body);
  SendAgain(now);
}

void TraceSender::SendAgain(TimePoint now) {
  sent_ = 0;
  due_ = now + kMostTime;
  reader_.Begin(/*head_only=*/false);
  state_ = State::kConnecting;
  if (const absl::Status connected = Connect(); !connected.ok()) {
    why_ = std::string(Message(connected));
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
  return absl::UnavailableError(kNobody);
}

short TraceSender::events() const { return state_ == State::kReading ? POLLIN : POLLOUT; }

std::optional<TraceSender::Outcome> TraceSender::OnReady(TimePoint now) {
  if (state_ == State::kFailed) return End(Outcome::kFailed, why_);
  if (state_ == State::kConnecting) {
    pollfd socket{fd_.get(), POLLOUT, 0};
    if (poll(&socket, 1, 0) > 0) {
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
        return End(Outcome::kFailed, kNobody);
      state_ = State::kWriting;
    }
  }
  std::optional<Outcome> ended;
  if (state_ == State::kWriting) ended = Write();
  if (!ended && state_ == State::kReading) ended = Read();
  if (!ended && now >= due_) return End(Outcome::kFailed, "no answer in time");
  return ended;
}

std::optional<TraceSender::Outcome> TraceSender::Write() {
  while (sent_ < out_.size()) {
    const ssize_t n = send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n < 0) return End(Outcome::kFailed, "the connection was lost");
    sent_ += static_cast<size_t>(n);
  }
  state_ = State::kReading;
  return std::nullopt;
}

// One piece at a time, so that a collector that never stops does not keep the thread.
std::optional<TraceSender::Outcome> TraceSender::Read() {
  std::array<char, 4096> buffer;
  const ssize_t n = recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (n < 0) {
    if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
    return End(Outcome::kFailed, "the connection was lost");
  }
  std::string_view bytes(buffer.data(), static_cast<size_t>(n));
  if (n == 0) {
    reader_.End();
  } else if (!reader_.Read(&bytes).ok()) {
    return End(Outcome::kFailed, "the answer is not HTTP, or too long");
  }
  if (reader_.done()) return Answered(reader_.status());
  if (n == 0) return End(Outcome::kFailed, "the connection was closed without an answer");
  return std::nullopt;
}

TraceSender::Outcome TraceSender::Answered(int status) {
  if (status >= 200 && status < 300) return End(Outcome::kDelivered);
  const bool later = status == 429 || (status >= 502 && status <= 504);
  return End(later ? Outcome::kLater : Outcome::kFailed, Join("status ", status));
}

std::string TraceSender::problem() const {
  return why_ == kNobody ? Join("no collector at ", authority())
                         : Join("collector ", authority(), ": ", why_);
}

TraceSender::Outcome TraceSender::End(Outcome outcome, std::string why) {
  state_ = State::kIdle;
  fd_.Reset();
  why_ = std::move(why);
  if (outcome != Outcome::kLater) std::string().swap(out_);
  return outcome;
}

}  // namespace curtail::observe
