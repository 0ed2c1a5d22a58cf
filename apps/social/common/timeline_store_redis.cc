// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A timeline is a sorted set (redis_sets.h) whose members are the post, the author, and 1 if the user is
// mentioned.
#include <algorithm>
#include <utility>

#include "apps/kit/data/redis_sets.h"
#include "apps/social/common/page.h"
#include "apps/social/common/timeline_store.h"
#include "curtail/base/strings.h"
#include "curtail/store/redis/redis.h"

namespace curtail::social {
namespace {

constexpr size_t kMemberBytes = 2 * apps::kIdBytes + 1;

std::string MemberOf(const TimelineStore::Entry& entry) {
  std::string member;
  apps::AppendId(entry.post, &member);
  apps::AppendId(entry.author, &member);
  member.push_back(entry.mentioned ? 1 : 0);
  return member;
}

class RedisTimelines final : public TimelineStore {
 public:
  RedisTimelines(StoreAddress address, std::string name, uint64_t length)
      : redis_(std::move(address)),
        name_(std::move(name)),
        rest_(length == 0 ? "" : Join("-", length + length / 8 + 1)) {}

  Coroutine Add(Context& ctx, std::vector<Entry> entries) override {
    RedisBatch batch;
    for (const Entry& entry : entries) {
      const std::string key = KeyOf(entry.user);
      batch.Add({"ZADD", key, "0", MemberOf(entry)});
      if (!rest_.empty()) batch.Add({"ZREMRANGEBYRANK", key, "0", rest_});
    }
    return apps::RunAll(redis_, std::move(batch), ctx.deadline());
  }

  Coroutine Remove(Context& ctx, std::vector<Entry> entries) override {
    RedisBatch batch;
    for (const Entry& entry : entries) {
      std::string from = apps::IdBound('[', entry.post), to = from;
      apps::AppendId(entry.author, &from), apps::AppendId(entry.author + 1, &to);
      batch.Add({"ZREMRANGEBYLEX", KeyOf(entry.user), from, to});
    }
    return apps::RunAll(redis_, std::move(batch), ctx.deadline());
  }

  Coroutine Forget(Context& ctx, uint64_t user) override {
    RedisBatch batch;
    batch.Add({"DEL", KeyOf(user)});
    return apps::RunAll(redis_, std::move(batch), ctx.deadline());
  }

  Coroutine Read(Context& ctx, const TimelinePage& page, std::vector<Entry>* entries) override {
    const uint64_t limit = apps::LimitOf(page.limit());
    // An entry comes twice only where some are mentioned; so few are kept there that they can be skipped here.
    const bool all = rest_.empty();
    const uint64_t skip = all ? 0 : page.skip();
    RedisBatch batch;
    batch.Add({"ZREVRANGEBYLEX", KeyOf(page.user()), apps::IdBound('(', apps::BeforeOf(page.before())), "-",
               "LIMIT", Join(all ? page.skip() : 0), Join(2 * (skip + limit))});
    const absl::StatusOr<RedisReply> reply = co_await apps::RunOne(redis_, std::move(batch), ctx.deadline());
    if (!reply.ok()) co_return reply.status();
    uint64_t skipped = 0, last = 0;
    for (const RedisReply& member : reply->elements) {
      if (member.text.size() != kMemberBytes) co_return absl::DataLossError("a timeline in Redis is damaged");
      const Entry entry{.user = page.user(),
                        .post = apps::IdAt(member.text, 0),
                        .author = apps::IdAt(member.text, 8),
                        .mentioned = member.text[16] != 0};
      // That with the mention comes first.
      if (std::exchange(last, entry.post) == entry.post) continue;
      if (skipped++ < skip) continue;
      if (entries->size() == limit) break;
      entries->push_back(entry);
    }
    co_return absl::OkStatus();
  }

 private:
  std::string KeyOf(uint64_t user) const { return Join(name_, ":", user); }

  Redis redis_;
  // Immutable.
  const std::string name_;
  const std::string rest_;  // the rank of the newest entry that is too many; empty: all are kept
};

}  // namespace

std::unique_ptr<TimelineStore> MakeRedisTimelines(StoreAddress address, std::string name, uint64_t length) {
  return std::make_unique<RedisTimelines>(std::move(address), std::move(name), length);
}

}  // namespace curtail::social
