// SPDX-License-Identifier: Apache-2.0
#include "apps/social/load/fill.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "apps/kit/data/folder.h"
#include "apps/social/data.h"
#include "apps/social/load/people.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "social.curtail.h"

namespace curtail::social {
namespace {

// A generated post of one of `users` users.
ComposeRequest RequestOf(Rng& rng, uint64_t users, const std::string& token) {
  const GeneratedPost post = GeneratePost(rng, users);
  ComposeRequest request;
  request.set_token(token);
  request.set_text(post.text);
  for (const uint64_t bytes : post.media_bytes) {
    MediaItem* const item = request.add_media();
    item->set_type("image/png");
    item->set_bytes(bytes);
  }
  return request;
}

std::string TopicOf(uint64_t number) { return Join("topic_", number % 8); }

class SocialFiller {
 public:
  explicit SocialFiller(const FillOptions& options)
      : options_(options), sessions_(options.users), is_new_(options.users) {}

  // Calls step(i, stub) for each number below `count`.
  absl::Status ForAll(const char* what, uint64_t count,
                      const std::function<absl::Status(uint64_t, const Social::Stub&)>& step) {
    return apps::ForAll(options_, what, count,
                        [&](uint64_t i, Channel& channel) { return step(i, Social::Stub(&channel)); });
  }

  absl::Status Enter(uint64_t user, const Social::Stub& stub) {
    Credentials credentials;
    credentials.set_name(NameOf(user));
    credentials.set_password(apps::PasswordOf(options_.seed, user));
    bool is_new = false;
    absl::Status status = apps::Enter(options_, stub, credentials, &sessions_[user], &is_new);
    is_new_[user] = is_new ? 1 : 0;
    return status;
  }

  absl::Status Connect(const Follow& follow, const Social::Stub& stub) {
    Context ctx(FromSeconds(options_.timeout_s));
    Relation relation;
    relation.set_token(sessions_[follow.first].token());
    relation.set_name(NameOf(follow.second));
    Changed changed;
    return stub.Follow(ctx, relation, &changed);
  }

  absl::Status Write(uint64_t number, const Social::Stub& stub) {
    Rng rng(options_.seed + 1 + number);
    const uint64_t author = rng.Below(options_.users);
    if (is_new_[author] == 0) return absl::OkStatus();
    Context ctx(FromSeconds(options_.timeout_s));
    Post post;
    return stub.Compose(ctx, RequestOf(rng, options_.users, sessions_[author].token()), &post);
  }

  // Who has which ad, and who clicks which, follows from the numbers: each user likes one topic.
  absl::Status Advertise(uint64_t number, const Social::Stub& stub) {
    const uint64_t owner = number % options_.users;
    if (is_new_[owner] == 0) return absl::OkStatus();
    AdRequest request;
    request.set_token(sessions_[owner].token());
    request.mutable_ad()->set_title(Join("Ad ", number));
    request.mutable_ad()->set_url(Join("http://example.org/", number));
    request.mutable_ad()->set_topic(TopicOf(number));
    Context ctx(FromSeconds(options_.timeout_s));
    Ad ad;
    return stub.CreateAd(ctx, request, &ad);
  }

  absl::Status LookAtAds(uint64_t user, const Social::Stub& stub) {
    constexpr int kLooks = 4;
    constexpr double kClicksLiked = 0.5, kClicksOther = 0.02;
    Rng rng(options_.seed + user);
    for (int i = 0; i < kLooks && is_new_[user] != 0; ++i) {
      HomePage page;
      page.set_token(sessions_[user].token());
      page.set_limit(6);
      Context ctx(FromSeconds(options_.timeout_s));
      AdList shown;
      if (absl::Status status = stub.ShowAds(ctx, page, &shown); !status.ok()) return status;
      for (const Ad& ad : shown.ads()) {
        if (rng.Uniform01() >= (ad.topic() == TopicOf(user) ? kClicksLiked : kClicksOther)) continue;
        PostRequest click;
        click.set_token(page.token());
        click.set_id(ad.id());
        Context again(FromSeconds(options_.timeout_s));
        Ad clicked;
        if (absl::Status status = stub.ClickAd(again, click, &clicked); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  std::vector<apps::LoadUser> Users() const {
    std::vector<apps::LoadUser> users;
    for (const Session& session : sessions_)
      users.push_back({.id = session.user(), .name = session.name(), .token = session.token()});
    return users;
  }

 private:
  const FillOptions& options_;
  std::vector<Session> sessions_;  // by number; each written by one thread
  std::vector<char> is_new_;
};

}  // namespace

absl::Status Fill(FillOptions options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  std::vector<Follow> follows;
  if (options.graph != "none") {
    absl::StatusOr<std::vector<Follow>> read = ReadFollows(options.graph, &options.users);
    if (!read.ok()) return read.status();
    if (options.users < 2) return absl::InvalidArgumentError(Join(options.graph, " has no two users"));
    follows = *std::move(read);
  } else if (options.users < 2 || options.follows > options.users * (options.users - 1) / 4) {
    return absl::InvalidArgumentError(Join(options.follows, " follows among ", options.users,
                                           " users are too many: at most a quarter of all pairs"));
  } else {
    follows = GenerateFollows(options.seed, options.users, options.follows);
  }
  SocialFiller filler(options);
  absl::Status status = filler.ForAll(
      "users", options.users, [&](uint64_t i, const Social::Stub& stub) { return filler.Enter(i, stub); });
  if (!status.ok()) return status;
  if (absl::Status kept = apps::WriteLoadUsers(*folder, filler.Users()); !kept.ok()) return kept;
  status = filler.ForAll("follows", follows.size(), [&](uint64_t i, const Social::Stub& stub) {
    return filler.Connect(follows[i], stub);
  });
  if (!status.ok()) return status;
  status = filler.ForAll("posts", options.posts,
                         [&](uint64_t i, const Social::Stub& stub) { return filler.Write(i, stub); });
  if (!status.ok()) return status;
  status = filler.ForAll("ads", options.ads,
                         [&](uint64_t i, const Social::Stub& stub) { return filler.Advertise(i, stub); });
  if (!status.ok() || options.ads == 0) return status;
  return filler.ForAll("looks at ads", options.users,
                       [&](uint64_t i, const Social::Stub& stub) { return filler.LookAtAds(i, stub); });
}

}  // namespace curtail::social
