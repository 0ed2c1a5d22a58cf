// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a history of what each was told, while services and stores die, stand still and
// have no room to write.
//
// Property: once the queue is empty, a post that was acknowledged and not deleted is in its author's timeline
// once, and once in the home of each who follows or is mentioned. A post whose deletion was acknowledged is
// nowhere, meanwhile neither. A refused post may be there, then in its author's timeline too, and never
// twice. A user whose block was acknowledged sees nothing of the other, until it has tried to unblock. Of a
// user whose deletion was acknowledged nothing is seen from then on, whatever comes late, and its name is
// free. Once a fault has ended, posts and deletions are acknowledged again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/facts.h"
#include "apps/kit/testing/faults.h"
#include "apps/kit/testing/history.h"
#include "apps/kit/testing/preload.h"
#include "apps/social/data.h"
#include "apps/social/tests/guests_testing.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

constexpr size_t kAuthors = 6, kActors = 3;
// Of a client. Short, so that a service that stands still does not hold up the test.
constexpr Nanos kPatience = std::chrono::seconds(1);

struct Kept {
  const char* store;   // files, redis or postgresql
  const char* config;  // of all services
};
void PrintTo(const Kept& kept, std::ostream* out) { *out << kept.store << " " << kept.config; }

using apps::Actors;
using apps::Operation;
using apps::Possible;
using apps::Span;

class SocialFaults : public testing::TestWithParam<Kept> {
 protected:
  SocialFaults() {
    for (size_t u = 0; u < kAuthors; ++u) users_.push_back(app_.Register(Called(u)));
    for (size_t u = 0; u < kAuthors; ++u) {
      for (size_t other = 0; other < kAuthors; ++other) {
        if (!Follows(u, other)) continue;
        EXPECT_TRUE(app_.Follow(users_[u], Called(other)).ok());
      }
      EXPECT_TRUE(app_.Follow(watcher_, Called(u)).ok());
    }
    guests_.Invite(users_);
  }
  std::unique_ptr<RedisProcess> StartRedis() const {
    if (std::string_view(GetParam().store) != "redis") return nullptr;
    return std::make_unique<RedisProcess>(
        dir_.File("r"),
        std::vector<std::string>{"--appendonly", "yes", "--appendfsync", "always", "--dir", dir_.File(".")},
        disk_.Words());
  }
  std::unique_ptr<PostgresqlProcess> StartPostgresql() const {
    if (std::string_view(GetParam().store) != "postgresql") return nullptr;
    std::vector<std::string> words = disk_.Words();
    std::ranges::copy(PostgresqlWords(dir_.File("s"), dir_.File("data")), std::back_inserter(words));
    return std::make_unique<PostgresqlProcess>(dir_.File("s"), words);
  }
  std::vector<std::string> StoreFlags() const {
    std::vector<std::string> flags = {"--store", "post-cache=" + cache_.address()};
    if (redis_ != nullptr) flags.insert(flags.end(), {"--store", "redis=" + redis_->address()});
    if (postgresql_ != nullptr)
      flags.insert(flags.end(), {"--store", "postgresql=" + postgresql_->address()});
    return flags;
  }
  static std::string Called(size_t user) { return Join("user_", user); }
  static bool Follows(size_t user, size_t author) {
    return user != author && (author + kAuthors - user) % kAuthors <= kAuthors / 2;
  }

