// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A timeline is a sorted set whose members have one score, so that Redis orders them by their bytes: the post,
// the author, and 1 if the user is mentioned, as big-endian numbers. So ids of 64 bits keep their order, which scores
// would not, and a page is a range.
#include <algorithm>
#include <utility>

#include "apps/social/page.h"
#include "apps/social/timeline_store.h"
#include "curtail/base/strings.h"
#include "curtail/store/redis/redis.h"

namespace curtail::social {
namespace {

constexpr size_t kMemberBytes = 17;

void AppendNumber(uint64_t number, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(number >> shift));
}

uint64_t NumberAt(std::string_view bytes, size_t at) {
  uint64_t number = 0;
  for (size_t i = at; i < at + 8; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// An end of a range: `[` has the post itself in it, `(` has not.
std::string Bound(char kind, uint64_t post) {
  std::string bound(1, kind);
  AppendNumber(post, &bound);
  return bound;
}

std::string MemberOf(const TimelineStore::Entry& entry) {
  std::string member;
  AppendNumber(entry.post, &member);
  AppendNumber(entry.author, &member);
  member.push_back(entry.mentioned ? 1 : 0);
  return member;
}

class RedisTimelines final : public TimelineStore {
 public:
  RedisTimelines(StoreAddress address, std::string name, uint64_t length)
      : redis_(std::move(address)), name_(std::move(name)), rest_(Join("-", length + length / 8 + 1)) {}

  Coroutine Add(Context& ctx, std::vector<Entry> entries) override {
    RedisBatch batch;
    for (const Entry& entry : entries) {
      const std::string key = KeyOf(entry.user);
      batch.Add({"ZADD", key, "0", MemberOf(entry)});
      batch.Add({"ZREMRANGEBYRANK", key, "0", rest_});
    }
    co_return Run(batch, ctx.deadline());
  }

  Coroutine Remove(Context& ctx, std::vector<Entry> entries) override {
    RedisBatch batch;
    for (const Entry& entry : entries) {
      batch.Add({"ZREMRANGEBYLEX", KeyOf(entry.user), Bound('[', entry.post), Bound('(', entry.post + 1)});
    }
    co_return Run(batch, ctx.deadline());
  }

  Coroutine Read(Context& ctx, const TimelinePage& page, std::vector<Entry>* entries) override {
    const uint64_t limit = LimitOf(page.limit());
    const auto reply = redis_.Run({"ZREVRANGEBYLEX", KeyOf(page.user()), Bound('(', BeforeOf(page.before())),
                                   "-", "LIMIT", "0", Join(2 * (page.skip() + limit))},
                                  ctx.deadline());
    if (!reply.ok()) co_return reply.status();
    uint64_t skipped = 0, last = 0;
    for (const RedisReply& member : reply->elements) {
      if (member.text.size() != kMemberBytes) co_return absl::DataLossError("a timeline in Redis is damaged");
      const Entry entry{.user = page.user(),
                        .post = NumberAt(member.text, 0),
                        .author = NumberAt(member.text, 8),
                        .mentioned = member.text[16] != 0};
      // That with the mention comes first.
      if (std::exchange(last, entry.post) == entry.post) continue;
      if (skipped++ < page.skip()) continue;
      if (entries->size() == limit) break;
      entries->push_back(entry);
    }
    co_return absl::OkStatus();
  }

 private:
  std::string KeyOf(uint64_t user) const { return Join(name_, ":", user); }

  absl::Status Run(const RedisBatch& batch, Deadline deadline) {
    const absl::StatusOr<std::vector<RedisReply>> replies = redis_.Run(batch, deadline);
    absl::Status status = replies.status();
    if (!status.ok()) return status;
    for (const RedisReply& reply : *replies) status.Update(reply.status());
    return status;
  }

  Redis redis_;
  // Immutable.
  const std::string name_;
  const std::string rest_;  // the rank of the newest entry that is too many
};

}  // namespace

std::unique_ptr<TimelineStore> MakeRedisTimelines(StoreAddress address, std::string name, uint64_t length) {
  return std::make_unique<RedisTimelines>(std::move(address), std::move(name), length);
}

}  // namespace curtail::social
