// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a model that knows which replies each may get.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/kit/temp_dir.h"
#include "apps/social/model_testing.h"
#include "apps/social/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

constexpr size_t kUsers = 8, kThreads = 4, kWords = 3;
constexpr size_t kMeetings = 12;  // in a round
constexpr int kActs = 3;          // of a thread before each meeting, and as many in it

struct HowServed {
  const char* name;
  const char* config;
  bool monolith;
  const char* store = nullptr;  // instead of the files
};
void PrintTo(const HowServed& how, std::ostream* out) { *out << how.name; }

using absl::StatusCode;
using PostEntry = ReferenceModel::PostEntry;
using MessageEntry = ReferenceModel::MessageEntry;

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

  // Acts in all threads, each for users of its own. The threads meet: each waits for the others, then users
  // of two threads deal with each other at once.
  void ActAtOnce() {
    std::barrier all(static_cast<ptrdiff_t>(kThreads));
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, &all] {
        Rng rng(seed_ * kThreads + t);
        for (size_t i = 0; i < kMeetings; ++i) {
          for (int j = 0; j < kActs; ++j) Act(rng, t + kThreads * rng.Below(kUsers / kThreads));
          const size_t user = t + kThreads * (i % (kUsers / kThreads));
          all.arrive_and_wait();  // not for long, as each call has a deadline
          for (int j = 0; j < kActs; ++j) ActBetween(rng, user, user ^ 1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    seed_ += 1;
  }

  // How a call ended, and when.
  struct Told {
    bool ok() const { return code == StatusCode::kOk; }
    StatusCode code;
    ActSpan span;
  };
  // `refusals`: how else it may end.
  template <class Call>
  Told Do(Call call, const std::set<StatusCode>& refusals = {}) {
    const uint64_t began = model_.Step();
    const absl::Status status = call();
    EXPECT_TRUE(status.ok() || refusals.contains(status.code())) << status;
    return {status.code(), {began, model_.Step()}};
  }
  // Has a reply judged when no act is in progress.
  void Later(std::function<void()> judge) {
    const std::lock_guard lock(mu_);
    judges_.push_back(std::move(judge));
  }
  void Judge() {
    for (const auto& judge : judges_) judge();
    judges_.clear();
  }
  static std::string Text(ActSpan span) { return Join(" in the steps ", span.began, " to ", span.ended); }
  static void Expect(bool said, Possible possible, const std::string& what, ActSpan span) {
    EXPECT_TRUE(possible.Is(said)) << what << ": " << (said ? "yes" : "no") << Text(span);
  }
  void ExpectSeen(bool seen, size_t viewer, uint64_t post, ActSpan span) const {
    Expect(seen, model_.Visible(viewer, post, span), Join(Name(viewer), " sees ", post), span);
  }
  // Newest first, and of `all` those for which `formula(id, entry)` holds.
  template <class All, class Formula>
  static void ExpectList(const std::vector<uint64_t>& ids, const All& all, Formula formula,
                         const std::string& what, ActSpan span) {
    EXPECT_EQ(std::ranges::adjacent_find(ids, std::less_equal<>()), ids.end()) << what << Text(span);
    for (const uint64_t id : ids) EXPECT_TRUE(all.contains(id)) << what << " has " << id << Text(span);
    for (const auto& [id, entry] : all) {
      const bool there = std::ranges::binary_search(ids, id, std::greater<>());
      EXPECT_TRUE(formula(id, entry).Is(there)) << what << (there ? " has " : " lacks ") << id << Text(span);
    }
  }
  template <class Formula>
  static void ExpectUsers(std::vector<std::string> names, Formula formula, const std::string& what,
                          ActSpan span) {
    for (size_t user = 0; user < kUsers; ++user) {
      const size_t times = std::erase(names, Name(user));
      EXPECT_LE(times, 1U) << what << Text(span);
      Expect(times > 0, formula(user), Join(what, " have ", Name(user)), span);
    }
    EXPECT_TRUE(names.empty()) << what << Text(span);
  }

  void FollowOne(size_t user, size_t other) {
    bool changed = false;
    const Told told =
        Do([&] { return app_.Follow(users_[user], Name(other), &changed); }, {StatusCode::kPermissionDenied});
    model_.Follow(user, other, told.ok(), told.span);
    Later([=, this] {
      const std::string what = Join(Name(user), " follows ", Name(other));
      Expect(!told.ok(), model_.Blocked(user, other, told.span), what + ", refused", told.span);
      if (told.ok()) Expect(!changed, model_.Follows(user, other, told.span), what + " before", told.span);
    });
  }
  void UnfollowOne(size_t user, size_t other) {
    bool changed = false;
    const ActSpan span = Do([&] { return app_.Unfollow(users_[user], Name(other), &changed); }).span;
    model_.Change({Fact::kFollows, user, other}, false, span);
    Later([=, this] {
      Expect(changed, model_.Follows(user, other, span), Join(Name(user), " unfollows ", Name(other)), span);
    });
  }
  void BlockOne(size_t user, size_t other, bool block) {
    bool changed = false;
    const auto call = [&] {
      return block ? app_.Block(users_[user], Name(other), &changed)
                   : app_.Unblock(users_[user], Name(other), &changed);
    };
    const ActSpan span = Do(call).span;
    model_.Block(user, other, block, span);
    Later([=, this] {
      Expect(changed != block, model_.In({Fact::kBlocks, user, other}, span),
             Join(Name(user), " blocked ", Name(other), " before"), span);
    });
  }
  // `known`: no act is in progress, so the reply settles what the model cannot know.
  void ReadFollowing(size_t user, bool known) {
    std::vector<std::string> names;
    const ActSpan span = Do([&] { return app_.Following(Name(user), &names); }).span;
    Later([=, this] {
      const auto follows = [&](size_t other) { return model_.Follows(user, other, span); };
      ExpectUsers(names, follows, Join("followees of ", Name(user)), span);
      for (size_t other = 0; known && other < kUsers; ++other) {
        const bool there = std::ranges::find(names, Name(other)) != names.end();
        model_.Change({Fact::kFollows, user, other}, there, span);
        EXPECT_FALSE(there && model_.Blocked(user, other, span).yes) << Name(user) << " " << Name(other);
      }
    });
  }

  // Any post that there was when this began; it may be deleted.
  std::pair<uint64_t, PostEntry> AnyPost(Rng& rng) const {
    return model_.Any(model_.posts(), rng, [](const PostEntry&, bool) { return true; });
  }
  void ComposeOne(Rng& rng, size_t user) {
    PostEntry entry{.author = user, .word = Join("word", rng.Below(kWords))};
    ComposeRequest request;
    request.set_text("a post " + entry.word);
    while (rng.Below(2) == 0) {
      const size_t other = rng.Below(kUsers);
      entry.mentioned.insert(other);
      *request.mutable_text() += " @" + Name(other);
    }
    Post post;
    const Told told = Do([&] { return app_.Compose(users_[user], request, &post); });
    model_.Add(post.id(), std::move(entry), told.span);
  }
  void ReferOne(Rng& rng, size_t user) {
    const auto [target, entry] = AnyPost(rng);
    if (target == 0) return;
    const uint64_t kind = rng.Below(3);  // a reply, a repost, a repost with a text
    ComposeRequest request;
    if (kind != 1) request.set_text("about it");
    kind == 0 ? request.set_reply_to(target) : request.set_repost_of(target);
    PostEntry made{.author = user, .bare = kind == 1};
    (kind == 0 ? made.reply_to : made.original) = kind != 0 && entry.bare ? entry.original : target;
    std::set<StatusCode> refusals = {StatusCode::kNotFound};
    if (made.bare) refusals.insert(StatusCode::kAlreadyExists);
    Post post;
    const Told told = Do([&] { return app_.Compose(users_[user], request, &post); }, refusals);
    if (told.ok()) model_.Add(post.id(), made, told.span);
    Later([=, this, target = target] {
      const bool seen = told.code != StatusCode::kNotFound;
      ExpectSeen(seen, user, target, told.span);
      if (!seen || !made.bare) return;
      Expect(!told.ok(), model_.Repeats(user, made.original, told.span),
             Join(Name(user), " has repeated ", made.original), told.span);
    });
  }
  void DeleteOne(Rng& rng, size_t user) {
    const auto own = [&](const PostEntry& post, bool exists) { return post.author == user && exists; };
    const uint64_t post = model_.Any(model_.posts(), rng, own).first;
    if (post == 0) return;
    const Told told = Do([&] { return app_.Delete(users_[user], post); });
    model_.Change({Fact::kExists, post}, false, told.span);
  }
  void LikeOne(Rng& rng, size_t user) {
    const uint64_t post = AnyPost(rng).first;
    if (post == 0) return;
    const bool like = rng.Below(3) != 0;
    bool changed = false;
    const Told told =
        like ? Do([&] { return app_.Like(users_[user], post, &changed); }, {StatusCode::kNotFound})
             : Do([&] { return app_.Unlike(users_[user], post, &changed); });
    if (told.ok()) model_.Change({Fact::kLikes, user, post}, like, told.span);
    Later([=, this] {
      if (like) ExpectSeen(told.ok(), user, post, told.span);
      if (!told.ok()) return;
      Expect(changed != like, model_.Likes(user, post, told.span), Join(Name(user), " liked ", post),
             told.span);
    });
  }

  // A list of the posts that the viewer sees and for which `formula(id, entry, span)` holds. It is refused to
  // a viewer that does not see the post `about`, if that is not 0.
  template <class Read, class Formula>
  void ReadPosts(size_t viewer, uint64_t about, const std::string& what, Read read, Formula formula) {
    std::vector<uint64_t> ids;
    std::set<StatusCode> refusals;
    if (about != 0) refusals.insert(StatusCode::kNotFound);
    const Told told = Do([&] { return read(users_[viewer], &ids); }, refusals);
    Later([=, this] {
      if (about != 0) ExpectSeen(told.ok(), viewer, about, told.span);
      if (!told.ok()) return;
      const auto wanted = [&](uint64_t id, const PostEntry& post) {
        const Possible other = formula(id, post, told.span);
        return other.yes ? other && model_.Visible(viewer, id, told.span) : other;
      };
      ExpectList(ids, model_.posts(), wanted, Join(what, " of ", Name(viewer)), told.span);
    });
  }
  void ReadHome(size_t viewer) {
    ReadPosts(
        viewer, 0, "home", [&](auto& by, auto* ids) { return app_.Home(by, ids); },
        [=, this](uint64_t, auto& post, ActSpan span) { return model_.AtHome(viewer, post, span); });
  }
  void ReadTimeline(size_t viewer, size_t of) {
    ReadPosts(
        viewer, 0, Name(of) + "'s timeline",
        [&](auto& by, auto* ids) { return app_.Timeline(by, Name(of), ids); },
        [=](uint64_t, auto& post, ActSpan) { return post.author == of; });
  }
  void ReadFavorites(size_t viewer, size_t of) {
    ReadPosts(
        viewer, 0, Name(of) + "'s favorites",
        [&](auto& by, auto* ids) { return app_.Favorites(by, Name(of), ids); },
        [=, this](uint64_t id, auto&, ActSpan span) {
          return model_.Likes(of, id, span) && !model_.Blocked(viewer, of, span);
        });
  }
  void SearchOne(size_t viewer, const std::string& word) {
    ReadPosts(
        viewer, 0, "search for " + word,
        [&](auto& by, auto* ids) { return app_.Search(by, "POST " + word, /*newest=*/true, ids); },
        [=](uint64_t, auto& post, ActSpan span) {
          return (post.word == word) && ReferenceModel::Found(post, span);
        });
  }
  template <class List>
  void ReadReferences(size_t viewer, uint64_t to, const std::string& what, List list,
                      uint64_t PostEntry::* of) {
    ReadPosts(
        viewer, to, Join(what, to), [&](auto& by, auto* ids) { return (app_.*list)(by, to, ids); },
        [=, this](uint64_t, auto& post, ActSpan span) {
          return (post.*of == to) && model_.Exists(to, span);
        });
  }
  // The post, all that refers to it, and the users that like it.
  void ReadAbout(size_t viewer, uint64_t id) {
    ReadPost(viewer, id);
    ReadReferences(viewer, id, "replies to ", &SocialDeployment::Replies, &PostEntry::reply_to);
    ReadReferences(viewer, id, "reposts of ", &SocialDeployment::Reposts, &PostEntry::original);
    std::vector<std::string> names;
    const Told told = Do([&] { return app_.FavoredBy(users_[viewer], id, &names); }, {StatusCode::kNotFound});
    Later([=, this] {
      ExpectSeen(told.ok(), viewer, id, told.span);
      const auto likes = [&](size_t user) {
        return model_.Likes(user, id, told.span) && !model_.Blocked(viewer, user, told.span);
      };
      if (told.ok()) ExpectUsers(names, likes, Join("those that like ", id), told.span);
    });
  }
  void ReadPost(size_t viewer, uint64_t id) {
    Post post;
    const Told told = Do([&] { return app_.Get(users_[viewer], id, &post); }, {StatusCode::kNotFound});
    Later([=, this] {
      ExpectSeen(told.ok(), viewer, id, told.span);
      if (!told.ok()) return;
      PossibleCount likes, replies, reposts;
      for (size_t user = 0; user < kUsers; ++user) likes.Add(model_.Likes(user, id, told.span));
      for (const auto& [other, entry] : model_.posts()) {
        const Possible both = model_.Exists(other, told.span) && model_.Exists(id, told.span);
        if (entry.reply_to == id) replies.Add(both);
        if (entry.original == id) reposts.Add(both);
      }
      EXPECT_TRUE(likes.MayBe(post.favorites())) << post.favorites() << " likes of " << id << Text(told.span);
      EXPECT_TRUE(replies.MayBe(post.replies())) << post.replies() << " replies to " << id << Text(told.span);
      EXPECT_TRUE(reposts.MayBe(post.reposts())) << post.reposts() << " reposts of " << id << Text(told.span);
    });
  }

  void SendOne(size_t user, size_t other) {
    uint64_t id = 0;
    const Told told = Do([&] { return app_.Send(users_[user], Name(other), "a message", &id); },
                         {StatusCode::kPermissionDenied});
    if (told.ok()) model_.Add(id, MessageEntry{.from = user, .to = other}, told.span);
    Later([=, this] {
      Expect(!told.ok(), model_.Blocked(user, other, told.span),
             Join(Name(user), " writes to ", Name(other), ", refused"), told.span);
    });
  }
  void ReadConversation(size_t user, size_t other) {
    std::vector<uint64_t> ids;
    const ActSpan span = Do([&] { return app_.ReadConversation(users_[user], Name(other), &ids); }).span;
    Later([=, this] {
      const auto wanted = [&](uint64_t id, const MessageEntry& message) {
        return message.Between(user, other) && model_.MessageVisible(user, id, span);
      };
      ExpectList(ids, model_.messages(), wanted, Join(Name(user), " with ", Name(other)), span);
    });
  }
  void ListConversations(size_t user) {
    std::vector<Conversation> listed;
    const ActSpan span = Do([&] { return app_.ListConversations(users_[user], &listed); }).span;
    std::vector<uint64_t> last;
    std::vector<std::string> names;
    for (const Conversation& one : listed) {
      last.push_back(one.last().id());
      names.push_back(one.with().name());
    }
    Later([=, this] {
      const std::string what = "conversations of " + Name(user);
      const auto newest = [&](uint64_t id, const MessageEntry&) {
        return model_.MessageVisible(user, id, span) && model_.IsLastMessage(id, span);
      };
      ExpectList(last, model_.messages(), newest, what, span);
      const auto any = [&](size_t other) { return model_.Converse(user, other, span); };
      ExpectUsers(names, any, what, span);
    });
  }
  // Mostly an own one.
  void DeleteMessage(Rng& rng, size_t user) {
    const bool any = rng.Below(3) == 0;
    const auto wanted = [&](const MessageEntry& one, bool exists) {
      return any || (one.from == user && exists);
    };
    const auto [id, message] = model_.Any(model_.messages(), rng, wanted);
    if (id == 0) return;
    std::set<StatusCode> refusals = {StatusCode::kNotFound};
    if (message.to == user) refusals.insert(StatusCode::kPermissionDenied);
    const uint64_t message_id = id;
    const Told told = Do([&] { return app_.DeleteMessage(users_[user], message_id); }, refusals);
    EXPECT_TRUE(!told.ok() || message.from == user) << id;
    if (told.ok()) model_.Change({Fact::kExists, id}, false, told.span);
    const bool party = user == message.from || user == message.to;
    Later([=, this] {
      Expect(told.code != StatusCode::kNotFound, party && model_.Exists(message_id, told.span),
             Join(Name(user), " finds message ", message_id), told.span);
    });
  }

  void Act(Rng& rng, size_t user) {
    const size_t other = rng.Below(kUsers);
    const uint64_t what = rng.Below(24);
    if (what < 2) return ComposeOne(rng, user);
    if (what < 4) return ReferOne(rng, user);
    if (what < 5) return DeleteOne(rng, user);
    if (what < 6) return LikeOne(rng, user);
    if (what < 7) return DeleteMessage(rng, user);
    if (what < 8) return ReadHome(user);
    if (what < 9) return ReadTimeline(user, user);
    if (what < 10) return ReadTimeline(user, other);
    if (what < 11) return ReadFavorites(user, other);
    if (what < 12) return SearchOne(user, Join("word", rng.Below(kWords)));
    if (what < 13) return ListConversations(user);
    if (what < 14) {
      if (const uint64_t post = AnyPost(rng).first; post != 0) ReadAbout(user, post);
    } else if (other != user) {
      ActBetween(rng, user, other);
    }
  }
  void ActBetween(Rng& rng, size_t user, size_t other) {
    const uint64_t what = rng.Below(16);
    if (what < 2) return BlockOne(user, other, true);
    if (what < 5) return BlockOne(user, other, false);
    if (what < 6) return UnfollowOne(user, other);
    if (what < 7) return ReadConversation(user, other);
    if (what < 10) return SendOne(user, other);
    if (what < 11) return ReadFollowing(other, /*known=*/false);
    FollowOne(user, other);
  }
  // Judges the replies that all had, then those that each gets once the queues are empty.
  void ExpectAsModel() {
    app_.AwaitQueue();
    app_.AwaitIndex();
    model_.Settle();
    for (size_t user = 0; user < kUsers; ++user) ReadFollowing(user, /*known=*/true);
    Judge();
    for (size_t viewer = 0; viewer < kUsers; ++viewer) {
      ReadHome(viewer);
      SearchOne(viewer, Join("word", viewer % kWords));
      ListConversations(viewer);
      for (size_t of = 0; of < kUsers; ++of) {
        ReadTimeline(viewer, of);
        ReadFavorites(viewer, of);
        if (of > viewer) ReadConversation(viewer, of);
      }
      if (viewer % kThreads != seed_ % kThreads) continue;  // all of them takes long
      for (const auto& [id, post] : model_.posts()) ReadAbout(viewer, id);
    }
    Judge();
  }

  uint64_t seed_ = TestSeed();
  ReferenceModel model_;
  std::mutex mu_;
  std::vector<std::function<void()>> judges_;  // guarded by mu_ while users act
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

// Property: whatever many users do at once, each reply is one that some order of the acts explains. Once the
// queues are empty, each sees exactly what is left.
TEST_P(SocialModel, EachSeesWhatItMaySeeStress) {
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    ActAtOnce();
    ExpectAsModel();
  }
}

}  // namespace
}  // namespace curtail::social
