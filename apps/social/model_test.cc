// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a model that knows what each may see.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <thread>
#include <vector>

#include "apps/kit/temp_dir.h"
#include "apps/social/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

constexpr size_t kUsers = 8, kThreads = 4, kWords = 3;

// A Model holds what was acknowledged. The home timelines hold it once the queue is empty.
class Model {
 public:
  struct Entry {
    size_t author = 0;
    std::set<size_t> mentioned = {}, followers = {}, likes = {};
    std::string word = {};  // that a search finds
    uint64_t reply_to = 0, original = 0;
    bool bare = false, deleted = false;
  };
  void Add(uint64_t post, Entry entry) {
    const std::lock_guard lock(mu_);
    for (size_t u = 0; u < kUsers; ++u) {
      if (follows_.contains({u, entry.author})) entry.followers.insert(u);
    }
    posts_.emplace(post, std::move(entry));
  }
  // True if it changed.
  bool Like(uint64_t post, size_t user, bool like) {
    const std::lock_guard lock(mu_);
    std::set<size_t>& likes = posts_.at(post).likes;
    return like ? likes.insert(user).second : likes.erase(user) > 0;
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

  // Newest first, the posts that the viewer may see and `wanted(id, post)` chooses.
  template <class Wanted>
  std::vector<uint64_t> Seen(size_t viewer, Wanted wanted) const {
    const std::lock_guard lock(mu_);
    std::vector<uint64_t> ids;
    for (const auto& [id, post] : posts_) {
      if (Visible(viewer, post) && wanted(id, post)) ids.insert(ids.begin(), id);
    }
    return ids;
  }
  std::vector<uint64_t> Timeline(size_t viewer, size_t of) const {
    return Seen(viewer, [&](uint64_t, const Entry& post) { return post.author == of; });
  }
  std::vector<uint64_t> Home(size_t viewer) const {
    return Seen(viewer, [&](uint64_t, const Entry& post) {
      const bool followed = post.followers.contains(viewer) && follows_.contains({viewer, post.author});
      return post.author != viewer && (post.mentioned.contains(viewer) || followed);
    });
  }
  std::map<uint64_t, Entry> Posts() const {
    const std::lock_guard lock(mu_);
    return posts_;
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
  bool Visible(size_t viewer, const Entry& post) const {
    if (post.deleted || Blocked(viewer, post.author)) return false;
    if (post.original == 0) return true;
    const Entry& original = posts_.at(post.original);
    return original.deleted ? !post.bare : !Blocked(viewer, original.author);
  }

  mutable std::mutex mu_;
  std::map<uint64_t, Entry> posts_;
  std::set<std::pair<size_t, size_t>> follows_, blocks_;
};

struct HowServed {
  const char* name;
  const char* config;
  bool monolith;
  const char* store = nullptr;  // instead of the files
};
void PrintTo(const HowServed& how, std::ostream* out) { *out << how.name; }

class SocialModel : public testing::TestWithParam<HowServed> {
 protected:
  SocialModel() {
    for (size_t u = 0; u < kUsers; ++u) users_.push_back(app_.Register(Name(u)));
  }
  // Shared, as it ends by its own destructor.
  std::shared_ptr<const StoreProcess> StartStore() const {
    const std::string socket = dir_.File("s");
    if (Store().empty()) return nullptr;
    if (Store() == "redis") return std::make_shared<RedisProcess>(socket);
    return std::make_shared<PostgresqlProcess>(socket, PostgresqlWords(socket, dir_.File("data")));
  }
  static std::string Store() { return GetParam().store == nullptr ? "" : GetParam().store; }
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
    const std::string word = Join("word", rng.Below(kWords));
    const uint64_t post = app_.Compose(users_[user], Join(text, " ", word)).id();
    model_.Add(post, {.author = user, .mentioned = mentioned, .word = word});
  }
  // Any post that there was when this began.
  std::pair<uint64_t, Model::Entry> AnyPost(Rng& rng) {
    const std::map<uint64_t, Model::Entry> posts = model_.Posts();
    if (posts.empty()) return {};
    return *std::next(posts.begin(), static_cast<ptrdiff_t>(rng.Below(posts.size())));
  }
  // The user was told that it may not see the post. Then that is so at the end of the round, as another thread may be
  // about to tell the model. But a repost with a text, hidden by what it repeats, may be seen once that is deleted.
  void Refused(size_t user, uint64_t post) {
    const std::lock_guard lock(graph_mu_);
    refused_.insert({user, post});
  }
  void LikeOne(Rng& rng, size_t user) {
    const uint64_t post = AnyPost(rng).first;
    if (post == 0) return;
    const bool like = rng.Below(3) != 0;
    bool changed = false;
    const absl::Status status =
        like ? app_.Like(users_[user], post, &changed) : app_.Unlike(users_[user], post, &changed);
    if (like && absl::IsNotFound(status)) return Refused(user, post);
    EXPECT_TRUE(status.ok()) << status;
    if (model_.Like(post, user, like) != changed) Refused(user, post);
  }
  void ReferOne(Rng& rng, size_t user) {
    const auto [target, entry] = AnyPost(rng);
    if (target == 0) return;
    const uint64_t kind = rng.Below(3);  // a reply, a repost, a repost with a text
    ComposeRequest request;
    if (kind != 1) request.set_text("about it");
    kind == 0 ? request.set_reply_to(target) : request.set_repost_of(target);
    Post post;
    const absl::Status status = app_.Compose(users_[user], request, &post);
    if (absl::IsNotFound(status)) return Refused(user, target);
    const uint64_t original = entry.bare ? entry.original : target;
    if (kind == 1 && absl::IsAlreadyExists(status)) {
      EXPECT_TRUE(Repeats(user, original));
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    Model::Entry made{.author = user};
    (kind == 0 ? made.reply_to : made.original) = kind == 0 ? target : original;
    made.bare = kind == 1;
    EXPECT_FALSE(made.bare && Repeats(user, original));
    model_.Add(post.id(), made);
  }
  bool Repeats(size_t user, uint64_t original) const {
    return std::ranges::any_of(model_.Posts(), [&](const auto& known) {
      const Model::Entry& post = known.second;
      return post.bare && post.author == user && post.original == original && !post.deleted;
    });
  }
  // Own writes are there at once; of others nothing that was deleted before, and all in order.
  void ReadOne(size_t user) {
    std::vector<uint64_t> ids;
    ASSERT_TRUE(app_.Timeline(users_[user], Name(user), &ids).ok());
    const std::map<uint64_t, Model::Entry> posts = model_.Posts();
    // The original may go meanwhile, and with it a bare repost, or what hides one with a text.
    const auto unsteady = [&](uint64_t id) {
      const Model::Entry& post = posts.at(id);
      return post.bare || (post.original != 0 && model_.Blocked(user, posts.at(post.original).author));
    };
    std::erase_if(ids, unsteady);
    std::vector<uint64_t> own = model_.Timeline(user, user);
    std::erase_if(own, unsteady);
    EXPECT_EQ(ids, own);
    const std::set<uint64_t> deleted = model_.Deleted();
    ASSERT_TRUE(app_.Home(users_[user], &ids).ok());
    EXPECT_TRUE(std::ranges::is_sorted(ids, std::greater<>()));
    for (const uint64_t id : ids) EXPECT_FALSE(deleted.contains(id));
    ASSERT_TRUE(app_.Search(users_[user], "post", /*newest=*/true, &ids).ok());
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
    switch (rng.Below(8)) {
      case 0:
      case 1:
        return ComposeOne(rng, user);
      case 2:
        return DeleteOne(rng, user);
      case 3:
        return LikeOne(rng, user);
      case 4:
        return ReferOne(rng, user);
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
    app_.AwaitIndex();
    for (size_t viewer = 0; viewer < kUsers; ++viewer) {
      std::vector<uint64_t> ids;
      ASSERT_TRUE(app_.Home(users_[viewer], &ids).ok());
      EXPECT_EQ(ids, model_.Home(viewer)) << Name(viewer);
      for (size_t of = 0; of < kUsers; ++of) {
        ASSERT_TRUE(app_.Timeline(users_[viewer], Name(of), &ids).ok());
        EXPECT_EQ(ids, model_.Timeline(viewer, of)) << Name(viewer) << " of " << Name(of);
        ASSERT_TRUE(app_.Favorites(users_[viewer], Name(of), &ids).ok());
        EXPECT_EQ(ids, model_.Seen(viewer,
                                   [&](uint64_t, const Model::Entry& post) {
                                     return post.likes.contains(of) && !model_.Blocked(viewer, of);
                                   }))
            << Name(viewer) << " of " << Name(of);
      }
      const std::string word = Join("word", viewer % kWords);
      ASSERT_TRUE(app_.Search(users_[viewer], "POST " + word, /*newest=*/true, &ids).ok());
      EXPECT_EQ(ids,
                model_.Seen(viewer, [&](uint64_t, const Model::Entry& post) { return post.word == word; }));
      if (viewer % kThreads == seed_ % kThreads) ExpectPostsAsModel(viewer);  // all of them takes long
    }
    const std::lock_guard lock(graph_mu_);
    const std::map<uint64_t, Model::Entry> posts = model_.Posts();
    for (const auto& [user, id] : refused_) {
      const uint64_t original = posts.at(id).original;
      const bool original_gone = original != 0 && posts.at(original).deleted;
      EXPECT_TRUE(original_gone || !IsSeen(user, id)) << Name(user) << " " << id;
    }
    refused_.clear();
  }
  bool IsSeen(size_t viewer, uint64_t id) const {
    return !model_.Seen(viewer, [&](uint64_t other, const Model::Entry&) { return other == id; }).empty();
  }
  // Each post with what refers to it, or none.
  void ExpectPostsAsModel(size_t viewer) {
    const std::map<uint64_t, Model::Entry> posts = model_.Posts();
    for (const auto& [id, entry] : posts) {
      Post post;
      const absl::Status status = app_.Get(users_[viewer], id, &post);
      ASSERT_EQ(status.ok(), IsSeen(viewer, id)) << status;
      if (!status.ok()) continue;
      const uint64_t at = id;
      const auto answers = [at](uint64_t, const Model::Entry& one) { return one.reply_to == at; };
      const auto repeats = [at](uint64_t, const Model::Entry& one) { return one.original == at; };
      const auto all = [&](auto which) {
        return std::ranges::count_if(
            posts, [&](const auto& p) { return !p.second.deleted && which(p.first, p.second); });
      };
      EXPECT_EQ(post.favorites(), entry.likes.size());
      EXPECT_EQ(static_cast<ptrdiff_t>(post.replies()), all(answers));
      EXPECT_EQ(static_cast<ptrdiff_t>(post.reposts()), all(repeats));
      std::vector<uint64_t> ids;
      ASSERT_TRUE(app_.Replies(users_[viewer], id, &ids).ok());
      EXPECT_EQ(ids, model_.Seen(viewer, answers));
      ASSERT_TRUE(app_.Reposts(users_[viewer], id, &ids).ok());
      EXPECT_EQ(ids, model_.Seen(viewer, repeats));
      std::vector<std::string> names, expected;
      ASSERT_TRUE(app_.FavoredBy(users_[viewer], id, &names).ok());
      for (const size_t user : entry.likes) {
        if (!model_.Blocked(viewer, user)) expected.push_back(Name(user));
      }
      EXPECT_EQ(names, expected);
    }
  }

  uint64_t seed_ = TestSeed();
  Model model_;
  std::mutex graph_mu_;
  std::set<std::pair<size_t, uint64_t>> refused_;  // guarded by graph_mu_
  apps::TempDir dir_;
  const std::shared_ptr<const StoreProcess> store_ = StartStore();
  SocialDeployment app_{GetParam().config, GetParam().monolith,
                        store_ != nullptr
                            ? std::vector<std::string>{"--store", Join(Store(), "=", store_->address())}
                            : std::vector<std::string>()};
  std::vector<Session> users_;
};

// Under a sanitizer each kind of waiting and each store once.
std::vector<HowServed> Served() {
  std::vector<HowServed> served{{"SDB", "SDB1-16", true},
                                {"FDBPostgresql", "FDB1-2", true, "postgresql"},
                                {"ADBRedis", "ADB1-2-2", true, "redis"}};
  if (!kSanitized) {
    served.insert(served.end(), {{"FDB", "FDB1-2", false},
                                 {"ADB", "ADB1-2-2", true},
                                 {"ADBPostgresql", "ADB1-2-2", true, "postgresql"},
                                 {"FDBRedis", "FDB1-2", false, "redis"}});
  }
  return served;
}
INSTANTIATE_TEST_SUITE_P(Models, SocialModel, testing::ValuesIn(Served()),
                         [](const auto& info) { return std::string(info.param.name); });

// Property: whatever many users do at once, each sees exactly what the model says once the queue is empty, and never
// less of its own or a deleted post meanwhile.
TEST_P(SocialModel, EachSeesWhatItMaySeeStress) {
  for (int round = 0; round < 3; ++round) {
    InThreads(10, [this](Rng& rng, size_t user) { ActOnGraph(rng, user); });
    ExpectAsModel();
    InThreads(round == 0 ? 5 : 15, [this](Rng& rng, size_t user) { ActOnPosts(rng, user); });
    ExpectAsModel();
  }
}

}  // namespace
}  // namespace curtail::social