  // Each thread acts for users of its own. Another blocks authors and unblocks them, and reads what is left. Users
  // come and are deleted, while others deal with them.
  void BeginActs() {
    for (size_t t = 0; t < kActors; ++t) {
      actors_.Begin(seed_ * kActors + t, [this, t](Rng& rng) {
        actors_.Note(Act(rng, t + kActors * rng.Below(kAuthors / kActors)));
      });
    }
    actors_.Begin(~seed_, [this](Rng& rng) { Watch(rng, rng.Below(kAuthors)); });
    actors_.Begin(seed_ + 1, [this](Rng& rng) { guests_.LiveOne(rng, actors_); });
    actors_.Begin(~seed_ - 1, [this](Rng& rng) { guests_.ActOne(rng); });
  }
  void Watch(Rng& rng, size_t author) {
    absl::Status status;
    if (!blocked_.contains(author)) {
      status = app_.Block(watcher_, Called(author));
      if (status.ok()) blocked_.insert(author);
    } else if (rng.Below(4) == 0) {
      blocked_.erase(author);
      status = app_.Unblock(watcher_, Called(author));
      if (status.ok()) status = app_.Follow(watcher_, Called(author));
    }
    if (!status.ok() && !absl::IsPermissionDenied(status)) ExpectFault(status);
    ReadAsWatcher(author);
  }
  void ReadAsWatcher(size_t author) {
    std::vector<uint64_t> home, timeline;
    if (const absl::Status status = app_.Home(watcher_, &home); !status.ok()) ExpectFault(status);
    if (const absl::Status status = app_.Timeline(watcher_, Called(author), &timeline); !status.ok())
      ExpectFault(status);
    watched_ += home.size() + timeline.size();
    home.insert(home.end(), timeline.begin(), timeline.end());
    for (const uint64_t id : home) {
      const std::optional<Authored> post = posts_.Find(id);
      if (!post) continue;  // not acknowledged
      EXPECT_FALSE(blocked_.contains(post->author)) << id << " of " << Called(post->author);
    }
  }
  Actors::Did Act(Rng& rng, size_t user) {
    const uint64_t what = rng.Below(10);
    if (what < 4) return ComposeOne(rng, user);
    if (what < 6) {
      DeleteOne(rng, user);
    } else if (what < 8) {
      ReadOwn(user);
    } else {
      ReadHome(user);
    }
    return Actors::Did::kOther;
  }
  // A part is away, or PostgreSQL has no room.
  static bool IsOfFault(const absl::Status& status) {
    const bool no_room =
        absl::IsResourceExhausted(status) && std::string_view(GetParam().store) == "postgresql";
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || no_room;
  }
  static void ExpectFault(const absl::Status& status) { EXPECT_TRUE(IsOfFault(status)) << status; }
  Actors::Did ComposeOne(Rng& rng, size_t user) {
    std::set<size_t> mentioned;
    std::string text = Join("post ", next_text_.fetch_add(1, std::memory_order_relaxed));
    while (rng.Below(3) == 0) {
      const size_t other = rng.Below(kAuthors);
      if (mentioned.insert(other).second) text += " @" + Called(other);
    }
    ComposeRequest request;
    request.set_text(text);
    Post post;
    const Operation told = history_.Do([&] { return app_.Compose(users_[user], request, &post); });
    if (told.ok()) {
      posts_.Add(post.id(), {.author = user, .mentioned = mentioned}, told);
      return Actors::Did::kWrote;
    }
    const std::lock_guard lock(mu_);
    refused_.emplace(user, text);
    return Actors::Did::kFailedToWrite;
  }
  void DeleteOne(Rng& rng, size_t user) {
    const bool in_doubt = rng.Below(4) == 0;
    const std::vector<uint64_t> posts =
        posts_.Those(history_.Now(), [&](const Authored& post, Possible exists) {
          return post.author == user && exists.yes && exists.no == in_doubt;
        });
    if (posts.empty()) return;
    const uint64_t post = posts[rng.Below(posts.size())];
    std::set<absl::StatusCode> refusals;
    if (in_doubt) refusals.insert(absl::StatusCode::kNotFound);
    const Operation told = history_.Do([&] { return app_.Delete(users_[user], post); }, refusals);
    posts_.Remove(post, told.span);  // not found: it is gone, too
  }
  // Of the posts that were acknowledged, a list has all that `wanted(post)` chooses and that are there for certain. It
  // has no deleted post, and none twice.
  template <class Wanted>
  void ExpectPosts(const std::vector<uint64_t>& ids, Span span, Wanted wanted) const {
    EXPECT_EQ(std::ranges::adjacent_find(ids, std::less_equal<>()), ids.end()) << "twice, or in no order";
    const auto listed = [&](uint64_t id) { return std::ranges::find(ids, id) != ids.end(); };
    for (const uint64_t id : posts_.Those(
             span, [&](const Authored& post, Possible exists) { return !exists.no && wanted(post); })) {
      EXPECT_TRUE(listed(id)) << id << " is lost";
    }
    for (const uint64_t id : Deleted(span)) EXPECT_FALSE(listed(id)) << id << " is deleted";
  }
  std::vector<uint64_t> Deleted(Span span) const {
    return posts_.Those(span, [](const Authored&, Possible exists) { return !exists.yes; });
  }
  void ReadOwn(size_t user) {
    std::vector<uint64_t> ids;
    const Operation told = history_.Do([&] { return app_.Timeline(users_[user], Called(user), &ids); });
    if (told.ok()) ExpectPosts(ids, told.span, [&](const Authored& post) { return post.author == user; });
  }
  // Posts that are still on their way need not be there.
  void ReadHome(size_t user) {
    std::vector<uint64_t> ids;
    const Operation told = history_.Do([&] { return app_.Home(users_[user], &ids); });
    if (told.ok()) ExpectPosts(ids, told.span, [](const Authored&) { return false; });
  }

