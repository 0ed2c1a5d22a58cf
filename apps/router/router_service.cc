// SPDX-License-Identifier: Apache-2.0
#include "apps/router/router_service.h"

#include <utility>

#include "apps/router/codec.h"
#include "apps/router/write.h"
#include "curtail/rpc/coroutine.h"
#include "router.curtail.h"

namespace curtail::router {
namespace {

absl::Status Check(const SetRequest& request) {
  absl::Status status = CheckKey(request.key());
  return status.ok() ? CheckValue(request.value()) : status;
}

StoreSet ForLeaves(const SetRequest& request) {
  StoreSet store;
  store.set_key(request.key());
  store.set_value(request.value());
  return store;
}

StoreDelete ForLeaves(const DeleteRequest& request) {
  StoreDelete store;
  store.set_key(request.key());
  return store;
}

template <class Reply>
absl::Status Report(const Write& write, Reply* reply) {
  reply->set_taken(write.taken());
  reply->set_replicas(write.replicas());
  return write.Finish();
}

// A cold replica gets a key back when it is asked for, once. Returns true when the key was sent.
Co<bool> RunRefill(Routing& routing, Context& ctx, const GetRequest& request, const GetAttempts& attempts) {
  Refill refill(routing, ctx, attempts);
  if (!refill.Begin(request.key())) co_return false;
  StoreSet store;
  store.set_key(request.key());
  auto replies = co_await broadcast(refill.context(), refill.source(), Store::kGet, request);
  if (!refill.TakeSource(std::move(replies), &store)) co_return false;
  const auto ignored = co_await broadcast(refill.context(), refill.channels(), Store::kSet, store);
  co_return true;
}

class RouterService final : public Router::CoroutineService {
 public:
  explicit RouterService(Routing& routing) : routing_(routing) {}

  Coroutine Get(Context& ctx, const GetRequest& request, GetReply* reply) override;
  Coroutine Set(Context& ctx, const SetRequest& request, SetReply* reply) override;
  Coroutine Delete(Context& ctx, const DeleteRequest& request, DeleteReply* reply) override;
  Coroutine Replicas(Context& ctx, const ReplicasRequest& request, ReplicasReply* reply) override;

 private:
  Routing& routing_;
};

Coroutine RouterService::Get(Context& ctx, const GetRequest& request, GetReply* reply) {
  if (absl::Status status = CheckKey(request.key()); !status.ok()) co_return status;
  GetAttempts attempts(routing_, ctx, request.key());
  while (attempts.Next()) {
    attempts.Take(co_await broadcast(attempts.context(), attempts.channels(), Store::kGet, request), reply);
  }
  if (attempts.WantsRefill()) co_await RunRefill(routing_, ctx, request, attempts);
  co_return attempts.Finish();
}

Coroutine RouterService::Set(Context& ctx, const SetRequest& request, SetReply* reply) {
  if (absl::Status status = Check(request); !status.ok()) co_return status;
  StoreSet store = ForLeaves(request);
  Write write(routing_, ctx);
  if (absl::Status status = write.Begin(request.key()); !status.ok()) co_return status;
  while (write.Next()) {
    write.Address(&store);
    write.Take(co_await broadcast(write.context(), write.channels(), Store::kSet, store));
  }
  co_return Report(write, reply);
}

Coroutine RouterService::Delete(Context& ctx, const DeleteRequest& request, DeleteReply* reply) {
  if (absl::Status status = CheckKey(request.key()); !status.ok()) co_return status;
  StoreDelete store = ForLeaves(request);
  Write write(routing_, ctx);
  if (absl::Status status = write.Begin(request.key()); !status.ok()) co_return status;
  while (write.Next()) {
    write.Address(&store);
    write.Take(co_await broadcast(write.context(), write.channels(), Store::kDelete, store));
  }
  reply->set_found(write.done());
  co_return Report(write, reply);
}

Coroutine RouterService::Replicas(Context&, const ReplicasRequest&, ReplicasReply* reply) {
  routing_.replicas->Describe(reply);
  co_return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Service> MakeRouterService(Routing& routing) {
  return std::make_unique<RouterService>(routing);
}

}  // namespace curtail::router
