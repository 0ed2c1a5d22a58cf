// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as Redis' replies: what is read does not depend on how the bytes arrive, and has a bounded number of values.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "curtail/store/redis/redis_replies.h"

namespace {

using curtail::RedisReply;
using curtail::internal::RedisReplies;

constexpr size_t kMost = 1000;

void Require(bool condition) {
  if (!condition) std::abort();
}

size_t ValuesOf(const RedisReply& reply) {
  size_t count = 1;
  for (const RedisReply& element : reply.elements) count += ValuesOf(element);
  return count;
}

bool Same(const RedisReply& a, const RedisReply& b) {
  return a.kind == b.kind && a.integer == b.integer && a.text == b.text &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(), &Same);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t step = 1 + data[0] % 16;
  std::vector<RedisReply> whole, pieces;
  const absl::Status at_once = RedisReplies(kMost).Feed(bytes, &whole);
  RedisReplies reader(kMost);
  absl::Status status;
  for (size_t at = 0; at < bytes.size() && status.ok(); at += step)
    status = reader.Feed(bytes.substr(at, step), &pieces);
  Require(status.ok() == at_once.ok());
  Require(std::equal(whole.begin(), whole.end(), pieces.begin(), pieces.end(), &Same));
  for (const RedisReply& reply : whole) Require(ValuesOf(reply) <= kMost + 1);
  return 0;
}
