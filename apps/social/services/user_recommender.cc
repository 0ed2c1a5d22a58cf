// SPDX-License-Identifier: Apache-2.0
//
// User recommender: whom a user may like to follow, by what `social train` has learned.
#include <unordered_map>
#include <unordered_set>

#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/social/common/page.h"
#include "apps/social/common/train.h"
#include "apps/social/data.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "models.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

// Of these, those are left out whom the user follows already or does not see.
constexpr size_t kCandidates = 500;

struct UserRecommenderService final : UserRecommender::CoroutineService {
  UserRecommenderService(std::string path, Env& e) : file(std::move(path)), env(e) {}

  Coroutine Recommend(Context& ctx, const RecommendQuery& request, People* reply) override {
    const auto model = file.Get();
    if (!model.ok()) co_return model.status();
    const std::vector<uint64_t> best = BestFor(**model, request.user(), kCandidates);
    LookRequest look;
    look.set_viewer(request.user());
    look.mutable_authors()->Assign(best.begin(), best.end());
    auto known = co_await WhenAllOk(ctx, Ask(graph, SocialGraph::kLook, look),
                                    Ask(block_user, BlockUser::kHidden, look));
    if (!known.ok()) co_return known.status();
    const auto& [followed, hidden] = *known;
    std::unordered_set<uint64_t> not_these(followed.ids().begin(), followed.ids().end());
    not_these.insert(hidden.ids().begin(), hidden.ids().end());
    Ids chosen;
    for (const uint64_t one : best) {
      if (chosen.ids_size() == static_cast<int>(apps::LimitOf(request.limit()))) break;
      if (!not_these.contains(one)) chosen.add_ids(one);
    }
    auto [people] = co_await WhenAll(ctx, Ask(user, User::kById, chosen));
    if (!people.ok()) co_return people.status();
    std::unordered_map<uint64_t, Person*> by_id;
    for (Person& person : *people->mutable_people()) by_id[person.id()] = &person;
    for (const uint64_t one : chosen.ids()) {
      if (const auto found = by_id.find(one); found != by_id.end()) reply->add_people()->Swap(found->second);
    }
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Recommend", {user, graph, block_user}}}; }

  apps::ModelFile<FollowModel> file;
  Env& env;
  const User::Stub user = env.Stub<User>("user");
  const SocialGraph::Stub graph = env.Stub<SocialGraph>("social-graph");
  const BlockUser::Stub block_user = env.Stub<BlockUser>("block-user");
};

HostedService HostedUserRecommender() {
  return apps::HostedOnData(
      kApplication, "user-recommender", [](Env& env, const apps::DataOptions& data) -> MadeService {
        const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, data.folder);
        if (!folder.ok()) return folder.status();
        return std::make_unique<UserRecommenderService>(Join(*folder, "/", kFollowModelFile), env);
      });
}

}  // namespace curtail::social
