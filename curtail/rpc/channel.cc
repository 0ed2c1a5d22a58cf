// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/channel.h"

#include <algorithm>
#include <functional>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/in_process.h"

namespace curtail {

using internal::ClientConnection;
using internal::Slot;
using internal::StartedCall;

namespace {

// A connection unused for this long may have been closed by its server unnoticed: look before the next call.
// Shorter costs low-rate callers a system call each time, longer lets more calls meet a dead connection.
constexpr Nanos kIdle = std::chrono::milliseconds(100);
constexpr double kBackoffFactor = 1.6;

// The host of "HOST:PORT" or "[HOST]:PORT", as a certificate would name it.
std::string HostOf(std::string_view target) {
  if (target.starts_with("unix:")) return "localhost";
  std::string_view host = target.substr(0, target.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.remove_suffix(1);
  return std::string(host);
}

// A factor in [0.8, 1.2) from the clock's low digits: only to keep clients from reconnecting in step.
double Jitter(TimePoint now) {
  return 0.8 + 0.4 *
                   static_cast<double>(
                       std::hash<int64_t>{}(now.time_since_epoch().count() * 0x9e3779b97f4a7c15) % 1024) /
                   1024;
}

}  // namespace

Channel::Impl::Impl(Client* c, std::string t, ChannelOptions o)
    : client(c), target(std::move(t)), options(o), slots(std::max(1, o.connections)) {
  session_options.max_message_bytes = options.max_message_bytes;
  session_options.max_partial_bytes = std::max(session_options.max_partial_bytes, options.max_message_bytes);
  session_options.authority = target.starts_with("unix:") ? "localhost" : target;
  secure =
      target.starts_with("unix:") || (options.tls != nullptr && !options.tls->options().insecure_skip_verify);
  if (options.tls == nullptr) return;
  const std::string& name = options.tls->options().server_name;
  if (!name.empty()) session_options.authority = name;
  session_options.secure = options.tls != nullptr;
  tls_host = name.empty() ? HostOf(target) : name;
}

Channel::Impl::Impl(Client* c, const InProcess* service, ChannelOptions o)
    : client(c),
      in_process(service),
      target(service->name()),
      options(std::move(o)),
      secure(true),
      slots(1) {}

internal::SlotTable::~SlotTable() {
  for (auto& entry : blocks_) {
    Block* const block = entry.load(std::memory_order_acquire);
    for (size_t i = 0; block != nullptr && i < kBlock; ++i)
      delete (*block)[i].load(std::memory_order_acquire);
    delete block;
  }
}

internal::SlotSet* internal::SlotTable::For(uint32_t id) {
  if (id >= kBlocks * kBlock) return nullptr;
  std::atomic<Block*>& entry = blocks_[id / kBlock];
  Block* block = entry.load(std::memory_order_acquire);
  if (block == nullptr) {
    auto fresh = std::make_unique<Block>();
    if (entry.compare_exchange_strong(block, fresh.get(), std::memory_order_acq_rel)) block = fresh.release();
  }
  std::atomic<SlotSet*>& place = (*block)[id % kBlock];
  SlotSet* set = place.load(std::memory_order_acquire);
  if (set == nullptr) {
    auto fresh = std::make_unique<SlotSet>();
    for (int i = 0; i < connections_; ++i) fresh->slots.push_back(std::make_shared<Slot>());
    if (place.compare_exchange_strong(set, fresh.get(), std::memory_order_acq_rel)) set = fresh.release();
  }
  return set;
}

absl::StatusOr<std::shared_ptr<ClientConnection>> Channel::Impl::Acquire(
    const std::shared_ptr<Poller>& poller, TimePoint now) {
  internal::SlotSet* const set = slots.For(poller->id());
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
    if (now - connection->last_used() > kIdle) connection->Kick(internal::Connection::kRead, nullptr);
    connection->Touch(now);
    if (connection->connect_deadline().when() <= now)
      connection->Kick(internal::Connection::kGiveUp, nullptr);
    if (connection->usable()) return connection;
  }
  return Connect(slot, poller, now);
}

absl::StatusOr<Address> Channel::Impl::NextAddress(Slot& slot) {
  {
    MutexLock lock(slot.mu);
    if (!slot.addresses.empty()) return slot.addresses.back();
  }
  absl::StatusOr<std::vector<Address>> found = Address::ResolveAll(target);
  if (!found.ok()) return found.status();
  std::reverse(found->begin(), found->end());  // used from the end
  MutexLock lock(slot.mu);
  slot.addresses = *std::move(found);
  return slot.addresses.back();
}

absl::StatusOr<std::shared_ptr<ClientConnection>> Channel::Impl::Connect(
    const std::shared_ptr<Slot>& slot, const std::shared_ptr<Poller>& poller, TimePoint now) {
  absl::StatusOr<Address> address = NextAddress(*slot);
  if (!address.ok()) return address.status();
  MutexLock lock(slot->mu);
  if (slot->connection != nullptr) {
    if (slot->connection->usable()) return slot->connection;  // another thread was faster
    if (slot->connection->greeted()) slot->backoff = Nanos::zero(), slot->next_attempt = TimePoint();
    slot->connection.reset();
  }
  if (now < slot->next_attempt) {
    return absl::UnavailableError(Join(
        slot->last_error.ok() ? Join(target, ": connection lost") : std::string(Message(slot->last_error)),
        " (not tried again yet)"));
  }
  slot->backoff =
      slot->backoff == Nanos::zero()
          ? options.initial_backoff
          : std::min(options.max_backoff, std::chrono::duration_cast<Nanos>(slot->backoff * kBackoffFactor));
  slot->next_attempt = now + std::chrono::duration_cast<Nanos>(slot->backoff * Jitter(now));
  // If this attempt fails, the next is for the next address.
  if (!slot->addresses.empty()) slot->addresses.pop_back();
  if (!slot->addresses.empty()) slot->next_attempt = now;  // ... which need not wait
  bool connected = false;
  absl::StatusOr<internal::UniqueFd> fd = internal::StartConnect(*address, &connected);
  if (!fd.ok()) return slot->last_error = fd.status();
  std::unique_ptr<internal::TlsStream> tls;
  if (const ClientTls* const client_tls = options.tls.get()) {
    tls = internal::TlsStream::Client(*client_tls->context(), tls_host,
                                      !client_tls->options().insecure_skip_verify);
  }
  auto connection =
      std::make_shared<ClientConnection>(session_options, *std::move(fd), poller, connected, std::move(tls),
                                         now + options.connect_timeout, slot, target);
  connection->Touch(now);
  if (absl::Status added = connection->Register(); !added.ok()) return slot->last_error = added;
  return slot->connection = std::move(connection);
}

Channel::Channel(Client* client, std::string target, ChannelOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(target), options)) {}

