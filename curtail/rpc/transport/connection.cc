// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A connection has no thread and no lock. Its strand makes one thread at a time its holder, and a
// holder's turn is always the same: posted operations, then input, then output. Because output comes last,
// everything a turn caused leaves in one send: the replies and calls posted by other threads meanwhile,
// SETTINGS and PING answers, window updates.
//
// The holder never blocks: sockets are non-blocking and a full one is left until the poller reports it
// writable. A closed connection stays an object for as long as somebody refers to it; operations posted to it
// are still handled, by their owners' HandleOp(), which finds closed().
//
// TLS is a filter between socket and session (tls_stream.h), so that both are read and written as without it: what
// comes out of recv() is decrypted and fed to the session at once and as a whole, so that nothing is left inside
// when a turn ends; what the session gives is encrypted into the bytes to send. Until the handshake is over, only its
// own bytes go out and come in, and the session waits.
#include "curtail/rpc/transport/connection.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/transport/transport_error.h"

namespace curtail::internal {
namespace {

constexpr size_t kReadChunk = 64u << 10;
// Chunks that one connection may read while others wait.
constexpr int kReadBatch = 16;
constexpr size_t kWriteChunk = 256u << 10;
// An idle connection keeps no larger output buffer than this.
constexpr size_t kOwnBuffer = 16u << 10;
// A peer that takes no replies while asking for more is cut off at this many bytes.
constexpr size_t kMaxQueuedBytes = 256u << 20;

// The buffer of reads from a socket. One for each turn: what a turn ends may begin the turn of another connection on the
// same thread.
struct InputBuffer {
  bool Recycle() { return true; }
  char bytes[kReadChunk];
};

}  // namespace

bool Connection::OutputBuffer::Recycle() {
  sent = 0;
  EmptyForReuse(bytes);
  return true;
}

Connection::Connection(wire::Role role, const wire::SessionOptions& options, UniqueFd fd,
                       std::shared_ptr<Poller> poller, bool connected, std::unique_ptr<TlsStream> tls)
    : poller_(std::move(poller)),
      tls_(std::move(tls)),
      session_(role, options, this),
      fd_(std::move(fd)),
      connected_(connected),
      client_(role == wire::Role::kClient),
      special_((tls_ != nullptr ? kSealed : 0) | (client_ ? kOpening : 0)),
      blocked_(!connected) {}

Connection::~Connection() {
  if (fd_) poller_->Remove(fd_.get());
}

absl::Status Connection::Register() { return poller_->Add(fd_.get(), shared_from_this()); }

void Connection::Post(Op* op) {
  op->next_ = inbox_.load(std::memory_order_relaxed);
  while (!inbox_.compare_exchange_weak(op->next_, op, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void Connection::OnEvents(uint32_t events, TaskList* ready) {
  uint32_t bits = kPosted;
  if (events & EPOLLIN) bits |= kRead;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) bits |= kRead | kHangup;
  if (events & EPOLLOUT) bits |= kWrite;
  Kick(bits, ready);
}

void Connection::Kick(uint32_t bits, TaskList* ready) {
  if (!strand_.Enter(bits)) return;
  // A turn may drop the last other reference.
  const std::shared_ptr<Connection> self = shared_from_this();
  do {
    ready_ = ready;
    Turn(strand_.Take());
    ready_ = nullptr;
  } while (!strand_.Leave());
}

void Connection::Turn(uint32_t bits) {
  RunPosted();
  if (closed_) return;
  if (bits & kWrite) {
    if (!connected_ && !FinishConnect()) return;
    blocked_ = false;
  }
  if (bits & (kNotice | kDrain | kAbort | kGiveUp | kClock | kShed | kEvict)) [[unlikely]] {
    if (bits & (kClock | kShed | kEvict)) HandleClock(bits);
    if (closed_) return;
    if (bits & kAbort) return Close(absl::UnavailableError("connection closed on this side"));
    if (bits & (kNotice | kDrain)) HandleGoodbye(bits);
    if ((bits & kGiveUp) && !standing()) {
      return Close(absl::UnavailableError(!connected_ ? "cannot connect: timed out"
                                          : opening_.empty()
                                              ? "TLS handshake timed out: does the server speak TLS?"
                                              : "TLS handshake timed out"));
    }
  }
  // After a hang-up there is no more than the socket holds, and the peer is not made to wait.
  if ((bits & kRead) && connected_ && (!paused_ || (bits & kHangup))) ReadAll((bits & kHangup) != 0);
  if (!closed_ && !blocked_) WriteAll();
  if (!client_ && !closed_) Looked();
  if (!closed_ && session_.queued_bytes() > kMaxQueuedBytes) {
    Close(absl::UnavailableError("the peer asks for more than it takes"));
  }
}

void Connection::RunPosted() {
  Op* op = inbox_.exchange(nullptr, std::memory_order_acquire);
  Op* first = nullptr;
  while (op != nullptr) {  // the stack holds the newest first
    Op* next = op->next_;
    op->next_ = first;
    first = op;
    op = next;
  }
  while (first != nullptr) {
    Op* next = first->next_;  // HandleOp() may end its life
    HandleOp(first);
    first = next;
  }
}

void Connection::Pause(bool pause) {
  if (std::exchange(paused_, pause) && !pause)
    Kick(kRead, nullptr);  // at the end of the holder's turn: that is us
}

bool Connection::FinishConnect() {
  const int error = ConnectError(fd_.get());
  if (error == 0) {
    connected_ = true;
    if (tls_ == nullptr) OnConnected();
    return true;
  }
  Close(absl::UnavailableError(Join("cannot connect: ", std::strerror(error))));
  return false;
}

void Connection::ReadAll(bool hangup) {
  const auto buffer = Recycler<InputBuffer>::Borrow();
  for (int i = 0; i < kReadBatch; ++i) {
    const ssize_t n = recv(fd_.get(), buffer->bytes, kReadChunk, 0);
    if (n == 0) return Lost("connection closed by the peer");
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      return Lost(Join("connection lost: ", std::strerror(errno)));
    }
    now_ = TimePoint();
    const std::string_view bytes(buffer->bytes, static_cast<size_t>(n));
    if (special_ != 0) [[unlikely]] {
      if (absl::Status status = ReceiveSpecial(bytes); !status.ok()) return Fail(status);
    } else if (absl::Status status = session_.Receive(bytes); !status.ok()) {
      return Fail(status);
    }
    if (closed_) return;
    // A short read emptied the socket: what comes later is a new edge. Not so after a hang-up, whose edge is
    // this one.
    if (static_cast<size_t>(n) < kReadChunk && !hangup) return;
    if (client_) continue;
    Looked();
    if (paused_ && !hangup) return;
  }
  poller_->Rearm(fd_.get());  // there may be more: let other connections have a turn first
}

void Connection::WriteAll() {
  bool more = true;  // the session may have output
  while (true) {
    if (out_ == nullptr) out_ = Recycler<OutputBuffer>::Borrow();
    std::string& bytes = out_->bytes;
    size_t& sent = out_->sent;
    if (sent == bytes.size()) {
      bytes.clear();
      sent = 0;
      if (!more) break;
      if (tls_ == nullptr) {
        more = session_.Pull(&bytes, kWriteChunk);
      } else if (!PullSealed(&bytes)) {
        return Close(broken_);
      }
      if (bytes.empty()) break;
    }
    const ssize_t n = send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
      written_ += static_cast<uint64_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      blocked_ = true;
      return;
    } else if (errno != EINTR) {
      const int error = errno;
      blocked_ = true;
      ReadAll(/*hangup=*/true);  // the peer may have said goodbye, and which calls it has not seen
      if (!closed_) Lost(Join("connection lost: ", std::strerror(error)));
      return;
    }
  }
  if (out_->bytes.capacity() > kOwnBuffer) out_.reset();
  if (session_.Finished() && plain_ == nullptr) {
    Close(broken_.ok() ? absl::UnavailableError("connection closed") : broken_);
  }
}

// Input while special_ says so.
absl::Status Connection::ReceiveSpecial(std::string_view bytes) {
  if (special_ & kOpening) {
    opening_.append(bytes.substr(0, kOpeningBytes - opening_.size()));
    if (std::string wrong = ExplainOpening(opening_, tls_ != nullptr); !wrong.empty()) {
      return broken_ = absl::UnavailableError(wrong);
    }
    if (opening_.size() == kOpeningBytes) special_ &= ~kOpening;
  }
  if (tls_ == nullptr) return session_.Receive(bytes);
  const auto buffer = Recycler<InputBuffer>::Borrow();
  bool stood = tls_->standing();
  tls_->Feed(bytes);
  while (true) {
    const size_t n = tls_->Read(buffer->bytes, kReadChunk);
    if (!stood && tls_->standing()) {
      stood = true;
      OnConnected();
    }
    if (n == 0) {
      if (tls_->status().ok()) return absl::OkStatus();
      return broken_ = tls_->ended() ? Ended(Message(tls_->status())) : tls_->status();
    }
    spoke_ = true;
    if (absl::Status status = session_.Receive({buffer->bytes, n}); !status.ok()) return status;
  }
}

// With TLS: fills `bytes`, which is empty, with what is to be sent. False: it cannot, see broken_.
bool Connection::PullSealed(std::string* bytes) {
  if (tls_->standing() && tls_->status().ok()) {
    if (plain_ == nullptr) {
      plain_ = Recycler<OutputBuffer>::Borrow();
      session_.Pull(&plain_->bytes, kWriteChunk);
    }
    plain_->sent += tls_->Write(std::string_view(plain_->bytes).substr(plain_->sent));
    if (plain_->sent == plain_->bytes.size()) plain_.reset();
    if (!tls_->status().ok()) {
      broken_ = tls_->status();
      return false;
    }
  }
  tls_->TakeOutput(bytes);
  return true;
}

// The peer has sent bytes that make no sense.
void Connection::Fail(const absl::Status& status) {
  if (broken_.ok()) broken_ = absl::UnavailableError(Join("protocol error: ", Message(status)));
  if (!blocked_) WriteAll();  // the GOAWAY, or TLS alert, that says why
  if (!closed_) Close(broken_);
}

// The transport has ended by itself.
absl::Status Connection::Ended(std::string_view how) const {
  if (!client_) return absl::UnavailableError(Join(how));
  return absl::UnavailableError(
      Join(how, ExplainEnd({.first = opening_,
                            .tls = tls_ != nullptr,
                            .standing = standing(),
                            .spoke = spoke_,
                            .owes_certificate = tls_ != nullptr && tls_->owes_certificate()})));
}

// Tells the peer that no more comes, if that can be done without waiting.
void Connection::SayGoodbye() {
  if (blocked_ || (out_ != nullptr && out_->sent < out_->bytes.size())) return;
  std::string last;
  tls_->Shutdown();
  tls_->TakeOutput(&last);
  if (!last.empty()) send(fd_.get(), last.data(), last.size(), MSG_NOSIGNAL);
}

void Connection::Close(const absl::Status& status) {
  const absl::Status why = status;  // it may be broken_, or lie in what ends here
  if (tls_ != nullptr && connected_) SayGoodbye();
  closed_ = true;
  poller_->Remove(fd_.get());
  fd_.Reset();
  OnClosed(why, standing());
  session_.Abort(why);
}

}  // namespace curtail::internal
