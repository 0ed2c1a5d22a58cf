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
// Long messages travel between socket and memory of their own. One system call sends frame headers and the parts of
// messages between them, which stay where they lie until the socket has taken them. A read puts the rest of a long
// frame where its message is, and what follows into the buffer. When the frame before was long, a read takes little at
// first: the next header shows how much of a message it may read to its place. TLS copies: it has to encrypt.
//
// TLS is a filter between socket and session (tls_stream.h), so that both are read and written as without it: what
// comes out of recv() is decrypted and fed to the session at once and as a whole, so that nothing is left inside
// when a turn ends; what the session gives is encrypted into the bytes to send. Until the handshake is over, only its
// own bytes go out and come in, and the session waits.
#include "curtail/rpc/transport/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/transport/transport_error.h"

namespace curtail::internal {
namespace {

constexpr size_t kReadChunk = 64u << 10;
// Of a read beyond the end of a long message, or ahead of one: holds its first frames' headers. Of any at a server while what
// comes costs much to take in.
constexpr size_t kReadLittle = 4u << 10;
// One connection may read so many chunks while others wait; at a server, it may take so long.
constexpr int kReadBatch = 16;
constexpr Nanos kReadTime = std::chrono::microseconds(250);
// A chunk is dear that takes all that time, and cheap again once a little takes no more than its part.
constexpr Nanos kCheapTime = kReadTime / (kReadChunk / kReadLittle);
constexpr size_t kWriteChunk = 256u << 10;
// An idle connection keeps no larger output buffer than this.
constexpr size_t kOwnBuffer = 16u << 10;
// A peer that takes no replies while asking for more is cut off at this many bytes.
constexpr size_t kMaxQueuedBytes = 256u << 20;

// Parts of output that one system call takes.
constexpr size_t kMaxParts = 64;

}  // namespace

// The buffer of reads from a socket. One for each turn: what a turn ends may begin the turn of another connection on the
// same thread.
struct Connection::InputBuffer {
  bool Recycle() { return true; }
  char bytes[kReadChunk];
};

bool Connection::OutputBuffer::Recycle() {
  sent = 0;
  output.Clear();
  EmptyForReuse(output.bytes);
  return true;
}

ssize_t Connection::OutputBuffer::Send(int fd) const {
  const std::string_view bytes = output.bytes;
  if (output.pieces.empty()) return internal::Send(fd, bytes.data() + sent, bytes.size() - sent);
  iovec parts[kMaxParts];
  size_t count = 0;
  size_t skip = sent;
  const auto add = [&](std::string_view part) {
    const size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    part.remove_prefix(skipped);
    if (!part.empty() && count < kMaxParts) parts[count++] = {const_cast<char*>(part.data()), part.size()};
  };
  size_t from = 0;
  for (const wire::Output::Piece& piece : output.pieces) {
    add(bytes.substr(from, piece.at - from));
    add(piece.bytes);
    from = piece.at;
  }
  add(bytes.substr(from));
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendmsg(fd, &message, MSG_NOSIGNAL);
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
  if (events == 0) return Kick(kPosted, ready);
  uint32_t bits = kPosted;
  if (events & EPOLLIN) bits |= kRead;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) bits |= kRead | kHangup;
  if (events & EPOLLOUT) bits |= kWrite;
  const EventScope scope;
  Kick(bits, ready);
}

void Connection::Kick(uint32_t bits, TaskList* ready) {
  if (!strand_.Enter(&bits)) return;
  // A turn may drop the last reference but the poller's, which lasts until Close().
  std::shared_ptr<Connection> self;
  if (closed_) [[unlikely]]
    self = shared_from_this();
  do {
    ready_ = ready;
    if (!Contain("a connection", [this, bits] { Turn(bits); })) Break();
    ready_ = nullptr;
    if (closing_ != nullptr) [[unlikely]]
      self = std::move(closing_);
  } while (!strand_.Leave(&bits));
}

