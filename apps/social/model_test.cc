// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a model that knows what each may see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "apps/social/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::social {
namespace {

constexpr size_t kUsers = 8, kThreads = 4;

// A Model holds what was acknowledged. The home timelines hold it once the queue is empty.
class Model {
 public:
  struct Entry {
    size_t author;
    std::set<size_t> mentioned, followers;
    bool deleted = false;
  };
  void Add(uint64_t post, size_t author, std::set<size_t> mentioned) {
    const std::lock_guard lock(mu_);
    Entry entry{.author = author, .mentioned = std::move(mentioned), .followers = {}};
    for (size_t u = 0; u < kUsers; ++u) {
      if (follows_.contains({u, author})) entry.followers.insert(u);
    }
    posts_.emplace(post, std::move(entry));
  }
  void Delete(uint64_t post) {
    const std::lock_guard lock(mu_);
    posts_.at(post).deleted = true;
  }
  void Follow(size_t from, size_t to, bool follow) {
    const std::lock_guard lock(mu_);
    if (follow) {
      follows_.insert({from, to});
    } else {
      follows_.erase({from, to});
    }
  }
  void Block(size_t from, size_t to, bool block) {
    const std::lock_guard lock(mu_);
    if (!block) {
      blocks_.erase({from, to});
      return;
    }
    blocks_.insert({from, to});
    follows_.erase({from, to}), follows_.erase({to, from});
  }
  bool Blocked(size_t a, size_t b) const { return blocks_.contains({a, b}) || blocks_.contains({b, a}); }

  std::vector<uint64_t> Timeline(size_t viewer, size_t of) const {
    const std::lock_guard lock(mu_);
    std::vector<uint64_t> ids;
    for (const auto& [id, post] : posts_) {
      if (post.author == of && !post.deleted && !Blocked(viewer, of)) ids.insert(ids.begin(), id);
    }
    return ids;
  }
  std::vector<uint64_t> Home(size_t viewer) const {
    const std::lock_guard lock(mu_);
    std::vector<uint64_t> ids;
    for (const auto& [id, post] : posts_) {
      const bool meant = post.mentioned.contains(viewer) ||
                         (post.followers.contains(viewer) && follows_.contains({viewer, post.author}));
      const bool seen = meant && post.author != viewer && !post.deleted && !Blocked(viewer, post.author);
      if (seen) ids.insert(ids.begin(), id);
    }
    return ids;
  }
  std::set<uint64_t> Deleted() const {
    const std::lock_guard lock(mu_);
    std::set<uint64_t> ids;
    for (const auto& [id, post] : posts_) {
      if (post.deleted) ids.insert(id);
    }
    return ids;
  }

