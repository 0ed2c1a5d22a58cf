// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/id_source.h"

#include <algorithm>
#include <utility>

namespace curtail::apps {

const char kIdSchema[] = "CREATE TABLE reserved(machine INTEGER PRIMARY KEY, tick INTEGER NOT NULL) STRICT";

namespace {

// 2024-01-01, so that the bits last until 2093.
constexpr int64_t kIdEpochMs = 1'704'067'200'000;
constexpr uint64_t kReservedTicks = uint64_t{10'000} << kCounterBits;
constexpr size_t kMostWaiting = 1024;

}  // namespace

int64_t TimeOf(uint64_t id) { return kIdEpochMs + static_cast<int64_t>(id >> (kMachineBits + kCounterBits)); }

IdSource::IdSource(SqlDatabase* db, uint64_t machine, Clock clock)
    : db_(*db), machine_(machine), clock_(std::move(clock)), reserving_(1, kMostWaiting) {}

Coroutine IdSource::Next(Context& ctx, uint32_t count, Field* ids) {
  if (count < 1 || count > 1000) co_return absl::InvalidArgumentError("1 to 1000 ids may be asked for");
  if (Take(count, ids)) co_return absl::OkStatus();
  const absl::StatusOr<Semaphore::Permit> permit = co_await reserving_.Acquire(ctx);
  if (!permit.ok()) co_return permit.status();
  while (!Take(count, ids)) {  // the one before in the line may have reserved enough
    if (absl::Status status = co_await Reserve(ctx); !status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

uint64_t IdSource::EarliestTick() const {
  return static_cast<uint64_t>(std::max<int64_t>(clock_() - kIdEpochMs, 0)) << kCounterBits;
}

bool IdSource::Take(uint32_t count, Field* ids) {
  const uint64_t earliest = EarliestTick();
  uint64_t first = 0;
  {
    const MutexLock lock(mu_);
    // A clock that was put back, or more ids than a millisecond has, only move the counter on.
    first = std::max(next_, earliest);
    if (first + count > end_) return false;
    next_ = first + count;
  }
  for (uint64_t tick = first; tick < first + count; ++tick) {
    const uint64_t low = tick & ((1u << kCounterBits) - 1);
    ids->Add(((tick >> kCounterBits) << kMachineBits | machine_) << kCounterBits | low);
  }
  return true;
}

Coroutine IdSource::Reserve(Context& ctx) {
  uint64_t begin = 0;
  absl::Status status = co_await db_.Writing(ctx.deadline(), [&](SqlSession& s) {
    uint64_t mark = 0;
    absl::Status read = s.Query("SELECT tick FROM reserved WHERE machine = ?1", {machine_},
                                [&](const SqlRow& row) { mark = row.Unsigned(0); });
    if (!read.ok()) return read;
    begin = std::max(mark, EarliestTick());
    return s.Execute(
        "INSERT INTO reserved(machine, tick) VALUES (?1, ?2)"
        " ON CONFLICT(machine) DO UPDATE SET tick = excluded.tick",
        {machine_, begin + kReservedTicks});
  });
  if (!status.ok()) co_return status;
  const MutexLock lock(mu_);
  next_ = begin, end_ = begin + kReservedTicks;
  co_return status;
}

}  // namespace curtail::apps
