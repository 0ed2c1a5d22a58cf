// SPDX-License-Identifier: Apache-2.0
//
// connection_set.h - the connections of a server, and the wait until the last has gone.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/internal/silent_list.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail::internal {

// A ConnectionSet keeps connections alive until they close. Thread-safe.
class ConnectionSet {
 public:
  enum class Added { kOpen, kCrowded, kDraining, kFull };

  explicit ConnectionSet(size_t most) : most_(most) {}
  ConnectionSet(const ConnectionSet&) = delete;
  ConnectionSet& operator=(const ConnectionSet&) = delete;

  // kCrowded: the set holds more than it may, this one included: one is to be evicted. kFull: that did not help for too
  // many, and it did not take this one. kDraining: it did, after BeginDrain(), so the
  // caller tells the client goodbye.
  Added Add(std::shared_ptr<Connection> connection);
  // The connection that has been here longest without a call since the last looks; null if each of those looked at had
  // one. It stays in the set until it closes.
  std::shared_ptr<Connection> OldestSilent();
  // Forgets a connection that has closed; one that it does not hold is ignored.
  void Remove(Connection* connection);
  // From now on the removal of the last connection ends WaitUntilEmpty().
  void BeginDrain();
  // False when `deadline` came first. Blocks. REQUIRES: BeginDrain().
  bool WaitUntilEmpty(Deadline deadline);

  std::vector<std::shared_ptr<Connection>> All();
  size_t size();

 private:
  const size_t most_;

  Parker empty_;  // thread-safe by itself; notified when the last connection of a draining set has gone

  Mutex mu_;
  struct Entry {
    std::shared_ptr<Connection> connection;
    SilentList<Connection>::Place place;
  };
  std::unordered_map<Connection*, Entry> connections_ CURTAIL_GUARDED_BY(mu_);
  SilentList<Connection> silent_ CURTAIL_GUARDED_BY(mu_);
  bool draining_ CURTAIL_GUARDED_BY(mu_) = false;
};

}  // namespace curtail::internal