bool Connection::TurnForRest(uint32_t bits) {
  if (bits & (kClock | kShed | kEvict)) HandleClock(bits);
  if (closed_) return false;
  if (bits & kAbort) {
    Close(absl::UnavailableError("connection closed on this side"));
    return false;
  }
  if (bits & (kNotice | kDrain)) HandleGoodbye(bits);
  if (closed_ || (bits & kGiveUp) == 0 || standing()) return !closed_;
  Close(absl::UnavailableError(!connected_        ? "cannot connect: timed out"
                               : opening_.empty() ? "TLS handshake timed out: does the server speak TLS?"
                                                  : "TLS handshake timed out"));
  return false;
}

[[gnu::always_inline]] inline void Connection::Turn(uint32_t bits) {
  if (inbox_.load(std::memory_order_relaxed) != nullptr) RunPosted();
  if (closed_) return;
  if (bits & kWrite) {  // as with most input
    if (!connected_ && !FinishConnect()) return;
    blocked_ = false;
  }
  if ((bits & ~(kPosted | kRead | kHangup | kWrite)) != 0 && !TurnForRest(bits)) [[unlikely]]
    return;
  // After a hang-up there is no more than the socket holds, and the peer is not made to wait.
  if ((bits & kRead) && connected_ && (!paused_ || (bits & kHangup))) ReadAll((bits & kHangup) != 0);
  if (!closed_ && !blocked_ && MayWrite() && !WriteReady()) WriteAll();
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
    if (!Contain("a connection", [this, first] { HandleOp(first); })) Break();
    first = next;
  }
}

void Connection::Break() {
  if (closed_) return;
  Contain("a connection", [this] { Close(absl::InternalError("an exception on this side")); });
}

void Connection::Pause(bool pause) {
  if (std::exchange(paused_, pause) && !pause)
    Kick(kRead, nullptr);  // at the end of the holder's turn: that is us
}

void Connection::GoOn() {
  if (const absl::Status status = session_.GoOn(); !status.ok()) Fail(status);
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

[[gnu::always_inline]] inline absl::Status Connection::ReadSome(InputBuffer& buffer, bool first, ssize_t* n,
                                                                bool* emptied) {
  std::span<char> room;
  if ((long_ || !first) && special_ == 0) room = session_.Room();
  const size_t most = room.empty() && !long_ && !dear_ ? kReadChunk : kReadLittle;
  if (notes_arrivals_) [[unlikely]] {
    *n = ReceiveStamped(fd_.get(), room, {buffer.bytes, most}, &arrived_);
  } else if (room.empty()) {
    *n = Receive(fd_.get(), buffer.bytes, most);
  } else {
    const iovec parts[] = {{room.data(), room.size()}, {buffer.bytes, most}};
    *n = readv(fd_.get(), parts, std::size(parts));
  }
  if (*n <= 0) return absl::OkStatus();
  now_ = TimePoint();
  const auto got = static_cast<size_t>(*n);
  received_ += got;
  if (!client_ && got >= kReadLittle) now();  // the price of this read counts from here
  *emptied = got < room.size() + most;
  if (!room.empty()) {
    if (absl::Status status = session_.ReceivedInRoom(std::min(got, room.size())); !status.ok())
      return status;
    if (got <= room.size()) return absl::OkStatus();
  }
  const std::string_view bytes(buffer.bytes, got - room.size());
  absl::Status status = special_ != 0 ? ReceiveSpecial(bytes) : session_.Receive(bytes);
  if (long_ || bytes.size() >= kReadLittle) long_ = session_.TookLong() || (long_ && !room.empty());
  return status;
}

void Connection::ReadAll(bool hangup) {
  const auto buffer = Recycler<InputBuffer>::Borrow();
  constexpr size_t kMost = kReadBatch * kReadChunk;
  TimePoint end;
  for (size_t left = kMost; left > 0;) {
    bool emptied = false;
    ssize_t n = 0;
    const absl::Status status = ReadSome(*buffer, /*first=*/left == kMost, &n, &emptied);
    if (n == 0) return Lost("connection closed by the peer");
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      return Lost(Join("connection lost: ", std::strerror(errno)));
    }
    if (!status.ok()) return Fail(status);
    if (closed_) return;
    if (!client_ && static_cast<size_t>(n) >= kReadLittle)
      dear_ = Now() - now() > (dear_ ? kCheapTime : kReadTime);
    // A short read emptied the socket: what comes later is a new edge. Not so after a hang-up, whose edge is
    // this one.
    if (emptied && !hangup) return;
    left -= std::min(left, std::max(static_cast<size_t>(n), kReadLittle));
    if (client_) continue;
    Looked();
    if (paused_ && !hangup) return;
    const TimePoint read = Now();
    if (end == TimePoint()) end = read + kReadTime;
    if (read >= end) break;
  }
  poller_->Rearm(fd_.get());  // there may be more: let other connections have a turn first
}

