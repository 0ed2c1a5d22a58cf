// SPDX-License-Identifier: Apache-2.0
//
// connection_set.h - the connections of a server, and the wait until the last has gone.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail::internal {

// A ConnectionSet keeps connections alive until they close. Thread-safe.
class ConnectionSet {
 public:
  enum class Added { kOpen, kDraining, kFull };

  explicit ConnectionSet(size_t most) : most_(most) {}
  ConnectionSet(const ConnectionSet&) = delete;
  ConnectionSet& operator=(const ConnectionSet&) = delete;

  // kFull: the set holds as many as it may, and did not take this one. kDraining: it did, after BeginDrain(), so the
  // caller tells the client goodbye.
  Added Add(std::shared_ptr<Connection> connection);
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
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_ CURTAIL_GUARDED_BY(mu_);
  bool draining_ CURTAIL_GUARDED_BY(mu_) = false;
};

}  // namespace curtail::internal
