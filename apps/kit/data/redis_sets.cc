// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/redis_sets.h"

#include <utility>
#include <vector>

#include "curtail/exec/aside.h"

namespace curtail::apps {

void AppendId(uint64_t id, std::string* member) {
  for (int shift = 56; shift >= 0; shift -= 8) member->push_back(static_cast<char>(id >> shift));
}

uint64_t IdAt(std::string_view member, size_t at) {
  uint64_t id = 0;
  for (size_t i = at; i < at + kIdBytes; ++i) id = id << 8 | static_cast<uint8_t>(member[i]);
  return id;
}

std::string IdBound(char kind, uint64_t id) {
  std::string bound(1, kind);
  AppendId(id, &bound);
  return bound;
}

Coroutine RunAll(Redis& redis, RedisBatch batch, Deadline deadline, std::vector<RedisReply>* replies_out) {
  absl::StatusOr<std::vector<RedisReply>> replies =
      co_await Aside([&] { return redis.Run(batch, deadline); });
  absl::Status status = replies.status();
  if (!status.ok()) co_return status;
  for (const RedisReply& reply : *replies) status.Update(reply.status());
  if (replies_out != nullptr) *replies_out = *std::move(replies);
  co_return status;
}

Co<absl::StatusOr<RedisReply>> RunOne(Redis& redis, RedisBatch batch, Deadline deadline) {
  absl::StatusOr<std::vector<RedisReply>> replies =
      co_await Aside([&] { return redis.Run(batch, deadline); });
  if (!replies.ok()) co_return replies.status();
  if (absl::Status refused = replies->front().status(); !refused.ok()) co_return refused;
  co_return std::move(replies->front());
}

}  // namespace curtail::apps
