// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/cache.h"

#include <algorithm>
#include <chrono>

#include "apps/kit/digits.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/strings.h"
#include "curtail/exec/aside.h"

namespace curtail::apps {
namespace {

constexpr Nanos kPatience = std::chrono::milliseconds(50);

Deadline EndOf(const Context& ctx) { return std::min(ctx.deadline(), Deadline::In(kPatience)); }

}  // namespace

absl::StatusOr<std::unique_ptr<Cache>> Cache::Of(Env& env, std::string_view store) {
  if (env.Store(store).empty()) return nullptr;
  auto address = StoreAddress::Parse(env.Store(store).front());
  if (!address.ok()) return address.status();
  return std::make_unique<Cache>(*std::move(address));
}

Coroutine Cache::Get(Context& ctx, const std::vector<std::string>& keys,
                     std::vector<std::optional<std::string>>* values) {
  values->assign(keys.size(), std::nullopt);
  (co_await Aside([&] { return memcached_.GetAll(keys, EndOf(ctx), values); })).IgnoreError();
  co_return absl::OkStatus();
}

Coroutine Cache::Add(Context& ctx, const std::vector<std::string>& keys,
                     const std::vector<std::string>& values) {
  return Set(ctx, keys, values, /*if_absent=*/true);
}

Coroutine Cache::Put(Context& ctx, const std::string& key, const std::string& value) {
  const std::vector<std::string> keys = {key}, values = {value};
  co_return co_await Set(ctx, keys, values, /*if_absent=*/false);
}

Coroutine Cache::Set(Context& ctx, const std::vector<std::string>& keys,
                     const std::vector<std::string>& values, bool if_absent) {
  if (keys.empty()) co_return absl::OkStatus();
  (co_await Aside([&] {
    absl::Status status;
    for (size_t i = 0; status.ok() && i < keys.size(); ++i) {
      bool stored = false;
      status = memcached_.Set(keys[i], values[i], if_absent, EndOf(ctx), &stored);
    }
    return status;
  })).IgnoreError();
  co_return absl::OkStatus();
}

Coroutine ReadRecent(Context& ctx, Cache* cache, std::string key, std::string* bytes,
                     std::function<Coroutine(std::string* bytes)> read) {
  constexpr size_t kTimeDigits = 13;  // of milliseconds since 1970, until 2286
  const int64_t now_ms = NowMs();
  if (cache != nullptr) {
    std::vector<std::optional<std::string>> found;
    const std::vector<std::string> keys = {key};
    (co_await cache->Get(ctx, keys, &found)).IgnoreError();
    const std::string_view copy = found[0] ? std::string_view(*found[0]) : std::string_view();
    const auto made_ms = static_cast<int64_t>(ParseDigits(copy.substr(0, kTimeDigits)).value_or(0));
    // A later time than this one's comes from a clock that was ahead, and reports nothing.
    if (made_ms <= now_ms && std::chrono::milliseconds(now_ms - made_ms) < kRecent) {
      bytes->assign(copy.substr(kTimeDigits));
      co_return absl::OkStatus();
    }
  }
  absl::Status status = co_await read(bytes);
  if (status.ok() && cache != nullptr) (co_await cache->Put(ctx, key, Join(now_ms, *bytes))).IgnoreError();
  co_return status;
}

Coroutine ReadRows(Context& ctx, Cache* cache, SqlDatabase& db, std::string_view prefix,
                   std::vector<uint64_t> ids, std::string_view sql,
                   std::function<void(uint64_t id, std::string_view bytes)> put) {
  const std::vector<SqlDatabase*> one(1, &db);
  co_return co_await ReadRows(
      ctx, cache, one, [](uint64_t, size_t) { return true; }, prefix, std::move(ids), sql, std::move(put));
}

Coroutine ReadRows(Context& ctx, Cache* cache, const std::vector<SqlDatabase*>& dbs,
                   std::function<bool(uint64_t id, size_t i)> in, std::string_view prefix,
                   std::vector<uint64_t> ids, std::string_view sql,
                   std::function<void(uint64_t id, std::string_view bytes)> put) {
  std::vector<std::optional<std::string>> found(ids.size());
  std::vector<std::string> keys, new_keys, new_values;
  if (cache != nullptr) {
    for (const uint64_t id : ids) keys.push_back(Join(prefix, id));
    (co_await cache->Get(ctx, keys, &found)).IgnoreError();
  }
  for (size_t i = 0; i < dbs.size(); ++i) {
    std::vector<size_t> missed;
    std::vector<SqlValue> asked;
    for (size_t at = 0; at < ids.size(); ++at) {
      if (!found[at] && in(ids[at], i)) missed.push_back(at), asked.emplace_back(ids[at]);
    }
    if (missed.empty()) continue;
    absl::Status status = co_await dbs[i]->Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach(sql, 1, asked,
                         [&](size_t run, const SqlRow& row) { found[missed[run]] = row.Text(0); });
    });
    if (!status.ok()) co_return status;
    for (const size_t at : missed) {
      if (cache != nullptr && found[at]) new_keys.push_back(keys[at]), new_values.push_back(*found[at]);
    }
  }
  for (size_t at = 0; at < ids.size(); ++at) {
    if (found[at]) put(ids[at], *found[at]);
  }
  if (cache != nullptr) (co_await cache->Add(ctx, new_keys, new_values)).IgnoreError();
  co_return absl::OkStatus();
}

}  // namespace curtail::apps
