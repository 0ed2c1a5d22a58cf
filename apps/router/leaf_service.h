// SPDX-License-Identifier: Apache-2.0
//
// leaf_service.h - one replica of one shard: a memcached of its own behind RPC.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "apps/router/memcached.h"
#include "apps/router/stripes.h"
#include "router.curtail.h"
#include "router.pb.h"

namespace curtail::router {

// A LeafService is the only user of its memcached, and orders the writes of each stripe by their versions:
// what comes late, because the mid-tier gave it up long ago, is not done. Any number of requests at once.
// Under asynchronous models its handlers keep their thread while memcached works, which is for some tens of
// microseconds.
class LeafService final : public Store::Service {
 public:
  LeafService(Address memcached, MemcachedOptions options);

  // Errors of all: INVALID_ARGUMENT (key, value, a version more than a day ahead of the clock), and those of
  // Memcached.
  absl::Status Get(Context& ctx, const GetRequest& request, GetReply* reply) override;
  absl::Status Set(Context& ctx, const StoreSet& request, StoreReply* reply) override;
  absl::Status Delete(Context& ctx, const StoreDelete& request, StoreReply* reply) override;
  absl::Status Flush(Context& ctx, const StoreFlush& request, StoreReply* reply) override;

 private:
  // INVALID_ARGUMENT for a version that cannot be right: were it believed, no write could follow it.
  static absl::Status CheckVersion(uint64_t version);
  // Holds the key's stripe in `hold` and takes the version as its newest; or says in `reply` that it comes
  // late. Errors: DEADLINE_EXCEEDED, if the request's has passed when the stripe is held, and
  // INVALID_ARGUMENT; then nothing has changed.
  absl::Status BeginWrite(Context& ctx, std::string_view key, uint64_t version, Stripes::Hold* hold,
                          StoreReply* reply);

  Memcached memcached_;
  Stripes stripes_;
  // The newest version that each stripe has seen. Atomic; written by who holds the stripe, relaxed for that
  // reason.
  std::array<std::atomic<uint64_t>, Stripes::kCount> newest_{};
};

}  // namespace curtail::router