 private:
  mutable std::mutex mu_;
  std::map<uint64_t, Entry> posts_;
  std::set<std::pair<size_t, size_t>> follows_, blocks_;
};

class SocialModel : public testing::TestWithParam<const char*> {
 protected:
  SocialModel() {
    const char* given = std::getenv("CURTAIL_TEST_SEED");
    seed_ = given == nullptr ? std::random_device()() : std::strtoull(given, nullptr, 10);
    std::printf("CURTAIL_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    for (size_t u = 0; u < kUsers; ++u) users_.push_back(app_.Register(Name(u)));
  }
  static std::string Name(size_t user) { return Join("user_", user); }

  // Runs `act(rng, user)` `times` in each thread, for users that only that thread acts for.
  template <class Act>
  void InThreads(int times, Act act) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, times, act] {
        Rng rng(seed_ * kThreads + t);
        for (int i = 0; i < times; ++i) act(rng, t + kThreads * rng.Below(kUsers / kThreads));
      });
    }
    for (std::thread& thread : threads) thread.join();
    seed_ += 1;
  }

  void ComposeOne(Rng& rng, size_t user) {
    std::set<size_t> mentioned;
    std::string text = "a post";
    while (rng.Below(2) == 0) {
      const size_t other = rng.Below(kUsers);
      mentioned.insert(other);
      text += " @" + Name(other);
    }
    model_.Add(app_.Compose(users_[user], text).id(), user, mentioned);
  }
  // Own writes are there at once; of others nothing that was deleted before, and all in order.
  void ReadOne(size_t user) {
    std::vector<uint64_t> ids;
    ASSERT_TRUE(app_.Timeline(users_[user], Name(user), &ids).ok());
    EXPECT_EQ(ids, model_.Timeline(user, user));
    const std::set<uint64_t> deleted = model_.Deleted();
    ASSERT_TRUE(app_.Home(users_[user], &ids).ok());
    EXPECT_TRUE(std::ranges::is_sorted(ids, std::greater<>()));
    for (const uint64_t id : ids) EXPECT_FALSE(deleted.contains(id));
  }
  void DeleteOne(Rng& rng, size_t user) {
    const std::vector<uint64_t> own = model_.Timeline(user, user);
    if (own.empty()) return;
    const uint64_t post = own[rng.Below(own.size())];
    const absl::Status status = app_.Delete(users_[user], post);
    EXPECT_TRUE(status.ok()) << status;
    model_.Delete(post);
  }
  void ActOnPosts(Rng& rng, size_t user) {
    switch (rng.Below(6)) {
      case 0:
      case 1:
        return ComposeOne(rng, user);
      case 2:
        return DeleteOne(rng, user);
      default:
        return ReadOne(user);
    }
  }
  // One at a time, as one's block changes what the other may do.
  void ActOnGraph(Rng& rng, size_t user) {
    const size_t other = rng.Below(kUsers);
    if (other == user) return;
    const std::lock_guard lock(graph_mu_);
    const Session& by = users_[user];
    switch (rng.Below(5)) {
      case 0:
        EXPECT_TRUE(app_.Block(by, Name(other)).ok());
        return model_.Block(user, other, true);
      case 1:
        EXPECT_TRUE(app_.Unblock(by, Name(other)).ok());
        return model_.Block(user, other, false);
      case 2:
        EXPECT_TRUE(app_.Unfollow(by, Name(other)).ok());
        return model_.Follow(user, other, false);
      default:
        break;
    }
    const absl::Status status = app_.Follow(by, Name(other));
    EXPECT_EQ(absl::IsPermissionDenied(status), model_.Blocked(user, other)) << status;
    if (status.ok()) model_.Follow(user, other, true);
  }
  void ExpectAsModel() {
    app_.AwaitQueue();
    for (size_t viewer = 0; viewer < kUsers; ++viewer) {
      std::vector<uint64_t> ids;
      ASSERT_TRUE(app_.Home(users_[viewer], &ids).ok());
      EXPECT_EQ(ids, model_.Home(viewer)) << Name(viewer);
      for (size_t of = 0; of < kUsers; ++of) {
        ASSERT_TRUE(app_.Timeline(users_[viewer], Name(of), &ids).ok());
        EXPECT_EQ(ids, model_.Timeline(viewer, of)) << Name(viewer) << " of " << Name(of);
      }
    }
  }

  uint64_t seed_ = 0;
  Model model_;
  std::mutex graph_mu_;
  SocialDeployment app_{GetParam(), /*monolith=*/std::string_view(GetParam()) != "FDB1-2"};
  std::vector<Session> users_;
};

INSTANTIATE_TEST_SUITE_P(Models, SocialModel, testing::Values("SDB1-16", "FDB1-2", "ADB1-2-2"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

// Property: whatever many users do at once, each sees exactly what the model says once the queue is empty, and never
// less of its own or a deleted post meanwhile.
TEST_P(SocialModel, EachSeesWhatItMaySeeStress) {
  for (int round = 0; round < 3; ++round) {
    InThreads(10, [this](Rng& rng, size_t user) { ActOnGraph(rng, user); });
    ExpectAsModel();
    InThreads(round == 0 ? 5 : 25, [this](Rng& rng, size_t user) { ActOnPosts(rng, user); });
    ExpectAsModel();
  }
}

}  // namespace
}  // namespace curtail::social
