// SPDX-License-Identifier: Apache-2.0
//
// Timeline: the ids of what each user wrote, oldest first, in a memcached.
#include <mutex>

#include "curtail/exec/sync.h"
#include "curtail/rpc/host.h"
#include "curtail/store/memcached.h"
#include "toy.curtail.h"

namespace curtail::toy {

struct TimelineService final : Timeline::Service {
  explicit TimelineService(StoreAddress address) : Service(/*never_waits=*/true), cache(std::move(address)) {}
  absl::Status Append(Context& ctx, const Post& request, Ids* reply) override {
    const std::lock_guard lock(mu);
    absl::Status status = Read(ctx, request.user(), reply);
    reply->add_ids(request.id());
    bool stored = false;
    if (status.ok()) {
      status = cache.Set(request.user(), reply->SerializeAsString(), false, ctx.deadline(), &stored);
    }
    return status;
  }
  absl::Status Get(Context& ctx, const Person& request, Ids* reply) override {
    return Read(ctx, request.user(), reply);
  }
  absl::Status Read(Context& ctx, const std::string& user, Ids* ids) {
    bool found = false;
    std::string bytes;
    absl::Status status = cache.Get(user, ctx.deadline(), &found, &bytes);
    if (status.ok() && !ids->ParseFromString(bytes)) return absl::DataLossError("no timeline");
    return status;
  }
  FiberMutex mu;  // one append at a time
  Memcached cache;
};

HostedService HostedTimeline() {
  return {.name = "timeline", .stores = {"timeline-cache"}, .make = [](Env& env) -> MadeService {
            auto address = StoreAddress::Parse(env.Store("timeline-cache").front());
            if (!address.ok()) return address.status();
            return std::make_unique<TimelineService>(*address);
          }};
}

}  // namespace curtail::toy
