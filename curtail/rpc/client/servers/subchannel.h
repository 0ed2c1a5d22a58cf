// SPDX-License-Identifier: Apache-2.0
//
// subchannel.h - one address of a channel, and its connections.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/address.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/connection/client_connection.h"
#include "curtail/rpc/client/servers/poller_table.h"

namespace curtail::internal {

// The state that all connections of a channel share. Immutable once used.
struct ConnectSettings {
  ConnectSettings(std::string t, ChannelOptions o, std::string authority, Observation seen);

  const std::string target;  // for errors
  const ChannelOptions options;
  const Observation observation;
  TargetConnections* const counts;
  wire::SessionOptions session;
  std::string tls_host;  // with TLS: the name that the certificate must have
};

// The connections of a subchannel on one poller, used in turn.
struct SlotSet {
  std::vector<std::shared_ptr<Slot>> slots;
  std::atomic<uint32_t> next{0};  // a counter only
};

// A Subchannel is one address, with connections of its own on each poller. Thread-safe.
class Subchannel {
 public:
  // `shared` is null for the only address of a channel.
  Subchannel(std::shared_ptr<const ConnectSettings> settings, const Address& address,
             std::shared_ptr<SharedBackend> shared);
  // Connections that are left close after their last call.
  ~Subchannel();
  Subchannel(const Subchannel&) = delete;
  Subchannel& operator=(const Subchannel&) = delete;

  // A connection on `poller` that takes calls and was used lately, if there is one.
  bool FindReady(const std::shared_ptr<Poller>& poller, TimePoint now,
                 std::shared_ptr<ClientConnection>* connection);
  // A connection on `poller` that takes calls, connecting if need be. UNAVAILABLE during backoff.
  absl::StatusOr<std::shared_ptr<ClientConnection>> Acquire(const std::shared_ptr<Poller>& poller,
                                                            TimePoint now);
  // Has the connections on poller `id` close after their last call. For a thread that uses the poller.
  void Retire(uint32_t id);
  // Hears what the server says of its health to connections on `poller`, connecting if there is none.
  void LookAtHealth(const std::shared_ptr<Poller>& poller, TimePoint now);
  // Closes all connections at once. REQUIRES: no call is in flight.
  void Abort();

  const Address& address() const { return address_; }
  const std::shared_ptr<SharedBackend>& shared() const { return shared_; }
  // True if its server has answered a call on a connection there is.
  bool Answered() const;
  // When poller `id` may try to connect; long ago if it is connected, or never was.
  TimePoint NextAttempt(uint32_t id) const;
  // Why the last attempt to connect on poller `id` failed; OK if it did not.
  absl::Status LastError(uint32_t id) const;

 private:
  absl::StatusOr<std::shared_ptr<ClientConnection>> Connect(const std::shared_ptr<Slot>& slot,
                                                            const std::shared_ptr<Poller>& poller,
                                                            TimePoint now);

  // Immutable after construction.
  const std::shared_ptr<const ConnectSettings> settings_;
  const Address address_;
  const std::shared_ptr<SharedBackend> shared_;
  const std::string name_;  // for errors

  // Thread-safe by itself.
  PollerTable<SlotSet> slots_;
};

}  // namespace curtail::internal