  void AddFaults(apps::FaultSchedule* schedule) {
    static constexpr const char* kKept[] = {"post-storage", "user-timeline", "home-timeline",
                                            "write-home-timeline"};
    const auto kills = [this](std::initializer_list<const char*> services) {
      std::vector<apps::Fault> faults;
      for (const char* service : services) faults.push_back(apps::KillOf(app_.parts(), service));
      return faults;
    };
    for (const char* service : kKept) schedule->Add(apps::KillOf(app_.parts(), service));
    schedule->AddOneOf(kills({"favorite", "direct-message", "social-graph", "block-user"}));
    schedule->AddOneOf(kills(
        {"front-end", "compose-post", "read-post", "unique-id", "search", "repost-reply", "ads", "user"}));
    schedule->Add(apps::StallOf(app_.parts(), "write-home-timeline"));
    schedule->Add(apps::KillOf("the cache", &cache_));
    if (redis_ != nullptr) {
      schedule->Add(apps::KillOf("redis", redis_.get()));
      schedule->Add(apps::FullDiskOf(redis_.get(), &disk_));
    } else if (postgresql_ != nullptr) {
      schedule->Add(apps::KillOf("postgresql", postgresql_.get()));
      schedule->Add(apps::FullDiskOfPostgresql(&disk_));
    } else {
      for (const char* service : kKept) {
        // home-timeline is told behind the caller's back.
        schedule->Add(apps::FullDiskOf(app_.parts(), service,
                                       /*refuses=*/std::string_view(service) != "home-timeline"));
      }
    }
  }
  void ReadHomes() {
    std::vector<uint64_t> ids;
    for (const Session& user : users_) history_.Insist([&] { return app_.Home(user, &ids); });
  }
  // A deletion that failed half way can be repeated.
  void RepeatDeletions() {
    const auto in_doubt = [](const Authored&, Possible exists) { return !exists.Certain(); };
    for (const uint64_t post : posts_.Those(history_.Now(), in_doubt)) {
      const Session& author = users_[posts_.Find(post)->author];
      posts_.Remove(
          post,
          history_.Insist([&] { return app_.Delete(author, post); }, {absl::StatusCode::kNotFound}).span);
    }
  }
  struct Lists {
    std::vector<std::vector<uint64_t>> timelines, homes;
  };
  Lists ReadAll() {
    Lists all{.timelines = std::vector<std::vector<uint64_t>>(kAuthors),
              .homes = std::vector<std::vector<uint64_t>>(kAuthors)};
    for (size_t u = 0; u < kAuthors; ++u) {
      history_.Insist([&] { return app_.Home(users_[u], &all.homes[u]); });
      const Session& other = users_[(u + 1) % kAuthors];
      history_.Insist([&] { return app_.Timeline(other, Called(u), &all.timelines[u]); });
    }
    return all;
  }
  void ExpectAcknowledged(const Lists& all) {
    const Span now = history_.Now();
    for (size_t u = 0; u < kAuthors; ++u) {
      const testing::ScopedTrace trace(__FILE__, __LINE__, Called(u));
      ExpectPosts(all.timelines[u], now, [&](const Authored& post) { return post.author == u; });
      ExpectPosts(all.homes[u], now, [&](const Authored& post) {
        return post.author != u && (Follows(u, post.author) || post.mentioned.contains(u));
      });
    }
    for (const uint64_t id : Deleted(now)) {
      Post post;
      EXPECT_TRUE(absl::IsNotFound(app_.Get(users_[0], id, &post))) << id;
    }
  }
  // Empty if those that were refused are there in whole and once, or not at all.
  std::string ComplaintOf(const Lists& all) {
    std::set<uint64_t> in_timelines;
    std::set<std::string> texts;
    for (size_t u = 0; u < kAuthors; ++u) {
      for (const uint64_t id : all.timelines[u]) {
        in_timelines.insert(id);
        if (posts_.all().contains(id)) continue;
        Post post;
        if (const absl::Status got = app_.Get(users_[u], id, &post); !got.ok()) return got.ToString();
        if (!refused_.contains({u, post.text()})) return Join("nobody wrote ", id, ": ", post.text());
        if (!texts.insert(post.text()).second) return Join("twice: ", post.text());
      }
    }
    for (size_t u = 0; u < kAuthors; ++u) {
      for (const uint64_t id : all.homes[u]) {
        if (!in_timelines.contains(id))
          return Join(id, " is in the home of ", u, ", not in its author's timeline");
      }
    }
    return {};
  }

