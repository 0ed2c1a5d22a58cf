// SPDX-License-Identifier: Apache-2.0
//
// id_source.h - ids that never repeat, even if the process restarts or its clock goes back.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "curtail/base/mix.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/semaphore.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/sql/sql.h"
#include "google/protobuf/repeated_field.h"

namespace curtail::apps {

// An id is 41 bits of milliseconds, kMachineBits of the machine, kCounterBits of a counter.
inline constexpr int kMachineBits = 10, kCounterBits = 12;
// Returns when the id was given, in milliseconds since 1970. The time is too late if the source was started again shortly before, or
// its clock was put back.
int64_t TimeOf(uint64_t id);
// Ids that were given so long before `id`, or earlier, are less.
inline uint64_t IdBefore(uint64_t id, std::chrono::milliseconds age) {
  return id - std::min(id, static_cast<uint64_t>(age.count()) << (kMachineBits + kCounterBits));
}
// Returns which of `parts` parts has the thing of this id. Scrambles it first: a product alone would put ids that are
// given at regular times into one part.
inline size_t PartOf(uint64_t id, size_t parts) { return Scramble(id) % parts; }

// An IdSource gives such ids, in ascending order. No other source on the same database, and no source with
// another machine number, gives the same ids. Thread-safe.
//
// It reserves the ids of ten seconds before it gives one: it moves a mark in the database beyond them. A process that
// restarts, or runs beside another one, continues behind the mark, even if its clock was put back. So ids may be ahead of
// the clock by one reservation.
class IdSource {
 public:
  // Milliseconds since 1970.
  using Clock = std::function<int64_t()>;
  using Field = google::protobuf::RepeatedField<uint64_t>;

  // `db` has kIdSchema, and outlives the source. REQUIRES: `machine` has kMachineBits.
  IdSource(SqlDatabase* db, uint64_t machine, Clock clock);

  // Appends 1 to 1000 ids. Errors: INVALID_ARGUMENT for another count; what Semaphore and SqlDatabase return, if it has to
  // reserve more.
  Coroutine Next(Context& ctx, uint32_t count, Field* ids);

 private:
  // Milliseconds since kIdEpochMs, and a counter: an id without its machine.
  uint64_t EarliestTick() const;
  // False: so many are not in reserve.
  bool Take(uint32_t count, Field* ids);
  Coroutine Reserve(Context& ctx);

  SqlDatabase& db_;
  const uint64_t machine_;
  const Clock clock_;
  Semaphore reserving_;

  Mutex mu_;
  uint64_t next_ CURTAIL_GUARDED_BY(mu_) = 0, end_ CURTAIL_GUARDED_BY(mu_) = 0;  // ticks in reserve
};

extern const char kIdSchema[];

}  // namespace curtail::apps
