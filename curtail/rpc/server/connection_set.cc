// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/connection_set.h"

#include <utility>

namespace curtail::internal {

ConnectionSet::Added ConnectionSet::Add(std::shared_ptr<Connection> connection) {
  MutexLock lock(mu_);
  if (connections_.size() >= most_) return Added::kFull;
  Connection* const key = connection.get();
  connections_.emplace(key, std::move(connection));
  return draining_ ? Added::kDraining : Added::kOpen;
}

void ConnectionSet::Remove(Connection* connection) {
  std::shared_ptr<Connection> last;  // destroyed outside the lock
  MutexLock lock(mu_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  last = std::move(found->second);
  connections_.erase(found);
  if (draining_ && connections_.empty()) empty_.Notify();
}

void ConnectionSet::BeginDrain() {
  MutexLock lock(mu_);
  draining_ = true;
}

bool ConnectionSet::WaitUntilEmpty(Deadline deadline) {
  while (true) {
    const uint32_t ticket = empty_.Ticket();
    if (size() == 0) return true;
    if (deadline.Expired()) return false;
    empty_.Wait(ticket, deadline);
  }
}

std::vector<std::shared_ptr<Connection>> ConnectionSet::All() {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

size_t ConnectionSet::size() {
  MutexLock lock(mu_);
  return connections_.size();
}

}  // namespace curtail::internal
