// SPDX-License-Identifier: Apache-2.0
//
// get_attempts.h - a get as the mid-tier makes it: one replica, and another if that one fails or has no such
// key; and how a replica that had none gets it back.
//
// These name the replicas to call and judge the answers; the handlers (router_service.h) call and wait.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "apps/router/replica_set.h"
#include "curtail/rpc/context.h"
#include "router.pb.h"

namespace curtail::router {

// The state that handlers share.
struct Routing {
  std::unique_ptr<ReplicaSet> replicas;
  Stripes stripes;
};

// Asks one replica after the other for a key. A replica that times out is asked again after the others, as
// long as the client waits. A miss counts once all replicas that take part have reported it: one of them may
// have been emptied a moment ago, or have evicted the key. A GetAttempts is for one request.
class GetAttempts {
 public:
  // REQUIRES: the key passes CheckKey().
  GetAttempts(Routing& routing, Context& ctx, std::string_view key);

  // True: ask a (further) replica; then these say how.
  bool Next();
  Context& context() { return part_ ? *part_ : ctx_; }
  std::span<Channel* const> channels() const { return order_.channels().subspan(asked_, 1); }
  // Its answer.
  void Take(Replies<GetReply>&& replies, GetReply* reply);

  // OK if it was found, or if all that still take part have missed it; otherwise why the last one that failed
  // did so, with its name.
  absl::Status Finish() const;

  // True if it was found after others had missed it.
  bool WantsRefill() const { return found_ && missed_.size() > 0; }
  const Targets& missed() const { return missed_; }
  std::span<Channel* const> source() const { return order_.channels().subspan(asked_ - 1, 1); }
  uint32_t source_id() const { return order_.id(asked_ - 1); }

 private:
  Routing& routing_;
  Context& ctx_;
  const Deadline deadline_;  // that of ctx_, or the default when ctx_ has none
  const size_t shard_;
  Targets order_;
  Targets missed_, failed_;      // of order_
  std::optional<Context> part_;  // while there are others to ask
  bool limited_ = false;         // part_ ends before deadline_, for that reason
  size_t asked_ = 0;             // of order_
  bool timed_out_ = false;       // one of order_, though ctx_ goes on
  bool found_ = false;
  absl::Status failure_;
};

// Gives a key to replicas that missed it, as long as no write of it is in flight. For one request.
class Refill {
 public:
  // A refill may take what a replica may take over a get, and a quarter of the client's time at most.
  Refill(Routing& routing, Context& ctx, const GetAttempts& attempts);

  // True if the key can be refilled now: its stripe is free, and held from here on, and the source still
  // takes part.
  bool Begin(std::string_view key);
  Context& context() { return part_; }
  // First ask again, because it may have been deleted before the stripe was held ...
  std::span<Channel* const> source() const { return attempts_.source(); }
  // ... and, when this says so, send `request` to the others. Whether they take it does not matter.
  bool TakeSource(Replies<GetReply>&& replies, StoreSet* request);
  std::span<Channel* const> channels() const { return targets_.channels(); }

 private:
  Routing& routing_;
  const GetAttempts& attempts_;
  Targets targets_;  // missed it, and still take part
  Context part_;
  Stripes::Hold hold_;
};

}  // namespace curtail::router
