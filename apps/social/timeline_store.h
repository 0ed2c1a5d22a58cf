// SPDX-License-Identifier: Apache-2.0
//
// timeline_store.h - timelines of many users in one SQLite file: entries by user and post, newest first, trimmed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "content.pb.h"
#include "curtail/store/sql/session.h"
#include "timelines.pb.h"

namespace curtail::social {

// A TimelineStore keeps the newest `length` entries of a user, and up to an eighth more: it trims when that is reached,
// as that looks at all of them. Immutable.
class TimelineStore {
 public:
  static const char kSchema[];
  struct Entry {
    uint64_t user = 0;
    uint64_t post = 0;
    uint64_t author = 0;
    bool mentioned = false;
  };
  explicit TimelineStore(uint64_t length) : length_(length), most_(length + length / 8 + 1) {}

  // The same twice is as once.
  absl::Status Add(SqlSession& session, const Entry& entry) const;
  absl::Status Remove(SqlSession& session, uint64_t user, uint64_t post) const;
  absl::Status Read(SqlSession& session, const TimelinePage& page, std::vector<Entry>* entries) const;

 private:
  absl::Status Trim(SqlSession& session, uint64_t user) const;
  absl::Status Shrink(SqlSession& session, uint64_t user, uint64_t by) const;
  const uint64_t length_, most_;
};

// For read-post.
ViewRequest ViewOf(uint64_t viewer, const std::vector<TimelineStore::Entry>& entries);
// For the request of the next page; 0 if this page was not full.
uint64_t NextOf(const std::vector<TimelineStore::Entry>& entries, const TimelinePage& page);

}  // namespace curtail::social
