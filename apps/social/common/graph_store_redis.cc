// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Two sorted sets a user: `out`, of those whom it follows, and `in`, of its followers. A change is a transaction
// of both, so no reader, and no Redis that is started again, finds one without the other.
//
// `gone` is the set of users who were forgotten. Forget() adds to it before it looks for follows. A Follow is one script,
// which asks `gone` first. So no order of the two leaves a follow.
//
// The scripts keep the names of requests, too (apps/kit/once.h).
#include <cstdlib>
#include <unordered_set>
#include <utility>
#include <vector>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/data/redis_sets.h"
#include "apps/social/common/graph_store.h"
#include "apps/social/common/page.h"
#include "apps/social/data.h"
#include "curtail/base/strings.h"
#include "curtail/store/redis/redis.h"

namespace curtail::social {
namespace {

constexpr char kPrefix[] = "social-graph:", kGone[] = "social-graph:gone", kNames[] = "social-graph:once:";
// A look at all follows: keys, and ids, in a reply.
constexpr char kKeysOfLook[] = "1000", kIdsOfLook[] = "10000";
constexpr Nanos kLookTime = std::chrono::seconds(10);
// Follows that one transaction of Forget() ends.
constexpr uint32_t kEndedAtOnce = 250;

// The number of new follows, or which of the two is gone.
constexpr int64_t kFromGone = -1, kToGone = -2;
constexpr char kFollow[] = R"(
if redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 1 then return -1 end
if redis.call('SISMEMBER', KEYS[3], ARGV[2]) == 1 then return -2 end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return redis.call('ZADD', KEYS[1], 0, ARGV[2]))";
constexpr char kUnfollow[] = R"(
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[2]))";
constexpr char kPart[] = R"(
redis.call('ZREM', KEYS[1], ARGV[2]) redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1]) redis.call('ZREM', KEYS[4], ARGV[2])
return 0)";

std::string OutOf(uint64_t user) { return Join(kPrefix, "out:", user); }
std::string InOf(uint64_t user) { return Join(kPrefix, "in:", user); }

std::string MemberOf(uint64_t user) {
  std::string member;
  apps::AppendId(user, &member);
  return member;
}

absl::Status Damaged() { return absl::DataLossError("the graph in Redis is damaged"); }

absl::Status AppendIds(const RedisReply& members, std::vector<uint64_t>* ids) {
  for (const RedisReply& member : members.elements) {
    if (member.text.size() != apps::kIdBytes) return Damaged();
    ids->push_back(apps::IdAt(member.text));
  }
  return absl::OkStatus();
}

class RedisGraph final : public GraphStore {
 public:
  explicit RedisGraph(StoreAddress address) : redis_(std::move(address)) {}

  Coroutine Follow(Context& ctx, const Edge& edge, apps::Once& once, bool* changed) override {
    int64_t made = 0;
    std::vector<std::string> keys = {OutOf(edge.from()), InOf(edge.to()), kGone};
    absl::Status done = co_await Run(ctx, once, kFollow, std::move(keys), edge, &made);
    if (!done.ok()) co_return done;
    if (made == kFromGone) co_return apps::GoneError();
    if (made == kToGone) co_return apps::OtherGoneError();
    *changed = made > 0;
    co_return absl::OkStatus();
  }

  Coroutine Unfollow(Context& ctx, const Edge& edge, apps::Once& once, bool* changed) override {
    int64_t made = 0;
    std::vector<std::string> keys = {OutOf(edge.from()), InOf(edge.to())};
    absl::Status done = co_await Run(ctx, once, kUnfollow, std::move(keys), edge, &made);
    *changed = done.ok() && made > 0;
    co_return done;
  }

  Coroutine TakeBack(Context& ctx, const Edge& edge, const apps::Once& once) override {
    RedisBatch batch;
    batch.Add({"MULTI"});
    Remove(edge.from(), edge.to(), &batch);
    if (once.named()) batch.Add({"DEL", once.RedisKey(kNames)});
    batch.Add({"EXEC"});
    co_return co_await Change(std::move(batch), ctx.deadline());
  }

  Coroutine Part(Context& ctx, const Edge& edge, apps::Once& once) override {
    int64_t made = 0;
    std::vector<std::string> keys = {OutOf(edge.from()), InOf(edge.to()), OutOf(edge.to()),
                                     InOf(edge.from())};
    co_return co_await Run(ctx, once, kPart, std::move(keys), edge, &made);
  }

  Coroutine Forget(Context& ctx, uint64_t user) override {
    RedisBatch mark;
    mark.Add({"SADD", kGone, MemberOf(user)});
    absl::Status status = co_await apps::RunAll(redis_, std::move(mark), ctx.deadline());
    if (status.ok()) status = co_await EndAll(ctx, user, /*out=*/true);
    if (status.ok()) status = co_await EndAll(ctx, user, /*out=*/false);
    co_return status;
  }

  Coroutine Followers(Context& ctx, const EdgePage& page, Ids* ids) override {
    return List(ctx, InOf(page.user()), page, ids);
  }
  Coroutine Followees(Context& ctx, const EdgePage& page, Ids* ids) override {
    return List(ctx, OutOf(page.user()), page, ids);
  }

