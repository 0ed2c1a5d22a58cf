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
#include "curtail/rpc/internal/connection.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>

#include "curtail/base/strings.h"

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

// What a socket is read into. One for each turn: what a turn ends may begin the turn of another connection on the
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
                       std::shared_ptr<Poller> poller, bool connected)
    : poller_(std::move(poller)),
      session_(role, options, this),
      fd_(std::move(fd)),
      connected_(connected),
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
  if (bits & kAbort) return Close(absl::UnavailableError("connection closed on this side"));
  if (bits & (kNotice | kDrain)) HandleGoodbye(bits);
  if (bits & kWrite) {
    if (!connected_ && !FinishConnect()) return;
    blocked_ = false;
  }
  if ((bits & kGiveUp) && !connected_) return Close(absl::UnavailableError("cannot connect: timed out"));
  if ((bits & kRead) && connected_) ReadAll((bits & kHangup) != 0);
  if (!closed_ && !blocked_) WriteAll();
  if (!closed_ && session_.queued_bytes() > kMaxQueuedBytes) {
    Close(absl::UnavailableError("the peer asks for more than it takes"));
  }
}

TimePoint Connection::now() {
  if (now_ == TimePoint()) now_ = Now();
  return now_;
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

bool Connection::FinishConnect() {
  const int error = ConnectError(fd_.get());
  if (error == 0) {
    connected_ = true;
    OnConnected();
    return true;
  }
  Close(absl::UnavailableError(Join("cannot connect: ", std::strerror(error))));
  return false;
}

void Connection::ReadAll(bool hangup) {
  const auto buffer = Recycler<InputBuffer>::Borrow();
  for (int i = 0; i < kReadBatch; ++i) {
    const ssize_t n = recv(fd_.get(), buffer->bytes, kReadChunk, 0);
    if (n == 0) return Close(absl::UnavailableError("connection closed by the peer"));
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      return Close(absl::UnavailableError(Join("connection lost: ", std::strerror(errno))));
    }
    now_ = TimePoint();
    if (absl::Status status = session_.Receive({buffer->bytes, static_cast<size_t>(n)}); !status.ok()) {
      if (!blocked_) WriteAll();  // the GOAWAY that says why
      if (!closed_) Close(absl::UnavailableError(Join("protocol error: ", Message(status))));
      return;
    }
    if (closed_) return;
    // A short read emptied the socket: what comes later is a new edge. Not so after a hang-up, whose edge is
    // this one.
    if (static_cast<size_t>(n) < kReadChunk && !hangup) return;
  }
  poller_->Rearm(fd_.get());  // there may be more: let other connections have a turn first
}

void Connection::WriteAll() {
  while (true) {
    if (out_ == nullptr) out_ = Recycler<OutputBuffer>::Borrow();
    std::string& bytes = out_->bytes;
    size_t& sent = out_->sent;
    if (sent == bytes.size()) {
      bytes.clear();
      sent = 0;
      session_.Pull(&bytes, kWriteChunk);
      if (bytes.empty()) break;
    }
    const ssize_t n = send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      blocked_ = true;
      return;
    } else if (errno != EINTR) {
      const int error = errno;
      blocked_ = true;
      ReadAll(/*hangup=*/true);  // the peer may have said goodbye, and which calls it has not seen
      if (!closed_) Close(absl::UnavailableError(Join("connection lost: ", std::strerror(error))));
      return;
    }
  }
  if (out_->bytes.capacity() > kOwnBuffer) out_.reset();
  if (session_.Finished()) Close(absl::UnavailableError("connection closed"));
}

void Connection::Close(const absl::Status& why) {
  closed_ = true;
  poller_->Remove(fd_.get());
  fd_.Reset();
  OnClosed(why, connected_);
  session_.Abort(why);
}

}  // namespace curtail::internal
