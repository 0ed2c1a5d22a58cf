// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/strings.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/wait.h"

namespace curtail {
namespace {

constexpr size_t kBufferBytes = 4096;
// A buffer that one large value made large is given back.
constexpr size_t kKeptBytes = 64 << 10;

// So that the kernel closes a connection to a machine that is gone within some 20 s, whether bytes are on their way or not. One to a
// program that stands still stays.
void WatchPeer(int fd) {
  const int on = 1, idle_s = 5, interval_s = 5, probes = 3, unanswered_ms = 20'000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

std::string StreamErrorText(int error) { return std::generic_category().message(error); }

// Tells the sensors that this thread waits.
class StreamWaits {
 public:
  StreamWaits() : flag_(CurrentWait().waits) {
    if (flag_ != nullptr) flag_->store(true, std::memory_order_relaxed);
  }
  ~StreamWaits() {
    if (flag_ != nullptr) flag_->store(false, std::memory_order_relaxed);
  }
  StreamWaits(const StreamWaits&) = delete;
  StreamWaits& operator=(const StreamWaits&) = delete;

 private:
  std::atomic<bool>* const flag_;
};

// False at the deadline.
bool PollStream(int fd, short events, Deadline deadline) {
  FlushBeforeWait();
  const StreamWaits waits;
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const Nanos left = deadline.Remaining();
    const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    const ScopedBlocking blocking;
    const int ready = ppoll(&entry, 1, deadline.infinite() ? nullptr : &timeout, nullptr);
    if (ready > 0) return true;
    if (ready == 0 && deadline.Expired()) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

// Hears of the socket's events on a fiber's thread. Held by the poller as well, so that a late event finds
// it.
struct Stream::Events final : PollHandler {
  void OnEvents(uint32_t, TaskList*) override { parker.Notify(); }
  Parker parker;
};

Stream::Stream(int fd, std::string peer, std::shared_ptr<Poller> poller, internal::TargetConnections* counts)
    : fd_(fd),
      peer_(std::move(peer)),
      poller_(std::move(poller)),
      events_(poller_ == nullptr ? nullptr : std::make_shared<Events>()),
      counts_(*counts) {}

Stream::~Stream() {
  if (poller_ != nullptr) poller_->Remove(fd_);
  close(fd_);
  if (stands_) counts_.closed.fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<std::unique_ptr<Stream>> Stream::Open(const StoreAddress& address, std::string_view store,
                                                     std::shared_ptr<Poller> poller, Deadline deadline) {
  const std::string peer = Join(store, " ", address.text);
  internal::TargetConnections* const counts = internal::ConnectionCounts::ToStores().For(peer);
  counts->attempts.fetch_add(1, std::memory_order_relaxed);
  absl::Status failure;
  for (size_t i = 0; i < address.sockets.size(); ++i) {
    const Address& to = address.sockets[i];
    const int fd = socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      failure = absl::UnavailableError(Join(peer, ": no socket: ", StreamErrorText(errno)));
      continue;
    }
    if (to.family() != AF_UNIX) WatchPeer(fd);
    std::unique_ptr<Stream> stream(new Stream(fd, peer, poller, counts));
    // One that does not answer leaves the others their parts of the time.
    const auto left = static_cast<int64_t>(address.sockets.size() - i);
    const Deadline part = left == 1 ? deadline : Deadline::In(deadline.Remaining() / left);
    failure = stream->Connect(to, part);
    if (failure.ok() && address.tls != nullptr) failure = stream->Secure(address, part);
    if (!failure.ok()) continue;
    stream->stands_ = true;
    counts->stood.fetch_add(1, std::memory_order_relaxed);
    return stream;
  }
  counts->failures.fetch_add(1, std::memory_order_relaxed);
  counts->silent.store(true, std::memory_order_relaxed);
  return failure;
}

absl::Status Stream::Connect(const Address& to, Deadline deadline) {
  if (poller_ != nullptr) {
    if (absl::Status added = poller_->Add(fd_, events_); !added.ok()) return added;
  }
  const uint32_t ticket = Ticket();
  int error = 0;
  if (connect(fd_, to.raw(), to.size) != 0) {
    error = errno;
  }
  // A pending connect may be asked for again: it ends with EISCONN or the reason why not.
  for (uint32_t seen = ticket; error == EINPROGRESS || error == EALREADY;) {
    if (!Wait(POLLOUT, seen, deadline)) return Late();
    seen = Ticket();
    error = connect(fd_, to.raw(), to.size) == 0 ? 0 : errno;
  }
  if (error == 0 || error == EISCONN) return absl::OkStatus();
  return absl::UnavailableError(
      Join(peer_, " cannot be reached: ", StreamErrorText(error), "; is it running?"));
}

absl::Status Stream::Secure(const StoreAddress& address, Deadline deadline) {
  tls_ = std::make_unique<TlsChannel>(address.tls, address.host, fd_);
  while (true) {
    const uint32_t ticket = Ticket();
    const TlsChannel::Step step = tls_->Handshake();
    if (step == TlsChannel::Step::kDone) return absl::OkStatus();
    absl::Status waited = AwaitStep(step, ticket, deadline);
    if (absl::IsDeadlineExceeded(waited))
      return absl::DeadlineExceededError(Join(Message(waited), ": does it speak TLS?"));
    if (!waited.ok()) return waited;
  }
}

absl::Status Stream::AwaitStep(TlsChannel::Step step, uint32_t ticket, Deadline deadline) {
  if (step == TlsChannel::Step::kEnded) return tls_->Explain(peer_);
  if (Wait(step == TlsChannel::Step::kReads ? POLLIN : POLLOUT, ticket, deadline)) return absl::OkStatus();
  return Late();
}

absl::Status Stream::SendSecured(std::initializer_list<std::string_view> parts, Deadline deadline) {
  std::string bytes;
  for (const std::string_view part : parts) bytes += part;
  for (std::string_view left = bytes; !left.empty();) {
    const uint32_t ticket = Ticket();
    size_t moved = 0;
    const TlsChannel::Step step = tls_->Write(left, &moved);
    if (step == TlsChannel::Step::kDone) {
      left.remove_prefix(moved);
      continue;
    }
    if (step == TlsChannel::Step::kEnded) return Closed(Message(tls_->Explain(peer_)));
    if (absl::Status waited = AwaitStep(step, ticket, deadline); !waited.ok()) return waited;
  }
  return absl::OkStatus();
}

uint32_t Stream::Ticket() const { return events_ == nullptr ? 0 : events_->parker.Ticket(); }

bool Stream::Wait(short events, uint32_t ticket, Deadline deadline) {
  if (events_ == nullptr) return PollStream(fd_, events, deadline);
  events_->parker.Wait(ticket, deadline);
  return !deadline.Expired();
}

absl::Status Stream::Late() const {
  counts_.silent.store(true, std::memory_order_relaxed);
  return absl::DeadlineExceededError(Join(peer_, " did not answer in time"));
}

absl::Status Stream::Closed(std::string_view reason) const {
  counts_.lost.fetch_add(1, std::memory_order_relaxed);
  counts_.silent.store(true, std::memory_order_relaxed);
  return absl::UnavailableError(Join(peer_, " is gone: ", reason));
}

absl::Status Stream::Send(std::initializer_list<std::string_view> parts, Deadline deadline) {
  filled_ = 0;
  // An answer is never there so soon that a read before the wait would be worth it.
  empty_ = true;
  ticket_ = Ticket();
  if (tls_ != nullptr) return SendSecured(parts, deadline);
  std::array<iovec, kMaxParts> pieces;
  size_t count = 0;
  for (const std::string_view part : parts) {
    if (!part.empty()) pieces[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  iovec* const end = pieces.data() + count;
  for (iovec* next = pieces.data(); next != end;) {
    const uint32_t ticket = Ticket();
    const msghdr message{.msg_iov = next, .msg_iovlen = static_cast<size_t>(end - next)};
    ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return Closed(StreamErrorText(errno));
    if (sent < 0) {
      if (!Wait(POLLOUT, ticket, deadline)) return Late();
      continue;
    }
    for (; next != end && static_cast<size_t>(sent) >= next->iov_len; ++next) {
      sent -= static_cast<ssize_t>(next->iov_len);
    }
    if (sent > 0) {
      next->iov_base = static_cast<char*>(next->iov_base) + sent;
      next->iov_len -= static_cast<size_t>(sent);
    }
  }
  return absl::OkStatus();
}

absl::Status Stream::Receive(size_t wanted, Deadline deadline) {
  if (filled_ > 0) Reserve(wanted);
  while (true) {
    if (empty_ && !Wait(POLLIN, ticket_, deadline)) return Late();
    ticket_ = Ticket();
    const ssize_t got = ReadSome();
    empty_ = got < 0 && errno == EAGAIN;
    if (got > 0) {
      if (counts_.silent.load(std::memory_order_relaxed))
        counts_.silent.store(false, std::memory_order_relaxed);
      return absl::OkStatus();
    }
    if (got == 0) return Closed("it closed the connection");
    if (errno != EAGAIN && errno != EINTR) return Closed(StreamErrorText(errno));
  }
}

ssize_t Stream::ReadSome() {
  if (filled_ == 0 && (capacity_ == 0 || capacity_ > kKeptBytes)) {
    capacity_ = kBufferBytes;
    buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  Reserve(filled_ + 1);
  if (tls_ != nullptr) {
    size_t moved = 0;
    const TlsChannel::Step step = tls_->Read(buffer_.get() + filled_, capacity_ - filled_, &moved);
    filled_ += moved;
    if (step == TlsChannel::Step::kDone) return static_cast<ssize_t>(moved);
    errno = EAGAIN;
    return step == TlsChannel::Step::kEnded ? 0 : -1;
  }
  const ssize_t got = recv(fd_, buffer_.get() + filled_, capacity_ - filled_, 0);
  if (got > 0) filled_ += static_cast<size_t>(got);
  return got;
}

void Stream::Reserve(size_t bytes) {
  if (bytes <= capacity_) return;
  const size_t larger = std::max(bytes, capacity_ * 2);
  auto buffer = std::make_unique_for_overwrite<char[]>(larger);
  std::memcpy(buffer.get(), buffer_.get(), filled_);
  buffer_ = std::move(buffer), capacity_ = larger;
}

Stream::State Stream::TryReceive() {
  State state = State::kQuiet;
  if (filled_ > kKeptBytes) filled_ = 0;  // of an answer that was taken
  while (filled_ <= kKeptBytes) {         // no more of a store that goes on and on
    const ssize_t got = ReadSome();
    if (got > 0) {
      state = State::kSpoke;
    } else if (got < 0 && errno == EAGAIN) {
      return state;
    } else if (got == 0 || errno != EINTR) {
      return State::kClosed;
    }
  }
  return State::kSpoke;
}

}  // namespace curtail
