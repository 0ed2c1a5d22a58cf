// SPDX-License-Identifier: Apache-2.0
//
// User: names, passwords and sessions, and the author as a part of a review.
#include "apps/kit/accounts/gone.h"
#include "apps/kit/accounts/hosted.h"
#include "apps/media/data.h"

namespace curtail::media {

struct AuthorsService final : Authors::CoroutineService {
  AuthorsService(Env& e, apps::User::CoroutineService& u) : env(e), users(u) {}

  Coroutine Upload(Context& ctx, const UploadRequest& request, Composed* reply) override {
    const apps::Ids id = IdsOf(request.user());
    apps::People found;
    if (absl::Status status = co_await users.ById(ctx, id, &found); !status.ok()) co_return status;
    if (found.people().empty()) co_return apps::GoneError();
    Part part;
    *part.mutable_author() = found.people(0);
    co_return co_await PutPart(ctx, compose, request.request(), std::move(part), reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Upload", {compose}}}; }

  Env& env;
  apps::User::CoroutineService& users;
  const ComposeReview::Stub compose = env.Stub<ComposeReview>("compose-review");
};

HostedService HostedUser() {
  return apps::HostedUser(kApplication, [](Env& env, apps::User::CoroutineService& users) {
    return std::make_unique<AuthorsService>(env, users);
  });
}

}  // namespace curtail::media
