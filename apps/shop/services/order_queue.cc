// SPDX-License-Identifier: Apache-2.0
//
// Order queue: orders in the order of their arrival, in the kit's queue of jobs, until `queue-master` has ended them.
#include <chrono>
#include <set>

#include "apps/kit/jobs/job_queue.h"
#include "apps/shop/data.h"

namespace curtail::shop {

constexpr uint64_t kMostWaiting = 10'000;

struct OrderQueueService final : OrderQueue::CoroutineService {
  OrderQueueService(std::unique_ptr<apps::JobStore> jobs, Env& env)
      : master(env.Stub<QueueMaster>("queue-master")),
        queue(std::move(jobs), kMostOrders, [this](std::span<apps::Job> group) { Run(group); }) {
    queue.WorkWhileServing(env);
  }

  Coroutine Put(Context& ctx, const QueuedOrder& request, apps::Nothing*) override {
    co_return co_await queue.Put(ctx, request.SerializeAsString());
  }

  // Once an order has failed, the next ones are not ended before it in this group.
  void Run(std::span<apps::Job> group) {
    QueuedOrders orders;
    for (const apps::Job& job : group) {
      QueuedOrder order;
      if (order.ParseFromString(job.bytes)) orders.add_orders()->Swap(&order);
    }
    Context ctx(apps::kJobTime);
    apps::Ids ended;
    // An error is seen as orders that have not ended.
    master.Run(ctx, orders, &ended).IgnoreError();
    const std::set<uint64_t> done(ended.ids().begin(), ended.ids().end());
    for (apps::Job& job : group) {
      QueuedOrder order;
      job.done = order.ParseFromString(job.bytes) && done.contains(order.order());
    }
  }

  Coroutine Look(Context& ctx, const apps::Nothing&, WaitingOrders* reply) override {
    return queue.Look(ctx, reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Put", {}}, {"Look", {}}}; }

  const QueueMaster::Stub master;
  apps::JobQueue queue;
};

HostedService HostedOrderQueue() {
  return apps::HostedOnData(kApplication, "order-queue",
                            [](Env& env, const apps::DataOptions& data) -> MadeService {
                              auto jobs = apps::OpenJobs(env, data, "order-queue", kMostWaiting);
                              if (!jobs.ok()) return jobs.status();
                              return std::make_unique<OrderQueueService>(*std::move(jobs), env);
                            });
}

}  // namespace curtail::shop
