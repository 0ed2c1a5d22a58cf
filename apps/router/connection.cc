// SPDX-License-Identifier: Apache-2.0
#include "apps/router/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/wait.h"

namespace curtail::router {
namespace {

constexpr size_t kBufferBytes = 4096;
// A buffer that one large value made large is given back.
constexpr size_t kKeptBytes = 64 << 10;

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::Status BadAddress(const std::string& text, std::string_view why) {
  return absl::InvalidArgumentError(
      Join("memcached address \"", text, "\" ", why, "; want HOST:PORT, as 127.0.0.1:11211, or unix:PATH"));
}

absl::StatusOr<Address> UnixAddress(const std::string& text) {
  const std::string path = text.substr(5);
  sockaddr_un socket_address = {.sun_family = AF_UNIX};
  if (path.empty()) return BadAddress(text, "has no path");
  if (path.size() >= sizeof socket_address.sun_path) return BadAddress(text, "has too long a path");
  std::memcpy(socket_address.sun_path, path.data(), path.size());
  Address::Socket socket{.size = sizeof socket_address};
  std::memcpy(&socket.address, &socket_address, sizeof socket_address);
  return Address{.text = text, .sockets = {socket}};
}

// Tells the sensors that this thread waits.
class Waits {
 public:
  Waits() : flag_(CurrentWait().waits) {
    if (flag_ != nullptr) flag_->store(true, std::memory_order_relaxed);
  }
  ~Waits() {
    if (flag_ != nullptr) flag_->store(false, std::memory_order_relaxed);
  }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

