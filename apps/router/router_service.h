// SPDX-License-Identifier: Apache-2.0
//
// router_service.h - the mid-tier: a key's shard by its hash, gets to one replica of it, writes to all.
//
// Two handlers of one service, which differ only in how they wait: straight-line for the synchronous and
// fiber models, a coroutine for the asynchronous ones. Whom to call, and what to make of the answers,
// GetAttempts and Write say.
#pragma once

#include <memory>
#include <vector>

#include "apps/router/get_attempts.h"
#include "curtail/rpc/coroutine.h"
#include "router.curtail.h"
#include "router.pb.h"

namespace curtail::router {

// Any number of requests at once.
class RouterService final : public Router::Service {
 public:
  explicit RouterService(Routing& routing) : routing_(routing) {}

  // Errors of all: INVALID_ARGUMENT (key, value), DEADLINE_EXCEEDED, CANCELLED, or that of a leaf: of a set
  // or delete when none of the shard's did it, of a get when one that takes part failed and no other has the
  // key.
  absl::Status Get(Context& ctx, const GetRequest& request, GetReply* reply) override;
  absl::Status Set(Context& ctx, const SetRequest& request, SetReply* reply) override;
  absl::Status Delete(Context& ctx, const DeleteRequest& request, DeleteReply* reply) override;
  absl::Status Replicas(Context& ctx, const ReplicasRequest& request, ReplicasReply* reply) override;

 private:
  Routing& routing_;
};

// The same as coroutines. A write that waits for its turn keeps its thread, though: no thread of the response
// pool ever waits so, hence the turn comes.
class CoroutineRouterService final : public Router::CoroutineService {
 public:
  explicit CoroutineRouterService(Routing& routing) : routing_(routing) {}

  // Errors: those of RouterService.
  Coroutine Get(Context& ctx, const GetRequest& request, GetReply* reply) override;
  Coroutine Set(Context& ctx, const SetRequest& request, SetReply* reply) override;
  Coroutine Delete(Context& ctx, const DeleteRequest& request, DeleteReply* reply) override;
  Coroutine Replicas(Context& ctx, const ReplicasRequest& request, ReplicasReply* reply) override;

 private:
  Routing& routing_;
};

// Both, so that one server runs under all models. `routing` outlives them.
std::vector<std::unique_ptr<Service>> RouterServices(Routing& routing);

}  // namespace curtail::router