  Coroutine Followed(Context& ctx, const LookRequest& look, Ids* ids) override {
    const std::string key = OutOf(look.viewer());
    std::vector<std::string> members;
    for (const uint64_t author : look.authors()) members.push_back(MemberOf(author));
    std::vector<std::string_view> words = {"ZMSCORE", key};
    words.insert(words.end(), members.begin(), members.end());
    RedisBatch batch;
    batch.Add(words);
    const absl::StatusOr<RedisReply> scores = co_await apps::RunOne(redis_, std::move(batch), ctx.deadline());
    if (!scores.ok()) co_return scores.status();
    if (scores->elements.size() != members.size()) co_return Damaged();
    for (int i = 0; i < look.authors_size(); ++i) {
      if (!scores->elements[static_cast<size_t>(i)].null()) ids->add_ids(look.authors(i));
    }
    co_return absl::OkStatus();
  }

  Coroutine Count(Context& ctx, uint64_t user, GraphCounts* counts) override {
    RedisBatch batch;
    batch.Add({"ZCARD", InOf(user)});
    batch.Add({"ZCARD", OutOf(user)});
    std::vector<RedisReply> replies;
    absl::Status status = co_await apps::RunAll(redis_, std::move(batch), ctx.deadline(), &replies);
    if (!status.ok()) co_return status;
    counts->set_followers(static_cast<uint64_t>(replies[0].integer));
    counts->set_following(static_cast<uint64_t>(replies[1].integer));
    co_return absl::OkStatus();
  }

 private:
  static void Remove(uint64_t from, uint64_t to, RedisBatch* batch) {
    batch->Add({"ZREM", OutOf(from), MemberOf(to)});
    batch->Add({"ZREM", InOf(to), MemberOf(from)});
  }

  // Ends all follows of the user, or by others.
  Coroutine EndAll(Context& ctx, uint64_t user, bool out) {
    const std::string key = out ? OutOf(user) : InOf(user);
    EdgePage page;
    page.set_limit(kEndedAtOnce);
    while (true) {
      Ids others;
      absl::Status status = co_await List(ctx, key, page, &others);
      if (!status.ok() || others.ids().empty()) co_return status;
      RedisBatch batch;
      batch.Add({"MULTI"});
      for (const uint64_t other : others.ids()) Remove(out ? user : other, out ? other : user, &batch);
      batch.Add({"EXEC"});
      status = co_await Change(std::move(batch), ctx.deadline());
      if (!status.ok()) co_return status;
    }
  }

  // A script about both ends of an edge.
  Coroutine Run(Context& ctx, apps::Once& once, const char* script, std::vector<std::string> keys,
                const Edge& edge, int64_t* made) {
    const std::vector<std::string> words =
        once.RedisWords(apps::Once::RedisScript(script), kNames, std::move(keys),
                        {MemberOf(edge.from()), MemberOf(edge.to())});
    RedisBatch batch;
    batch.Add(std::vector<std::string_view>(words.begin(), words.end()));
    const absl::StatusOr<RedisReply> done = co_await apps::RunOne(redis_, std::move(batch), ctx.deadline());
    if (!done.ok()) co_return done.status();
    if (done->elements.size() != 2) co_return Damaged();
    *made = done->elements[0].integer;
    co_return once.RedisAnswered(*made, done->elements[1].integer != 0);
  }

  // A transaction.
  Coroutine Change(RedisBatch batch, Deadline deadline) {
    std::vector<RedisReply> replies;
    absl::Status status = co_await apps::RunAll(redis_, std::move(batch), deadline, &replies);
    if (!status.ok()) co_return status;
    for (const RedisReply& one : replies.back().elements) status.Update(one.status());
    co_return replies.back().elements.empty() ? Damaged() : status;
  }

  Coroutine List(Context& ctx, std::string key, const EdgePage& page, Ids* ids) {
    RedisBatch batch;
    batch.Add({"ZRANGEBYLEX", key, apps::IdBound('(', page.after()), "+", "LIMIT", "0",
               Join(apps::EdgeLimitOf(page.limit()))});
    const absl::StatusOr<RedisReply> members =
        co_await apps::RunOne(redis_, std::move(batch), ctx.deadline());
    if (!members.ok()) co_return members.status();
    std::vector<uint64_t> found;
    absl::Status status = AppendIds(*members, &found);
    ids->mutable_ids()->Add(found.begin(), found.end());
    co_return status;
  }

  Redis redis_;
};

}  // namespace

std::unique_ptr<GraphStore> MakeRedisGraph(StoreAddress address) {
  return std::make_unique<RedisGraph>(std::move(address));
}

absl::Status ForEachRedisFollow(const StoreAddress& address, OnFollow follow) {
  Redis redis(address);
  const std::string prefix = Join(kPrefix, "out:");
  std::unordered_set<std::string> seen;  // a scan may name a key again
  std::string cursor = "0";
  do {
    const auto keys = redis.Run({"SCAN", cursor, "MATCH", prefix + "*", "COUNT", kKeysOfLook, "TYPE", "zset"},
                                Deadline::In(kLookTime));
    if (!keys.ok()) return keys.status();
    if (keys->elements.size() != 2) return Damaged();
    cursor = keys->elements[0].text;
    for (const RedisReply& key : keys->elements[1].elements) {
      if (!seen.insert(key.text).second) continue;
      const uint64_t user = std::strtoull(key.text.c_str() + prefix.size(), nullptr, 10);
      std::vector<uint64_t> others(1);
      while (!others.empty()) {
        const auto page = redis.Run(
            {"ZRANGEBYLEX", key.text, apps::IdBound('(', others.back()), "+", "LIMIT", "0", kIdsOfLook},
            Deadline::In(kLookTime));
        if (!page.ok()) return page.status();
        others.clear();
        if (absl::Status status = AppendIds(*page, &others); !status.ok()) return status;
        for (const uint64_t other : others) follow(user, other);
      }
    }
  } while (cursor != "0");
  return absl::OkStatus();
}

}  // namespace curtail::social