[[gnu::always_inline]] inline bool Connection::WriteReady() {
  if (tls_ != nullptr || outgoing() > 0) return false;
  const std::string_view ready = session_.Ready();
  if (ready.empty()) return false;
  const ssize_t n = Send(fd_.get(), ready.data(), ready.size());
  if (n <= 0) return false;
  written_ += static_cast<uint64_t>(n);
  if (static_cast<size_t>(n) == ready.size()) return !session_.TookReady();
  if (out_ == nullptr) out_ = Recycler<OutputBuffer>::Borrow();
  session_.Gather(&out_->output, kWriteChunk);
  out_->sent = static_cast<size_t>(n);
  return false;
}

void Connection::WriteAll() {
  bool more = true;  // the session may have output
  while (true) {
    if (out_ == nullptr) out_ = Recycler<OutputBuffer>::Borrow();
    wire::Output& output = out_->output;
    size_t& sent = out_->sent;
    if (sent == output.size) {
      if (!output.pieces.empty()) session_.Written();
      output.Clear();
      sent = 0;
      if (!more) break;
      if (tls_ == nullptr) {
        more = session_.Gather(&output, kWriteChunk);
      } else if (!PullSealed(&output)) {
        return Close(broken_);
      }
      if (output.size == 0) break;
    }
    const ssize_t n = out_->Send(fd_.get());
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
  if (out_->output.bytes.capacity() > kOwnBuffer) out_.reset();
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

// With TLS: fills `output`, which is empty, with what is to be sent. False: it cannot, see broken_.
bool Connection::PullSealed(wire::Output* output) {
  if (tls_->standing() && tls_->status().ok()) {
    if (plain_ == nullptr) {
      plain_ = Recycler<OutputBuffer>::Borrow();
      session_.Pull(&plain_->output.bytes, kWriteChunk);
    }
    const std::string_view plain = plain_->output.bytes;
    plain_->sent += tls_->Write(plain.substr(plain_->sent));
    if (plain_->sent == plain.size()) plain_.reset();
    if (!tls_->status().ok()) {
      broken_ = tls_->status();
      return false;
    }
  }
  tls_->TakeOutput(&output->bytes);
  output->size = output->bytes.size();
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
                            .owes_certificate = tls_ != nullptr && tls_->owes_certificate(),
                            .known = PeerIsKnown()})));
}

// Tells the peer that no more comes, if that can be done without waiting.
void Connection::SayGoodbye() {
  if (blocked_ || outgoing() > 0) return;
  std::string last;
  tls_->Shutdown();
  tls_->TakeOutput(&last);
  if (!last.empty()) Send(fd_.get(), last.data(), last.size());
}

void Connection::Close(const absl::Status& status) {
  const absl::Status why = status;  // it may be broken_, or lie in what ends here
  if (tls_ != nullptr && connected_) SayGoodbye();
  closed_ = true;
  closing_ = shared_from_this();
  poller_->Remove(fd_.get());
  fd_.Reset();
  OnClosed(why, standing());
  session_.Abort(why);
  out_.reset();
  session_.Written();  // nobody will: no message is kept for that
}

}  // namespace curtail::internal