  const uint64_t seed_ = TestSeed();
  apps::History history_{IsOfFault};
  AuthoredPosts posts_;
  std::mutex mu_;
  std::set<std::pair<size_t, std::string>> refused_;  // guarded by mu_ while users act
  std::atomic<uint64_t> next_text_{0};                // relaxed: only unique
  TempDir dir_;
  apps::FullDisk disk_;  // of Redis and of PostgreSQL
  MemcachedProcess cache_{dir_.File("m")};
  const std::unique_ptr<RedisProcess> redis_ = StartRedis();
  const std::unique_ptr<PostgresqlProcess> postgresql_ = StartPostgresql();
  SocialDeployment app_{GetParam().config, /*monolith=*/false, StoreFlags()};
  std::vector<Session> users_;
  const Session watcher_ = app_.Register("watcher");
  // Of the watcher's thread, and of the test's once that has ended.
  std::set<size_t> blocked_;  // whose block was acknowledged
  size_t watched_ = 0;        // posts that it read
  Guests guests_{&app_, &history_, &posts_, /*first=*/kAuthors, IsOfFault};
  Actors actors_;  // ends first
};

INSTANTIATE_TEST_SUITE_P(Stores, SocialFaults,
                         testing::Values(Kept{"files", "FDB1-2"}, Kept{"redis", "ADB1-2-2"},
                                         Kept{"postgresql", "SDB1-16"}),
                         [](const auto& info) { return std::string(info.param.store); });

TEST_P(SocialFaults, WhatWasAcknowledgedIsKeptStress) {
  app_.SetPatience(kPatience);
  apps::FaultSchedule schedule(seed_, &actors_);
  AddFaults(&schedule);
  BeginActs();
  schedule.Run(
      {.before = [this] { EXPECT_TRUE(guests_.AwaitLeaving()); },
       .during = [this] { ReadHomes(); },
       .after =
           [this] { EXPECT_TRUE(guests_.AwaitGone()) << "no deletion of a user was acknowledged since"; }});
  actors_.Rest();
  app_.SetPatience(kMaxTestWait);
  guests_.SeeOff();
  RepeatDeletions();
  app_.AwaitQueue();
  for (size_t author = 0; author < kAuthors; ++author) ReadAsWatcher(author);
  EXPECT_GT(watched_, 0U);
  Lists all = ReadAll();
  ExpectAcknowledged(all);
  // Posts that were refused last may still be taken back.
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::string complaint;
  while (!(complaint = ComplaintOf(all)).empty() && !deadline.Expired()) all = ReadAll();
  EXPECT_EQ(complaint, "");
}

}  // namespace
}  // namespace curtail::social
