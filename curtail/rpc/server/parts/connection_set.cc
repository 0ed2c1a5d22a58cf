// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/parts/connection_set.h"

#include <utility>

namespace curtail::internal {
namespace {

// Connections above the limit, for which others are to go.
constexpr size_t kLeaving = 64;

}  // namespace

ConnectionSet::Added ConnectionSet::Add(std::shared_ptr<Connection> connection) {
  MutexLock lock(mu_);
  const size_t size = connections_.size();
  if (size >= most_ + kLeaving) return Added::kFull;
  Connection* const key = connection.get();
  connections_.emplace(key, Entry{std::move(connection), silent_.Add(key)});
  if (draining_) return Added::kDraining;
  return size >= most_ ? Added::kCrowded : Added::kOpen;
}

std::shared_ptr<Connection> ConnectionSet::OldestSilent() {
  MutexLock lock(mu_);
  Connection* const oldest = silent_.Oldest([](Connection& one) { return one.TakeActive(); });
  return oldest == nullptr ? nullptr : connections_.at(oldest).connection;
}

void ConnectionSet::Remove(Connection* connection) {
  std::shared_ptr<Connection> last;  // destroyed outside the lock
  MutexLock lock(mu_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  last = std::move(found->second.connection);
  silent_.Remove(found->second.place);
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
  for (const auto& [key, entry] : connections_) all.push_back(entry.connection);
  return all;
}

size_t ConnectionSet::size() {
  MutexLock lock(mu_);
  return connections_.size();
}

}  // namespace curtail::internal
