// SPDX-License-Identifier: Apache-2.0
#include "apps/social/workload.h"

#include <utility>

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

enum class Kind { kHome, kUser, kCompose };

class SocialWorkload final : public Workload {
 public:
  SocialWorkload(std::vector<apps::LoadUser> users, std::string mix, uint64_t seed, ItemChoice choice)
      : users_(std::move(users)), mix_(std::move(mix)), seed_(seed), choice_(std::move(choice)) {}

  std::string_view method() const override { return Path(mix_ == "mixed" ? Kind::kHome : Only()); }
  std::string_view MethodOf(uint64_t index) const override {
    Rng rng = RngOf(index);
    return Path(KindOf(rng));
  }

  std::string Request(uint64_t index) const override {
    Rng rng = RngOf(index);
    const apps::LoadUser& caller = users_[choice_.Index(index)];
    switch (KindOf(rng)) {
      case Kind::kHome: {
        HomePage page;
        page.set_token(caller.token);
        page.set_limit(kPageLength);
        return page.SerializeAsString();
      }
      case Kind::kUser: {
        UserPage page;
        page.set_token(caller.token);
        page.set_name(users_[rng.Below(users_.size())].name);
        page.set_limit(kPageLength);
        return page.SerializeAsString();
      }
      case Kind::kCompose:
        break;
    }
    const GeneratedPost post = GeneratePost(rng, users_.size());
    ComposeRequest request;
    request.set_token(caller.token);
    request.set_text(post.text);
    for (const uint64_t bytes : post.media_bytes) {
      MediaItem* const item = request.add_media();
      item->set_type("image/png");
      item->set_bytes(bytes);
    }
    return request.SerializeAsString();
  }

  // A page is right if its posts are whole and go from new to old; a post, if it is the caller's and its parts are there.
  double Score(uint64_t index, std::string_view reply) const override {
    Rng rng = RngOf(index);
    if (KindOf(rng) == Kind::kCompose) {
      Post post;
      return post.ParseFromArray(reply.data(), static_cast<int>(reply.size())) && IsWhole(post) &&
                     post.author().id() == users_[choice_.Index(index)].id
                 ? 1
                 : 0;
    }
    Posts page;
    if (!page.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) return 0;
    uint64_t before = UINT64_MAX;
    for (const Post& post : page.posts()) {
      if (!IsWhole(post) || post.id() >= before) return 0;
      before = post.id();
    }
    return 1;
  }
  std::string_view score_name() const override { return "right"; }

 private:
  static std::string_view Path(Kind kind) {
    switch (kind) {
      case Kind::kHome:
        return Social::kReadHomeTimeline.path;
      case Kind::kUser:
        return Social::kReadUserTimeline.path;
      case Kind::kCompose:
        break;
    }
    return Social::kCompose.path;
  }
  static bool IsWhole(const Post& post) {
    return post.id() != 0 && !post.text().empty() && !post.urls().empty() && !post.mentions().empty() &&
           !post.media().empty();
  }

  Kind Only() const {
    if (mix_ == "home") return Kind::kHome;
    return mix_ == "user" ? Kind::kUser : Kind::kCompose;
  }
  // The first choice that a request makes.
  Kind KindOf(Rng& rng) const {
    const double share = rng.Uniform01();
    if (mix_ != "mixed") return Only();
    if (share < 0.6) return Kind::kHome;
    return share < 0.9 ? Kind::kUser : Kind::kCompose;
  }
  Rng RngOf(uint64_t index) const { return Rng(seed_ * 0x9E3779B97F4A7C15u + index); }

  // Immutable after construction.
  const std::vector<apps::LoadUser> users_;
  const std::string mix_;
  const uint64_t seed_;
  const ItemChoice choice_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeSocialWorkload(std::vector<apps::LoadUser> users,
                                                             const apps::UserWorkloadOptions& options) {
  absl::StatusOr<ItemChoice> choice = apps::SendersOf(options, Mixes(), users.size());
  if (!choice.ok()) return choice.status();
  return std::make_unique<SocialWorkload>(std::move(users), options.mix, options.seed, *std::move(choice));
}

apps::AppRequests Requests() {
  return apps::UserRequests("curtail.social.Social", kApplication, Mixes(), MakeSocialWorkload);
}

}  // namespace curtail::social
