// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/clients.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace curtail::gateway::internal {
namespace {

using curtail::internal::TlsStream;
using curtail::internal::UniqueFd;

constexpr Nanos kBetweenLooks = std::chrono::milliseconds(100);
// While too much is held a reader that stalls for so long loses its answer. A request that is not whole is lost once too
// much is held for so long: none becomes whole while nothing is read.
constexpr Nanos kStallUnderLoad = std::chrono::seconds(1);
// Descriptors that are not for clients.
constexpr size_t kOwnDescriptors = 32;
// Connections accepted before other handlers have a turn.
constexpr int kAcceptBatch = 64;

// Descriptors for clients.
size_t Descriptors() {
  const size_t all = curtail::internal::RaiseDescriptorLimit();
  return all > 2 * kOwnDescriptors ? all - kOwnDescriptors : all / 2;
}

}  // namespace

Clients::Clients(const GatewayOptions& options, UniqueFd listener, std::shared_ptr<Poller> poller,
                 Owner* owner)
    : options_(options),
      owner_(*owner),
      poller_(std::move(poller)),
      address_(curtail::internal::BoundAddress(listener.get())),
      most_connections_(std::min(options.max_connections, Descriptors())),
      listener_(std::make_shared<Listener>(this, std::move(listener))) {}

void Clients::Accept() {
  accept_later_ = false;
  for (int i = 0; i < kAcceptBatch; ++i) {
    UniqueFd fd(accept4(listener_->fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if ((errno == EMFILE || errno == ENFILE) && Evict()) continue;
      accept_later_ = true;  // at the next look
      return;
    }
    if (connections_.size() >= most_connections_ && !Evict()) {
      OnRefused(1);
      continue;
    }
    Open(std::move(fd));
  }
  poller_->Rearm(listener_->fd.get());  // there may be more: a flood of them must not hold the thread
}

bool Clients::Evict() {
  HttpConnection* const oldest = silent_.Oldest([](HttpConnection& one) { return one.TakeActive(); });
  if (oldest == nullptr) return false;
  evicted_.fetch_add(1, std::memory_order_relaxed);
  oldest->Close();
  return true;
}

void Clients::Open(UniqueFd fd) {
  curtail::internal::SetTcpOptions(fd.get());
  HttpConnection::Owner* const owner = this;
  std::unique_ptr<TlsStream> tls;
  if (options_.tls != nullptr) tls = TlsStream::Server(*options_.tls->context(), /*http1=*/true);
  auto connection =
      std::make_shared<HttpConnection>(std::move(fd), options_.http, std::move(tls), poller_, owner);
  connection->place = silent_.Add(connection.get());
  connections_.insert(connection);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (!connection->Register().ok()) return connection->Close();
  if (last_call_) connection->LastCall();
}

void Clients::OnClosed(HttpConnection& connection) {
  silent_.Remove(connection.place);
  connections_.erase(std::static_pointer_cast<HttpConnection>(connection.shared_from_this()));
  open_.store(connections_.size(), std::memory_order_relaxed);
}

// The more connections want turns, the shorter these are, so that a round stays short.
Nanos Clients::OnTurn() {
  constexpr Nanos kRound = std::chrono::milliseconds(4);
  constexpr Nanos kLongest = std::chrono::microseconds(200);
  ++turns_;
  return std::min(kLongest, kRound / static_cast<int64_t>(std::max(turns_, turns_before_)));
}

bool Clients::MayShakeHands() {
  constexpr int kMost = 8;  // some milliseconds
  return shaken_++ < kMost;
}

void Clients::GiveTurns() {
  turns_before_ = std::max<size_t>(1, std::exchange(turns_, 0));
  shaken_ = 0;
  const auto dirty = std::exchange(dirty_, {});
  for (const auto& connection : dirty) connection->Within([&] { connection->Flush(); });
}

void Clients::GiveLongTurn() {
  if (long_turns_.empty()) return;
  long_turns_.front()->Within([&] { long_turns_.front()->LongTurn(); });
  long_turns_.pop_front();
}

void Clients::OnOutput(const std::shared_ptr<HttpConnection>& connection) {
  if (!std::exchange(connection->dirty, true)) dirty_.push_back(connection);
}

void Clients::OnHeld(ptrdiff_t change) {
  held_bytes_.fetch_add(static_cast<size_t>(change), std::memory_order_relaxed);
  paused_ |= !MayRead();  // a pause may be over before the next look
}

bool Clients::Look(TimePoint now) {
  if (now < next_look_) return false;
  next_look_ = now + kBetweenLooks;
  if (accept_later_ && listener_->fd) Accept();
  const Connections all = All();
  for (const auto& connection : all) {
    OnLate(connection->CutStalled(now, options_.idle_timeout));
    const Nanos silent = now - connection->since();
    const bool idle = connection->codec().in_flight() == 0 && silent > options_.idle_timeout;
    const bool slow = connection->in_request() && silent > options_.request_timeout;
    if (idle || slow) CloseLate(*connection);
  }
  if (MayRead()) {
    full_since_ = TimePoint::max();
  } else {
    full_since_ = std::min(full_since_, now);
    MakeRoom(now);
  }
  // Those that read nothing, as all held too much, go on.
  if (MayRead() && std::exchange(paused_, false)) {
    for (const auto& connection : all) connection->Flush();
  }
  return true;
}

// Ends what makes no progress, first of the connections that hold most.
void Clients::MakeRoom(TimePoint now) {
  const bool lasts = now - full_since_ > kStallUnderLoad;
  Connections holders;
  for (const auto& connection : connections_) {
    if (connection->held() > 0) holders.push_back(connection);
  }
  std::sort(holders.begin(), holders.end(),
            [](const auto& one, const auto& other) { return one->held() > other->held(); });
  for (const auto& connection : holders) {
    if (MayRead()) return;
    OnLate(connection->CutStalled(now, kStallUnderLoad));
    if (lasts && !MayRead() && !connection->RefuseUnfinished()) CloseLate(*connection);
  }
}

void Clients::CloseLate(HttpConnection& connection) {
  if (connection.closed()) return;
  OnLate();
  connection.Close();
}

void Clients::LastCall() {
  last_call_ = true;
  for (const auto& connection : All()) connection->LastCall();
}

void Clients::Drain() {
  poller_->Remove(listener_->fd.get());
  listener_->fd.Reset();
  for (const auto& connection : All()) connection->Drain();
}

void Clients::CloseAll() {
  const auto open = std::exchange(connections_, {});
  for (const auto& connection : open) connection->Close();
}

void Clients::Count(GatewayStats* stats) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  stats->connections = open_.load(kRelaxed);
  stats->refused = refused_.load(kRelaxed);
  stats->timed_out = timed_out_.load(kRelaxed);
  stats->evicted = evicted_.load(kRelaxed);
  stats->held = held();
}

}  // namespace curtail::gateway::internal
