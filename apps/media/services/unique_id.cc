// SPDX-License-Identifier: Apache-2.0
//
// Unique id: ids in general, and the id of a review as a part of it.
#include "apps/kit/accounts/hosted.h"
#include "apps/media/data.h"

namespace curtail::media {

struct ReviewIdsService final : ReviewIds::CoroutineService {
  ReviewIdsService(Env& e, apps::UniqueId::CoroutineService& i) : env(e), ids(i) {}

  Coroutine Upload(Context& ctx, const UploadRequest& request, Composed* reply) override {
    apps::Ids next;
    if (absl::Status status = co_await ids.Next(ctx, apps::OneId(), &next); !status.ok()) co_return status;
    Part part;
    part.set_review(next.ids(0));
    co_return co_await PutPart(ctx, compose, request.request(), std::move(part), reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Upload", {compose}}}; }

  Env& env;
  apps::UniqueId::CoroutineService& ids;
  const ComposeReview::Stub compose = env.Stub<ComposeReview>("compose-review");
};

HostedService HostedUniqueId() {
  return apps::HostedUniqueId(kApplication, [](Env& env, apps::UniqueId::CoroutineService& ids) {
    return std::make_unique<ReviewIdsService>(env, ids);
  });
}

}  // namespace curtail::media
