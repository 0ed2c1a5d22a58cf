// SPDX-License-Identifier: Apache-2.0
//
// redis_sets.h - ids as members of sorted sets in a Redis.
//
// All members of a set have one score, so that Redis orders them by their bytes: ids are big-endian numbers. So ids of 64
// bits keep their order, which scores would not, and a page is a range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/redis/redis.h"

namespace curtail::apps {

inline constexpr size_t kIdBytes = 8;

void AppendId(uint64_t id, std::string* member);
// REQUIRES: there are kIdBytes at `at`.
uint64_t IdAt(std::string_view member, size_t at = 0);
// An end of a range of ids: `[` has the id itself in it, `(` has not.
std::string IdBound(char kind, uint64_t id);

// Runs a batch, and ends with the first error of its replies.
// `replies`, if not null, gets them.
Coroutine RunAll(Redis& redis, RedisBatch batch, Deadline deadline,
                 std::vector<RedisReply>* replies = nullptr);
// Runs one command. `batch` has one.
Co<absl::StatusOr<RedisReply>> RunOne(Redis& redis, RedisBatch batch, Deadline deadline);

}  // namespace curtail::apps
