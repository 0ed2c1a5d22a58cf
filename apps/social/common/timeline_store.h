// SPDX-License-Identifier: Apache-2.0
//
// timeline_store.h - where timelines of many users are kept: entries by user and post, newest first, trimmed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "content.pb.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/address.h"
#include "curtail/store/sql/sql.h"
#include "timelines.pb.h"

namespace curtail::social {

// A TimelineStore keeps the newest entries of a user: as many as it was made for, and up to an eighth more, or all if it was
// made for 0. Thread-safe.
// Calls end at the deadline of their context; one that fails may have happened in part, and may be repeated.
class TimelineStore {
 public:
  struct Entry {
    uint64_t user = 0;
    uint64_t post = 0;
    uint64_t author = 0;
    bool mentioned = false;
  };
  virtual ~TimelineStore() = default;

  // The same twice is as once; a post that comes with a mention and without has the mention.
  virtual Coroutine Add(Context& ctx, std::vector<Entry> entries) = 0;
  // By user, post and author.
  virtual Coroutine Remove(Context& ctx, std::vector<Entry> entries) = 0;
  // All entries of the user.
  virtual Coroutine Forget(Context& ctx, uint64_t user) = 0;
  // Appends a page of page.user()'s.
  virtual Coroutine Read(Context& ctx, const TimelinePage& page, std::vector<Entry>* entries) = 0;
};

// In an SQLite file that has kTimelineSchema, and outlives the store.
extern const char kTimelineSchema[];
std::unique_ptr<TimelineStore> MakeSqlTimelines(SqlDatabase* db, uint64_t length);
// In a Redis, under keys that begin with `name`. What it acknowledged is as safe as that Redis is set to keep it. A post
// that came with a mention and without counts twice for the length.
std::unique_ptr<TimelineStore> MakeRedisTimelines(StoreAddress address, std::string name, uint64_t length);

// For read-post.
ViewRequest ViewOf(uint64_t viewer, const std::vector<TimelineStore::Entry>& entries);
// For the request of the next page; 0 if this page was not full.
uint64_t NextOf(const std::vector<TimelineStore::Entry>& entries, const TimelinePage& page);

}  // namespace curtail::social
