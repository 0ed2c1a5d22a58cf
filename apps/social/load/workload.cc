// SPDX-License-Identifier: Apache-2.0
#include "apps/social/load/workload.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/load/mixed_workload.h"
#include "apps/social/data.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/choice.h"
#include "social.curtail.h"

namespace curtail::social {
namespace {

// As DeathStarBench's clients read.
constexpr uint32_t kPageLength = 10;

std::vector<std::string_view> Mixes() { return {"mixed", "home", "user", "compose"}; }

bool IsWhole(const Post& post) {
  return post.id() != 0 && !post.text().empty() && !post.urls().empty() && !post.mentions().empty() &&
         !post.media().empty();
}

// A page is right if its posts are whole and go from new to old; a post, if it is the caller's and its parts are there.
bool IsRightPage(const Posts& page) {
  uint64_t before = UINT64_MAX;
  for (const Post& post : page.posts()) {
    if (!IsWhole(post) || post.id() >= before) return false;
    before = post.id();
  }
  return true;
}

apps::MixedWorkload::Mix MixOf(const std::string& name, const apps::Senders<apps::LoadUser>& users) {
  const apps::RequestKind home = apps::KindOf(
      users, Social::kReadHomeTimeline,
      [](Rng&, const apps::LoadUser&, HomePage& page) { page.set_limit(kPageLength); }, IsRightPage);
  const apps::RequestKind user = apps::KindOf(
      users, Social::kReadUserTimeline,
      [=](Rng& rng, const apps::LoadUser&, UserPage& page) {
        page.set_name((*users)[rng.Below(users->size())].name);
        page.set_limit(kPageLength);
      },
      IsRightPage);
  const apps::RequestKind compose = apps::KindOf(
      users, Social::kCompose,
      [=](Rng& rng, const apps::LoadUser&, ComposeRequest& request) {
        const GeneratedPost post = GeneratePost(rng, users->size());
        request.set_text(post.text);
        for (const uint64_t bytes : post.media_bytes) {
          MediaItem* const item = request.add_media();
          item->set_type("image/png");
          item->set_bytes(bytes);
        }
      },
      [](Rng&, const apps::LoadUser& caller, const Post& post) {
        return IsWhole(post) && post.author().id() == caller.id;
      });
  if (name == "home") return {{home, 1}};
  if (name == "user") return {{user, 1}};
  if (name == "compose") return {{compose, 1}};
  return {{home, 0.6}, {user, 0.3}, {compose, 0.1}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeSocialWorkload(std::vector<apps::LoadUser> users,
                                                             const apps::UserWorkloadOptions& options) {
  absl::StatusOr<ItemChoice> choice = apps::SendersOf(options, Mixes(), users.size());
  if (!choice.ok()) return choice.status();
  const auto senders = std::make_shared<const std::vector<apps::LoadUser>>(std::move(users));
  return std::make_unique<apps::MixedWorkload>(MixOf(options.mix, senders), options.seed, *std::move(choice));
}

apps::AppRequests Requests() {
  return apps::UserRequests("curtail.social.Social", kApplication, Mixes(), MakeSocialWorkload);
}

}  // namespace curtail::social
