// SPDX-License-Identifier: Apache-2.0
//
// leaf_service.h - one replica of one shard: a memcached of its own behind RPC.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "apps/router/stripes.h"
#include "curtail/rpc/host.h"
#include "curtail/store/memcached.h"
#include "router.curtail.h"
#include "router.pb.h"

namespace curtail::router {

// A LeafService is the only user of its memcached, and orders the writes of each stripe by their versions:
// what comes late, because the mid-tier gave it up long ago, is not done. Any number of requests at once.
// Under asynchronous models its handlers keep their thread while memcached works, which is for some tens of
// microseconds.
class LeafService final : public Store::Service {
 public:
  LeafService(StoreAddress memcached, MemcachedOptions options);

  // Errors of all: INVALID_ARGUMENT (key, value, a version more than a day ahead of the clock), and those of
  // Memcached.
  absl::Status Get(Context& ctx, const GetRequest& request, GetReply* reply) override;
  absl::Status Set(Context& ctx, const StoreSet& request, StoreReply* reply) override;
  absl::Status Delete(Context& ctx, const StoreDelete& request, StoreReply* reply) override;
  absl::Status Flush(Context& ctx, const StoreFlush& request, StoreReply* reply) override;
  absl::Status Recall(Context& ctx, const StoreRecall& request, StoreHistory* reply) override;

 private:
  // The versions sent to a stripe. Atomic; written by the holder of the stripe, relaxed for that reason.
  struct Seen {
    std::atomic<uint64_t> newest{0};   // of all: refills, flushes and recalls, too
    std::atomic<uint64_t> begun{0};    // of sets and deletes
    std::atomic<uint64_t> done{0};     // of those, when memcached has answered
    std::atomic<uint32_t> members{0};  // where the one in `begun` went; see StoreSet
    void Begin(uint64_t version, uint32_t to);
    void End(const absl::Status& status);
  };

  // INVALID_ARGUMENT for a version that cannot be right: were it believed, no write could follow it.
  static absl::Status CheckVersion(uint64_t version);
  // Waits until no write is under way and keeps new ones out as long as `holds` lives. Says in `reply` the newest
  // version of all stripes, and whether `version` is late; if it is not, it is their newest. Errors:
  // DEADLINE_EXCEEDED, INVALID_ARGUMENT.
  template <class Reply>
  absl::Status BeginAlone(Context& ctx, uint64_t version, std::vector<Stripes::Hold>* holds, Reply* reply);
  // Holds the key's stripe in `hold`, says which it is in `seen`, and takes the version as its newest; or says in
  // `reply` that it comes late. Errors: DEADLINE_EXCEEDED, if the request's has passed when the stripe is held, and
  // INVALID_ARGUMENT; then nothing has changed.
  absl::Status BeginWrite(Context& ctx, std::string_view key, uint64_t version, Stripes::Hold* hold,
                          Seen** seen, StoreReply* reply);

  Memcached memcached_;
  Stripes stripes_;
  std::array<Seen, Stripes::kCount> seen_;
  // Versions, as StoreHistory says. Atomic; relaxed, as a reader holds all stripes, and so does a writer. The one
  // exception is an earlier flush, which only the mid-tier that reads knows of.
  std::atomic<uint64_t> flushed_{0};
  std::atomic<uint64_t> since_;
};

// The leaf as a program serves it: over the memcached that only it uses, which need not run yet.
HostedService HostedLeaf();

}  // namespace curtail::router