Channel::Channel(Client* client, const InProcess* service, ChannelOptions options)
    : impl_(std::make_unique<Impl>(client, service, std::move(options))) {}

Channel::~Channel() {
  impl_->slots.ForEach([](Slot& slot) {
    std::shared_ptr<ClientConnection> connection;
    {
      MutexLock lock(slot.mu);
      connection = std::move(slot.connection);
    }
    if (connection != nullptr) connection->Kick(internal::Connection::kAbort, nullptr);
  });
}

const std::string& Channel::target() const { return impl_->target; }

void Channel::Start(std::string_view path, Deadline deadline, const Metadata& metadata,
                    std::string_view request, Completion* done) {
  Client::Impl& client = *impl_->client->impl_;
  StartedCall* call = client.NewCall();
  call->client = impl_->client;
  call->channel = this;
  call->done = done;
  call->head.path.assign(path);
  call->head.metadata = metadata;
  call->head.encoding = impl_->options.encoding;
  call->message.assign(request);
  const TimePoint now = Now();
  if (impl_->in_process != nullptr) {
    call->status = absl::FailedPreconditionError("event-driven calls need a connection");
    client.failed.push_back(call);
    return;
  }
  if (deadline.when() <= now) {
    call->status = absl::DeadlineExceededError("deadline passed before the call was sent");
    client.failed.push_back(call);
    return;
  }
  if (!impl_->options.interceptors.empty()) [[unlikely]] {
    call->status = call->leaving.Before(*this, path, call->head.metadata);
    if (!call->status.ok()) return client.failed.push_back(call);
  }
  call->SetTimeout(deadline, now);
  client.Send(call, now);
  if (!deadline.infinite() && call->connection != nullptr) client.timers.Insert(*call, deadline.when());
}

}  // namespace curtail
