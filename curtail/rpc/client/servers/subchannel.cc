// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/servers/subchannel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/wire/http_url.h"

namespace curtail::internal {
namespace {

// A connection unused for this long may have been closed by its server unnoticed: look before the next call.
// Shorter costs low-rate callers a system call each time, longer lets more calls meet a dead connection.
constexpr Nanos kIdle = std::chrono::milliseconds(100);

}  // namespace

ConnectSettings::ConnectSettings(std::string t, ChannelOptions o, std::string authority, Observation seen)
    : target(std::move(t)),
      options(std::move(o)),
      observation(std::move(seen)),
      counts(ConnectionCounts::OfProcess().For(target)) {
  session.max_message_bytes = options.max_message_bytes;
  session.stream_window_bytes = options.stream_window_bytes;
  session.max_partial_bytes = std::max(session.max_partial_bytes, options.max_message_bytes);
  session.authority = WithoutZone(authority);
  if (options.tls == nullptr) return;
  const std::string name(absl::StripSuffix(options.tls->options().server_name, "."));
  tls_host = name.empty() ? HostOfAuthority(session.authority) : name;
  if (!name.empty()) session.authority = name;
  session.secure = true;
}

Subchannel::Subchannel(std::shared_ptr<const ConnectSettings> settings, const Address& address,
                       std::shared_ptr<SharedBackend> shared)
    : settings_(std::move(settings)),
      address_(address),
      shared_(std::move(shared)),
      name_(shared_ == nullptr || settings_->target == shared_->name
                ? settings_->target
                : Join(settings_->target, " at ", shared_->name)) {}

Subchannel::~Subchannel() {
  slots_.ForEach([](SlotSet& set) {
    for (const auto& slot : set.slots) slot->Release(Connection::kDrain);
  });
}

void Subchannel::Retire(uint32_t id) {
  SlotSet* const set = slots_.Find(id);
  if (set == nullptr) return;
  for (const auto& slot : set->slots) slot->Release(Connection::kDrain);
}

void Subchannel::LookAtHealth(const std::shared_ptr<Poller>& poller, TimePoint now) {
  const auto connection = Acquire(poller, now);
  if (!connection.ok()) return;
  (*connection)->WatchHealth(now);
  (*connection)->Kick(Connection::kRead | Connection::kPosted, nullptr);
}

void Subchannel::Abort() {
  slots_.ForEach([](SlotSet& set) {
    for (const auto& slot : set.slots) slot->Release(Connection::kAbort);
  });
}

bool Subchannel::Answered() const {
  bool answered = false;
  slots_.ForEach([&](SlotSet& set) {
    for (const auto& slot : set.slots) {
      MutexLock lock(slot->mu);
      answered |= slot->connection != nullptr && slot->connection->greeted();
    }
  });
  return answered;
}

absl::Status Subchannel::LastError(uint32_t id) const {
  const SlotSet* const set = slots_.Find(id);
  if (set == nullptr) return absl::OkStatus();
  for (const auto& slot : set->slots) {
    MutexLock lock(slot->mu);
    if (!slot->last_error.ok()) return Apart(slot->last_error);
  }
  return absl::OkStatus();
}

TimePoint Subchannel::NextAttempt(uint32_t id) const {
  const SlotSet* const set = slots_.Find(id);
  TimePoint first = set == nullptr ? TimePoint() : TimePoint::max();
  for (size_t i = 0; set != nullptr && i < set->slots.size(); ++i) {
    Slot& slot = *set->slots[i];
    MutexLock lock(slot.mu);
    const bool usable =
        slot.connection != nullptr && (slot.connection->usable() || slot.connection->greeted());
    first = std::min(first, usable ? TimePoint() : slot.next_attempt);
  }
  return first;
}

bool Subchannel::FindReady(const std::shared_ptr<Poller>& poller, TimePoint now,
                           std::shared_ptr<ClientConnection>* connection) {
  SlotSet* const set = slots_.Find(poller->id());
  if (set == nullptr || set->slots.size() != 1) return false;
  Slot& slot = *set->slots[0];
  {
    MutexLock lock(slot.mu);
    ClientConnection* const held = slot.connection.get();
    if (held == nullptr || !held->ready() || !held->usable() || now - held->last_used() > kIdle) return false;
    *connection = slot.connection;
  }
  (*connection)->Touch(now);
  return true;
}

absl::StatusOr<std::shared_ptr<ClientConnection>> Subchannel::Acquire(const std::shared_ptr<Poller>& poller,
                                                                      TimePoint now) {
  SlotSet* const set = slots_.For(poller->id(), [this] {
    auto fresh = std::make_unique<SlotSet>();
    for (int i = 0; i < std::max(1, settings_->options.connections); ++i)
      fresh->slots.push_back(std::make_shared<Slot>());
    return fresh;
  });
  if (set == nullptr) return absl::ResourceExhaustedError("too many event loops in this process");
  const size_t count = set->slots.size();
  const size_t index = count == 1 ? 0 : set->next.fetch_add(1, std::memory_order_relaxed) % count;
  const std::shared_ptr<Slot>& slot = set->slots[index];
  std::shared_ptr<ClientConnection> connection;
  {
    MutexLock lock(slot->mu);
    connection = slot->connection;
  }
  if (connection != nullptr && connection->usable()) {
    if (now - connection->last_used() > kIdle) connection->Kick(Connection::kRead, nullptr);
    connection->Touch(now);
    if (connection->connect_deadline().when() <= now) connection->Kick(Connection::kGiveUp, nullptr);
    if (connection->usable()) return connection;
  }
  return Connect(slot, poller, now);
}

absl::StatusOr<std::shared_ptr<ClientConnection>> Subchannel::Connect(const std::shared_ptr<Slot>& slot,
                                                                      const std::shared_ptr<Poller>& poller,
                                                                      TimePoint now) {
  const ChannelOptions& options = settings_->options;
  MutexLock lock(slot->mu);
  if (slot->connection != nullptr) {
    if (slot->connection->usable()) return slot->connection;  // another thread was faster
    if (slot->connection->greeted()) slot->backoff.Reset(), slot->next_attempt = TimePoint();
    slot->connection.reset();
  }
  if (now < slot->next_attempt) {
    if (shared_ != nullptr) shared_->Down(slot->next_attempt);
    return absl::UnavailableError(Join(
        slot->last_error.ok() ? Join(name_, ": connection lost") : std::string(Message(slot->last_error)),
        " (not tried again yet)"));
  }
  slot->next_attempt = now + slot->backoff.Next(options.initial_backoff, options.max_backoff, now);
  bool connected = false;
  settings_->counts->attempts.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<UniqueFd> fd = StartConnect(address_, &connected);
  if (!fd.ok()) {
    settings_->counts->failures.fetch_add(1, std::memory_order_relaxed);
    return slot->Failed(fd.status(), shared_.get());
  }
  std::unique_ptr<TlsStream> tls;
  if (const ClientTls* const client_tls = options.tls.get()) {
    tls = TlsStream::Client(*client_tls->context(), settings_->tls_host,
                            !client_tls->options().insecure_skip_verify);
    if (!tls->status().ok()) {
      settings_->counts->failures.fetch_add(1, std::memory_order_relaxed);
      return slot->Failed(tls->status(), shared_.get());
    }
  }
  auto connection = std::make_shared<ClientConnection>(
      settings_->session, *std::move(fd), poller, connected, std::move(tls), now + options.connect_timeout,
      slot, name_, shared_, Keepalive{options.keepalive_time, options.keepalive_timeout},
      settings_->observation, settings_->counts);
  if (options.credits) connection->UseCredits();
  if (options.arrival_times) connection->NoteArrivals();
  connection->Touch(now);
  if (absl::Status added = connection->Register(); !added.ok()) return slot->Failed(added, shared_.get());
  connection->WatchHealth(now);  // what is sent first takes it along
  return slot->connection = std::move(connection);
}

}  // namespace curtail::internal
