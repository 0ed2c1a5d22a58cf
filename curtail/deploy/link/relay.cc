// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/link/relay.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::deploy {
namespace {

using internal::UniqueFd;

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kOwnDescriptors = 32;  // of the process, in pairs

// How long one ppoll() waits.
timespec Until(TimePoint when) {
  const Nanos left = std::max(when - Now(), Nanos::zero());
  return {.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
}

}  // namespace

// From one socket to the other.
struct Relay::Direction {
  Direction(const LinkShape& shape, uint64_t seed, int from, int to)
      : queue(shape, seed), from(from), to(to) {}

  // Reads what there is. False: the connection is broken.
  bool Read(TimePoint now) {
    char buffer[kReadBytes];
    const ssize_t n = recv(from, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) queue.Put(now, {buffer, static_cast<size_t>(n)});
    if (n == 0) ended = true;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
  }
  // Writes what has left the link. False: the connection is broken.
  bool Write(TimePoint now) {
    full = false;
    for (std::string_view ready; !(ready = queue.Ready(now)).empty();) {
      const ssize_t n = send(to, ready.data(), ready.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return full = true;
      if (n < 0) return false;
      queue.Take(static_cast<size_t>(n));
    }
    if (ended && queue.size() == 0 && !std::exchange(told, true)) shutdown(to, SHUT_WR);
    return true;
  }

  LinkQueue queue;
  const int from, to;
  bool ended = false;  // its sender has no more
  bool told = false;   // and its receiver knows
  bool full = false;   // the receiver takes no more for now
};

struct Relay::Connection {
  Connection(UniqueFd c, UniqueFd s, bool connected, const LinkShape& shape, uint64_t seed)
      : caller(std::move(c)),
        server(std::move(s)),
        connecting(!connected),
        there(shape, seed, caller.get(), server.get()),
        back(shape, seed + 1, server.get(), caller.get()) {}

  // The events of one of both sockets that ppoll() waits for. Without any it leaves the socket out, as one whose peer has
  // gone would not let it wait.
  pollfd At(const Direction& from_it, const Direction& to_it, size_t most_held) const {
    const bool connects = connecting && &from_it == &back;
    const bool reads = !connecting && !from_it.ended && from_it.queue.size() < most_held;
    const int events = (reads ? POLLIN : 0) | (to_it.full || connects ? POLLOUT : 0);
    return {.fd = events != 0 ? from_it.from : -1, .events = static_cast<short>(events), .revents = 0};
  }
  // False once it is over.
  bool Go(const pollfd& at_caller, const pollfd& at_server, TimePoint now) {
    if (connecting) {
      if (at_server.revents == 0) return true;
      if (internal::ConnectError(server.get()) != 0) return false;
      connecting = false;
    }
    if ((at_caller.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !there.ended && !there.Read(now))
      return false;
    if ((at_server.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !back.ended && !back.Read(now))
      return false;
    return there.Write(now) && back.Write(now) && !(there.told && back.told);
  }
  TimePoint next() const {
    const auto of = [](const Direction& way) { return way.full ? TimePoint::max() : way.queue.next(); };
    return connecting ? TimePoint::max() : std::min(of(there), of(back));
  }

  const UniqueFd caller, server;
  bool connecting;
  Direction there, back;
};

absl::StatusOr<std::unique_ptr<Relay>> Relay::Start(const RelayOptions& options) {
  const absl::StatusOr<Address> listen = Address::Resolve(options.listen);
  if (!listen.ok()) return listen.status();
  const absl::StatusOr<Address> to = Address::Resolve(options.to);
  if (!to.ok()) return to.status();
  absl::StatusOr<UniqueFd> listener = internal::Listen(*listen);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<Relay>(new Relay(*to, options.shape, options.seed, *std::move(listener)));
}

Relay::Relay(Address to, const LinkShape& shape, uint64_t seed, UniqueFd listener)
    : to_(to),
      shape_(shape),
      most_held_(kMostHeld +
                 static_cast<size_t>(shape.bytes_per_s * std::chrono::duration<double>(shape.delay).count())),
      most_connections_(std::clamp<size_t>(internal::RaiseDescriptorLimit() / 2, kOwnDescriptors + 1,
                                           kMostConnections + kOwnDescriptors) -
                        kOwnDescriptors),
      address_(internal::BoundAddress(listener.get())),
      stop_(eventfd(0, EFD_CLOEXEC)),
      seed_(seed),
      listener_(std::move(listener)),
      thread_([this] { Run(); }) {}

Relay::~Relay() { Cut(); }

void Relay::Cut() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Relay::Run() {
  while (true) {
    const bool accepts = connections_.size() < most_connections_;
    std::vector<pollfd> events = {{stop_.get(), POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
    TimePoint next = TimePoint::max();
    for (const auto& one : connections_) {
      events.push_back(one->At(one->there, one->back, most_held_));
      events.push_back(one->At(one->back, one->there, most_held_));
      next = std::min(next, one->next());
    }
    const timespec left = Until(next);
    if (ppoll(events.data(), events.size(), next == TimePoint::max() ? nullptr : &left, nullptr) < 0)
      continue;
    if (events[0].revents != 0) break;
    const TimePoint now = Now();
    for (size_t i = connections_.size(); i-- > 0;) {
      if (connections_[i]->Go(events[2 + 2 * i], events[3 + 2 * i], now)) continue;
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (events[1].revents != 0) Accept();
  }
  listener_ = UniqueFd();
  connections_.clear();
}

void Relay::Accept() {
  UniqueFd caller(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!caller) return;
  bool connected = false;
  absl::StatusOr<UniqueFd> server = internal::StartConnect(to_, &connected);
  if (!server.ok()) return;
  internal::SetTcpOptions(caller.get());
  internal::SetTcpOptions(server->get());
  connections_.push_back(
      std::make_unique<Connection>(std::move(caller), *std::move(server), connected, shape_, seed_ += 2));
}

}  // namespace curtail::deploy
