// SPDX-License-Identifier: Apache-2.0
//
// redis_replies.h - Redis' replies out of bytes: hiredis reads them, in the memory that a bound
// allows.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/store/redis/redis.h"

struct redisReader;

namespace curtail::internal {

// A RedisReplies takes bytes as they come. For one thread.
class RedisReplies {
 public:
  // The replies and the elements of their arrays are `max_values` at most, all together.
  explicit RedisReplies(size_t max_values);
  ~RedisReplies();
  RedisReplies(const RedisReplies&) = delete;
  RedisReplies& operator=(const RedisReplies&) = delete;

  // Appends the replies that are whole now. Errors, after which it is of no more use: UNAVAILABLE
  // (these are not replies), RESOURCE_EXHAUSTED.
  [[nodiscard]] absl::Status Feed(std::string_view bytes, std::vector<RedisReply>* replies);

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> reader_;
  size_t values_left_;
};

}  // namespace curtail::internal
