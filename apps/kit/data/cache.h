// SPDX-License-Identifier: Apache-2.0
//
// cache.h - a memcached in front of a database or of another service.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "curtail/store/memcached.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

// A Cache has 50 ms for an answer, so that one that hangs leaves the database its time. It has no errors: what it does not
// answer is not there. Thread-safe.
class Cache {
 public:
  explicit Cache(StoreAddress address) : memcached_(std::move(address)) {}
  // The store of this name; null if the topology runs none. Errors: as StoreAddress::Parse().
  static absl::StatusOr<std::unique_ptr<Cache>> Of(Env& env, std::string_view store);

  // Sets `*values` to one for each key, empty where there is none. REQUIRES, of both: the keys pass memcached::CheckKey().
  Coroutine Get(Context& ctx, const std::vector<std::string>& keys,
                std::vector<std::optional<std::string>>* values);
  // Leaves a key that has a value. For values that never change.
  Coroutine Add(Context& ctx, const std::vector<std::string>& keys, const std::vector<std::string>& values);
  // Replaces the value of a key. For values that tell their age.
  Coroutine Put(Context& ctx, const std::string& key, const std::string& value);

 private:
  Coroutine Set(Context& ctx, const std::vector<std::string>& keys, const std::vector<std::string>& values,
                bool if_absent);

  Memcached memcached_;
};

// How old a copy is at most that ReadRecent() takes.
inline constexpr Nanos kRecent = std::chrono::seconds(1);
// For answers of which many callers may have one that is kRecent old. Sets `*bytes` to the copy under `key` in `cache`, which may be
// null. Without a copy, or with an older one, it has `read` set them, and leaves a copy. Errors: as `read`.
Coroutine ReadRecent(Context& ctx, Cache* cache, std::string key, std::string* bytes,
                     std::function<Coroutine(std::string* bytes)> read);
// The same for a message, which `read` fills.
template <class Message>
Coroutine ReadRecent(Context& ctx, Cache* cache, std::string key, Message* reply,
                     std::function<Coroutine()> read) {
  std::string bytes;
  absl::Status status =
      co_await ReadRecent(ctx, cache, std::move(key), &bytes, [&](std::string* made) -> Coroutine {
        absl::Status filled = co_await read();
        if (filled.ok()) *made = reply->SerializeAsString();
        co_return filled;
      });
  if (status.ok()) reply->ParseFromString(bytes);
  co_return status;
}

// Calls put(id, bytes) for each of `ids` that there is, in their order: the first column of `sql`, whose parameter is the id, or
// the value under "PREFIXid" in `cache`, which may be null and gets what it lacked. Errors: as the database.
Coroutine ReadRows(Context& ctx, Cache* cache, SqlDatabase& db, std::string_view prefix,
                   std::vector<uint64_t> ids, std::string_view sql,
                   std::function<void(uint64_t id, std::string_view bytes)> put);
// The same of data in several databases: `in(id, i)` is true if database i may have the row.
Coroutine ReadRows(Context& ctx, Cache* cache, const std::vector<SqlDatabase*>& dbs,
                   std::function<bool(uint64_t id, size_t i)> in, std::string_view prefix,
                   std::vector<uint64_t> ids, std::string_view sql,
                   std::function<void(uint64_t id, std::string_view bytes)> put);

}  // namespace curtail::apps