 private:
  std::atomic<bool>* const flag_;
};

// False at the deadline.
bool PollThread(int fd, short events, Deadline deadline) {
  FlushBeforeWait();
  const Waits waits;
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

absl::StatusOr<Address> Address::Parse(const std::string& text) {
  if (text.starts_with("unix:")) return UnixAddress(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return BadAddress(text, "has no port");
  std::string host = text.substr(0, colon);
  const std::string port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return BadAddress(text, "has no host");
  if (port.empty() || port.find_first_not_of("0123456789") != std::string::npos || port.size() > 5 ||
      std::stoi(port) < 1 || std::stoi(port) > 65535) {
    return BadAddress(text, "has no port from 1 to 65535");
  }
  const addrinfo hints{.ai_flags = AI_NUMERICSERV, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return BadAddress(text, Join("names no host (", gai_strerror(error), ")"));
  }
  Address address{.text = text};
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    Socket& socket = address.sockets.emplace_back();
    socket.size = next->ai_addrlen;
    std::memcpy(&socket.address, next->ai_addr, next->ai_addrlen);
  }
  freeaddrinfo(found);
  return address;
}

// Hears of the socket's events on a fiber's thread. Held by the poller as well, so that a late event finds
// it.
struct Connection::Events final : PollHandler {
  void OnEvents(uint32_t, TaskList*) override { parker.Notify(); }
  Parker parker;
};

Connection::Connection(int fd, std::string peer, std::shared_ptr<Poller> poller)
    : fd_(fd),
      peer_(std::move(peer)),
      poller_(std::move(poller)),
      events_(poller_ == nullptr ? nullptr : std::make_shared<Events>()) {}

Connection::~Connection() {
  if (poller_ != nullptr) poller_->Remove(fd_);
  close(fd_);
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const Address& address,
                                                             std::shared_ptr<Poller> poller,
                                                             Deadline deadline) {
  absl::Status failure;
  for (size_t i = 0; i < address.sockets.size(); ++i) {
    const Address::Socket& to = address.sockets[i];
    const int fd = socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      failure = absl::UnavailableError(Join("memcached ", address.text, ": no socket: ", ErrorText(errno)));
      continue;
    }
    std::unique_ptr<Connection> connection(new Connection(fd, address.text, poller));
    // One that does not answer leaves the others their parts of the time.
    const auto left = static_cast<int64_t>(address.sockets.size() - i);
    const Deadline part = left == 1 ? deadline : Deadline::In(deadline.Remaining() / left);
    failure = connection->Connect(to, part);
    if (failure.ok()) return connection;
  }
  return failure;
}

absl::Status Connection::Connect(const Address::Socket& to, Deadline deadline) {
  if (poller_ != nullptr) {
    if (absl::Status added = poller_->Add(fd_, events_); !added.ok()) return added;
  }
  const uint32_t ticket = Ticket();
  int error = 0;
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0) {
    error = errno;
  }
  // A pending connect may be asked for again: it ends with EISCONN or the reason why not.
  for (uint32_t seen = ticket; error == EINPROGRESS || error == EALREADY;) {
    if (!Wait(POLLOUT, seen, deadline)) return Late(State::kBroken).status;
    seen = Ticket();
    error = connect(fd_, reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0 ? 0 : errno;
  }
  if (error == 0 || error == EISCONN) return absl::OkStatus();
  return absl::UnavailableError(
      Join("memcached ", peer_, " cannot be reached: ", ErrorText(error), "; is it running?"));
}

uint32_t Connection::Ticket() const { return events_ == nullptr ? 0 : events_->parker.Ticket(); }

bool Connection::Wait(short events, uint32_t ticket, Deadline deadline) {
  if (events_ == nullptr) return PollThread(fd_, events, deadline);
  events_->parker.Wait(ticket, deadline);
  return !deadline.Expired();
}

Connection::Outcome Connection::Late(State state) const {
  return {absl::DeadlineExceededError(Join("memcached ", peer_, " did not answer in time")), state};
}

Connection::Outcome Connection::Nonsense(std::string_view what) const {
  return {absl::UnavailableError(Join("memcached ", peer_, " answered what nobody asked: ", what)),
          State::kBroken};
}

Connection::Outcome Connection::Closed(std::string_view what) const {
  return {absl::UnavailableError(Join("memcached ", peer_, " is gone: ", what)), State::kBroken, true};
}

Connection::Outcome Connection::Exchange(std::string_view head, std::string_view body, std::string_view tail,
                                         Deadline deadline, Answer* answer) {
  filled_ = 0;
  const uint32_t ticket = Ticket();
  if (Outcome sent = SendAll(head, body, tail, deadline); !sent.status.ok()) return sent;
  return ReceiveAnswer(ticket, deadline, answer);
}

Connection::Outcome Connection::SendAll(std::string_view head, std::string_view body, std::string_view tail,
                                        Deadline deadline) {
  std::array<iovec, 3> parts;
  size_t count = 0;
  for (const std::string_view part : {head, body, tail}) {
    if (!part.empty()) parts[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  for (iovec* next = parts.data(); next != parts.data() + count;) {
    const uint32_t ticket = Ticket();
    const msghdr message{.msg_iov = next, .msg_iovlen = static_cast<size_t>(parts.data() + count - next)};
    ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return Closed(ErrorText(errno));
    if (sent < 0) {
      if (!Wait(POLLOUT, ticket, deadline)) return Late(State::kBroken);
      continue;
    }
    for (; next != parts.data() + count && static_cast<size_t>(sent) >= next->iov_len; ++next) {
      sent -= static_cast<ssize_t>(next->iov_len);
    }
    if (sent > 0) {
      next->iov_base = static_cast<char*>(next->iov_base) + sent;
      next->iov_len -= static_cast<size_t>(sent);
    }
  }
  return {absl::OkStatus(), State::kUsable};
}

Connection::Outcome Connection::ReceiveAnswer(uint32_t ticket, Deadline deadline, Answer* answer) {
  // Waits before it reads: an answer is never there so soon that the read would be worth it.
  while (Wait(POLLIN, ticket, deadline)) {
    ssize_t got;
    while (true) {
      ticket = Ticket();
      got = ReadSome();
      if (got <= 0) break;
      const ParsedAnswer parsed = ParseAnswer({buffer_.get(), filled_});
      if (parsed.consumed == 0) {
        Reserve(parsed.wanted);
        continue;
      }
      *answer = parsed.answer;
      if (answer->kind == Answer::Kind::kBroken) return Nonsense(answer->text);
      if (parsed.consumed < filled_) return Nonsense("a second answer");
      return {absl::OkStatus(), State::kUsable};
    }
    if (got == 0) return Closed("it closed the connection");
    if (errno != EAGAIN && errno != EINTR) return Closed(ErrorText(errno));
  }
  return Late(State::kUnanswered);
}

ssize_t Connection::ReadSome() {
  if (filled_ == 0 && (capacity_ == 0 || capacity_ > kKeptBytes)) {
    capacity_ = kBufferBytes;
    buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  Reserve(filled_ + 1);
  const ssize_t got = recv(fd_, buffer_.get() + filled_, capacity_ - filled_, 0);
  if (got > 0) filled_ += static_cast<size_t>(got);
  return got;
}

void Connection::Reserve(size_t bytes) {
  if (bytes <= capacity_) return;
  const size_t larger = std::max(bytes, capacity_ * 2);
  auto buffer = std::make_unique_for_overwrite<char[]>(larger);
  std::memcpy(buffer.get(), buffer_.get(), filled_);
  buffer_ = std::move(buffer), capacity_ = larger;
}

bool Connection::Resolved() {
  while (true) {
    const ssize_t got = ReadSome();
    if (got > 0 && ParseAnswer({buffer_.get(), filled_}).consumed > 0) return true;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
    if (got < 0 && errno == EAGAIN) return false;
  }
}

}  // namespace curtail::router
