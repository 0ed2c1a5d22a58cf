// SPDX-License-Identifier: Apache-2.0
//
// silent_list.h - which connection goes when a newcomer finds no room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>

namespace curtail::internal {

// A SilentList has connections in the order in which they came, or were last looked at. Its work for a newcomer is bounded,
// however many connections there are. Thread-compatible.
template <class Connection>
class SilentList {
 public:
  using Place = typename std::list<Connection*>::iterator;

  Place Add(Connection* connection) { return order_.insert(order_.end(), connection); }
  void Remove(Place place) { order_.erase(place); }

  // The connection that has been silent longest; null if each of some is active. `is_active(Connection&)` is asked once
  // for each that is looked at.
  template <class IsActive>
  Connection* Oldest(const IsActive& is_active) {
    for (size_t i = std::min(order_.size(), kLooks); i > 0; --i) {
      Connection* const oldest = order_.front();
      order_.splice(order_.end(), order_, order_.begin());
      if (!is_active(*oldest)) return oldest;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kLooks = 64;

  std::list<Connection*> order_;
};

}  // namespace curtail::internal
