// SPDX-License-Identifier: Apache-2.0
#include "apps/router/leaf_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/router/versions.h"
#include "curtail/base/strings.h"
#include "curtail/store/memcached_codec.h"

namespace curtail::router {
namespace {

// How long memcached has to show that it is there when a mid-tier asks what it holds.
constexpr Nanos kCheckTime = std::chrono::milliseconds(250);

void Raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t now = value.load(std::memory_order_relaxed);
  while (now < to && !value.compare_exchange_weak(now, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

LeafService::LeafService(StoreAddress memcached, MemcachedOptions options)
    : Store::Service(/*never_waits=*/true),
      memcached_(std::move(memcached), options),
      since_(VersionOfNow()) {
  // Requests to the leaf that was here before may still come.
  for (Seen& seen : seen_) seen.newest.store(since_, std::memory_order_relaxed);
}

void LeafService::Seen::Begin(uint64_t version, uint32_t to) {
  begun.store(version, std::memory_order_relaxed);
  members.store(to, std::memory_order_relaxed);
}

// If memcached has answered, be it that it refused the value, what it holds is known, and nothing comes later.
void LeafService::Seen::End(const absl::Status& status) {
  if (!status.ok() && status.code() != absl::StatusCode::kInvalidArgument &&
      status.code() != absl::StatusCode::kResourceExhausted) {
    return;
  }
  done.store(begun.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

absl::Status LeafService::Get(Context& ctx, const GetRequest& request, GetReply* reply) {
  if (absl::Status status = memcached::CheckKey(request.key()); !status.ok()) return status;
  bool found = false;
  absl::Status status = memcached_.Get(request.key(), ctx.deadline(), &found, reply->mutable_value());
  reply->set_found(found);
  return status;
}

absl::Status LeafService::CheckVersion(uint64_t version) {
  if (version <= GreatestVersion()) return absl::OkStatus();
  return absl::InvalidArgumentError(Join("version ", version,
                                         " is more than a day ahead of this leaf's clock, ", VersionOfNow(),
                                         " ns since 1970; set the clocks right"));
}

absl::Status LeafService::BeginWrite(Context& ctx, std::string_view key, uint64_t version,
                                     Stripes::Hold* hold, Seen** seen, StoreReply* reply) {
  if (absl::Status status = CheckVersion(version); !status.ok()) return status;
  const size_t stripe = Stripes::Of(HashOf(key));
  *hold = stripes_.Take(stripe, ctx.deadline());
  if (!*hold) return absl::DeadlineExceededError("other writes of keys of this stripe took too long");
  if (ctx.deadline().Expired())
    return absl::DeadlineExceededError("the write came too late; it was not done");
  *seen = &seen_[stripe];
  std::atomic<uint64_t>& newest = (*seen)->newest;
  const uint64_t before = newest.load(std::memory_order_relaxed);
  reply->set_newest(before);
  reply->set_late(version <= before);
  if (!reply->late()) newest.store(version, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status LeafService::Set(Context& ctx, const StoreSet& request, StoreReply* reply) {
  if (absl::Status status = memcached::CheckKey(request.key()); !status.ok()) return status;
  if (absl::Status status = memcached::CheckValue(request.value()); !status.ok()) return status;
  Stripes::Hold hold;
  Seen* seen = nullptr;
  absl::Status status = BeginWrite(ctx, request.key(), request.version(), &hold, &seen, reply);
  if (!status.ok() || reply->late()) return status;
  if (!request.if_absent()) seen->Begin(request.version(), request.members());
  bool stored = false;
  status = memcached_.Set(request.key(), request.value(), request.if_absent(), ctx.deadline(), &stored);
  if (!request.if_absent()) seen->End(status);
  reply->set_done(stored);
  return status;
}

absl::Status LeafService::Delete(Context& ctx, const StoreDelete& request, StoreReply* reply) {
  if (absl::Status status = memcached::CheckKey(request.key()); !status.ok()) return status;
  Stripes::Hold hold;
  Seen* seen = nullptr;
  absl::Status status = BeginWrite(ctx, request.key(), request.version(), &hold, &seen, reply);
  if (!status.ok() || reply->late()) return status;
  seen->Begin(request.version(), request.members());
  bool found = false;
  status = memcached_.Delete(request.key(), ctx.deadline(), &found);
  seen->End(status);
  reply->set_done(found);
  return status;
}

// Holds all stripes, one after the other in their order, while other writes hold one each: no circle can
// close.
template <class Reply>
absl::Status LeafService::BeginAlone(Context& ctx, uint64_t version, std::vector<Stripes::Hold>* holds,
                                     Reply* reply) {
  if (absl::Status status = CheckVersion(version); !status.ok()) return status;
  holds->reserve(Stripes::kCount);
  uint64_t newest = 0;
  for (size_t stripe = 0; stripe < Stripes::kCount; ++stripe) {
    holds->push_back(stripes_.Take(stripe, ctx.deadline()));
    if (!holds->back()) return absl::DeadlineExceededError("writes that are under way took too long");
    newest = std::max(newest, seen_[stripe].newest.load(std::memory_order_relaxed));
  }
  reply->set_newest(newest);
  reply->set_late(version <= newest);
  if (reply->late()) return absl::OkStatus();
  for (Seen& seen : seen_) seen.newest.store(version, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status LeafService::Flush(Context& ctx, const StoreFlush& request, StoreReply* reply) {
  if (request.done_before()) {
    if (absl::Status status = CheckVersion(request.version()); !status.ok()) return status;
    Raise(flushed_, request.version());
    Raise(since_, request.version());
    return absl::OkStatus();
  }
  std::vector<Stripes::Hold> holds;
  absl::Status status = BeginAlone(ctx, request.version(), &holds, reply);
  if (!status.ok() || reply->late()) return status;
  // Also if it is carried out but not answered.
  Raise(since_, request.version());
  status = memcached_.Flush(ctx.deadline());
  if (status.ok()) Raise(flushed_, request.version());
  return status;
}

absl::Status LeafService::Recall(Context& ctx, const StoreRecall& request, StoreHistory* reply) {
  std::vector<Stripes::Hold> holds;
  absl::Status status = BeginAlone(ctx, request.version(), &holds, reply);
  if (!status.ok() || reply->late()) return status;
  reply->set_flushed(flushed_.load(std::memory_order_relaxed));
  const bool there = memcached_.Check(std::min(ctx.deadline(), Deadline::In(kCheckTime))).ok();
  const uint64_t lost = there ? memcached_.lost() : VersionOfNow();
  reply->set_since(std::max(since_.load(std::memory_order_relaxed), lost));
  uint64_t newest = 0;
  for (const Seen& seen : seen_) {
    const uint64_t begun = seen.begun.load(std::memory_order_relaxed);
    reply->add_begun(begun);
    reply->add_done(seen.done.load(std::memory_order_relaxed));
    if (begun <= newest) continue;
    newest = begun;
    reply->set_members(seen.members.load(std::memory_order_relaxed));
  }
  return absl::OkStatus();
}

HostedService HostedLeaf() {
  struct Options {
    std::string memcached;
    int connections = 64;
  };
  auto options = std::make_shared<Options>();
  return {
      .name = "leaf",
      .own_stores = {"store"},
      .flags =
          [options](Flags& flags) {
            flags.Add("--memcached", &options->memcached,
                      "leaf: ADDR, the same as --store store=ADDR [127.0.0.1:11211]; start it with -I 2m");
            flags.Add("--connections", &options->connections,
                      "leaf: connections to memcached at most; fiber models: from each thread", {1, 1000});
          },
      .make = [options](Env& env) -> MadeService {
        const std::vector<std::string>& given = env.Store("store");
        std::string text = given.empty() ? options->memcached : given.front();
        if (text.empty()) text = "127.0.0.1:11211";
        absl::StatusOr<StoreAddress> memcached = StoreAddress::Parse(text);
        if (!memcached.ok()) return memcached.status();
        return std::make_unique<LeafService>(*std::move(memcached),
                                             MemcachedOptions{.connections = options->connections});
      },
      .memory = [options](Env&) -> absl::StatusOr<uint64_t> {
        constexpr uint64_t kServer = 16u << 20, kStripe = 128 + 32, kConnection = 32u << 10;
        return kServer + Stripes::kCount * kStripe +
               static_cast<uint64_t>(options->connections) * kConnection;
      }};
}

}  // namespace curtail::router
