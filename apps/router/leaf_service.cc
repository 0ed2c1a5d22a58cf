// SPDX-License-Identifier: Apache-2.0
#include "apps/router/leaf_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/router/codec.h"
#include "apps/router/versions.h"
#include "curtail/base/strings.h"

namespace curtail::router {

LeafService::LeafService(Address memcached, MemcachedOptions options)
    : Store::Service(/*never_waits=*/true), memcached_(std::move(memcached), options) {}

absl::Status LeafService::Get(Context& ctx, const GetRequest& request, GetReply* reply) {
  if (absl::Status status = CheckKey(request.key()); !status.ok()) return status;
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
                                     Stripes::Hold* hold, StoreReply* reply) {
  if (absl::Status status = CheckVersion(version); !status.ok()) return status;
  const size_t stripe = Stripes::Of(HashOf(key));
  *hold = stripes_.Take(stripe, ctx.deadline());
  if (!*hold) return absl::DeadlineExceededError("other writes of keys of this stripe took too long");
  if (ctx.deadline().Expired())
    return absl::DeadlineExceededError("the write came too late; it was not done");
  std::atomic<uint64_t>& newest = newest_[stripe];
  const uint64_t before = newest.load(std::memory_order_relaxed);
  reply->set_newest(before);
  reply->set_late(version <= before);
  if (!reply->late()) newest.store(version, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status LeafService::Set(Context& ctx, const StoreSet& request, StoreReply* reply) {
  if (absl::Status status = CheckKey(request.key()); !status.ok()) return status;
  if (absl::Status status = CheckValue(request.value()); !status.ok()) return status;
  Stripes::Hold hold;
  absl::Status status = BeginWrite(ctx, request.key(), request.version(), &hold, reply);
  if (!status.ok() || reply->late()) return status;
  bool stored = false;
  status = memcached_.Set(request.key(), request.value(), request.if_absent(), ctx.deadline(), &stored);
  reply->set_done(stored);
  return status;
}

absl::Status LeafService::Delete(Context& ctx, const StoreDelete& request, StoreReply* reply) {
  if (absl::Status status = CheckKey(request.key()); !status.ok()) return status;
  Stripes::Hold hold;
  absl::Status status = BeginWrite(ctx, request.key(), request.version(), &hold, reply);
  if (!status.ok() || reply->late()) return status;
  bool found = false;
  status = memcached_.Delete(request.key(), ctx.deadline(), &found);
  reply->set_done(found);
  return status;
}

// Holds all stripes, one after the other in their order, while other writes hold one each: no circle can
// close.
absl::Status LeafService::Flush(Context& ctx, const StoreFlush& request, StoreReply* reply) {
  if (absl::Status status = CheckVersion(request.version()); !status.ok()) return status;
  std::vector<Stripes::Hold> holds;
  holds.reserve(Stripes::kCount);
  uint64_t newest = 0;
  for (size_t stripe = 0; stripe < Stripes::kCount; ++stripe) {
    holds.push_back(stripes_.Take(stripe, ctx.deadline()));
    if (!holds.back()) return absl::DeadlineExceededError("writes that are under way took too long");
    newest = std::max(newest, newest_[stripe].load(std::memory_order_relaxed));
  }
  reply->set_newest(newest);
  reply->set_late(request.version() <= newest);
  if (reply->late()) return absl::OkStatus();
  for (auto& stripe : newest_) stripe.store(request.version(), std::memory_order_relaxed);
  return memcached_.Flush(ctx.deadline());
}

}  // namespace curtail::router
