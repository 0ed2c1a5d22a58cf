// SPDX-License-Identifier: Apache-2.0
//
// connection_slot.h - what outlives a connection to a server: its place, and what is known of the server.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/connection/backoff.h"

namespace curtail::internal {

class ClientConnection;

// A SharedBackend is one of several servers of a channel, as its connections see it: they count its calls and tell of
// failures. Thread-safe.
class SharedBackend : public Backend {
 public:
  using Backend::Backend;
  virtual ~SharedBackend() = default;
  // A connection is gone, or its server said goodbye: it is time to look the addresses up again. Never blocks.
  virtual void Lost() = 0;
  // As many calls in a row have failed as Observation says, or a multiple of that. Never blocks.
  virtual void FailedInARow() = 0;
  // A connection could not be made. Never blocks.
  virtual void Unreachable() = 0;
  // It is in backoff until `until`, at least.
  void Down(TimePoint until);
};

// A copy that shares no memory with `status`: threads that keep statuses for each other keep such ones, because
// ThreadSanitizer does not see how Abseil counts their owners.
inline absl::Status Apart(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

// A Slot is a place for one connection of a subchannel; it outlives the connections that fill it and times their
// attempts.
struct Slot {
  // Empties it, and kicks the connection that it held with `bits`.
  void Release(uint32_t bits);
  // An attempt to connect has failed. Returns the error. `shared` may be null.
  absl::Status Failed(const absl::Status& why, SharedBackend* shared) CURTAIL_REQUIRES(mu);

  Mutex mu;
  std::shared_ptr<ClientConnection> connection CURTAIL_GUARDED_BY(mu);
  TimePoint next_attempt CURTAIL_GUARDED_BY(mu);
  Backoff backoff CURTAIL_GUARDED_BY(mu);
  absl::Status last_error CURTAIL_GUARDED_BY(mu);
};

}  // namespace curtail::internal
