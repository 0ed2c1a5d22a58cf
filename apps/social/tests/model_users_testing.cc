// SPDX-License-Identifier: Apache-2.0
#include "apps/social/tests/model_users_testing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/social/data.h"
#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

using absl::StatusCode;
using PostEntry = ReferenceModel::PostEntry;
using MessageEntry = ReferenceModel::MessageEntry;

using apps::Expect;
using apps::ExpectCount;
using apps::ExpectList;
using apps::StepsOf;

Possible Always(Span) { return true; }

// Rule S10.
bool Misses(const Post& post, const std::string& what) {
  return std::ranges::find(post.missing(), what) != post.missing().end();
}

}  // namespace

ModelUsers::ModelUsers(SocialDeployment* app) : app_(*app) {
  for (size_t name = 0; name < kNames; ++name) Register(name);
}

void ModelUsers::Register(size_t name) {
  Session session = app_.Register(NameText(name));
  const std::lock_guard lock(mu_);
  holders_[name] = users_.size();
  users_.push_back({name, std::move(session)});
}

void ModelUsers::Replace(size_t name) {
  if (!model_.IsGone(holders_[name])) return;
  Session none;
  const absl::Status status = app_.Login(NameText(name), &none);
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  Register(name);
}

std::string ModelUsers::NameText(size_t name) { return Join("user_", name); }
std::string ModelUsers::Text(size_t user) const { return Join(Name(user), " (", user, ")"); }

ModelUsers::Chosen ModelUsers::AnyPost(Rng& rng) const {
  return model_.AnyPost(rng, [](const PostEntry&, bool) { return true; });
}
ModelUsers::Chosen ModelUsers::PostOf(Rng& rng, size_t author) const {
  return model_.AnyPost(rng, [&](const PostEntry& post, bool) { return post.author == author; });
}

void ModelUsers::ExpectSeen(bool seen, size_t viewer, uint64_t post, Span span) const {
  Expect(seen, model_.Visible(viewer, post, span), Join(Text(viewer), " sees ", post), span);
}

void ModelUsers::ExpectWriter(const Operation& told, size_t user) const {
  Expect(told.code() == StatusCode::kUnauthenticated, model_.Gone(user, told.span), Text(user) + " is gone",
         told.span);
}
void ModelUsers::ExpectNamed(const Operation& told, size_t other) const {
  Expect(told.code() == StatusCode::kNotFound, model_.Gone(other, told.span), Text(other) + " is gone",
         told.span);
}
void ModelUsers::ExpectBoth(const Operation& told, size_t user, size_t other) const {
  ExpectNamed(told, other);
  if (told.code() != StatusCode::kNotFound) ExpectWriter(told, user);
}

template <class Formula>
void ModelUsers::ExpectUsers(std::vector<std::string> names, const Holders& holders, Formula formula,
                             const std::string& what, Span span) const {
  for (const size_t user : holders) {
    const size_t times = std::erase(names, Name(user));
    EXPECT_LE(times, 1U) << what << StepsOf(span);
    Expect(times > 0, formula(user), Join(what, " have ", Text(user)), span);
  }
  EXPECT_TRUE(names.empty()) << what << StepsOf(span);
}

void ModelUsers::Follow(size_t user, size_t other) {
  bool changed = false;
  const Operation told =
      history_.Do([&] { return app_.Follow(As(user), Name(other), &changed); },
                  {StatusCode::kPermissionDenied, StatusCode::kNotFound, StatusCode::kUnauthenticated});
  const bool blocked = told.code() == StatusCode::kPermissionDenied;
  model_.Follow(user, other, told);
  history_.Later([=, this] {
    ExpectBoth(told, user, other);
    const std::string what = Join(Text(user), " follows ", Text(other));
    if (told.ok() || blocked)
      Expect(blocked, model_.Blocked(user, other, told.span), what + ", refused", told.span);
    if (told.ok()) Expect(!changed, model_.Follows(user, other, told.span), what + " before", told.span);
  });
}

void ModelUsers::Unfollow(size_t user, size_t other) {
  bool changed = false;
  const Operation told =
      history_.Do([&] { return app_.Unfollow(As(user), Name(other), &changed); }, {StatusCode::kNotFound});
  model_.Change({Fact::kFollows, user, other}, false, told);
  history_.Later([=, this] {
    ExpectNamed(told, other);
    if (!told.ok()) return;
    Expect(changed, model_.Follows(user, other, told.span), Join(Text(user), " unfollows ", Text(other)),
           told.span);
  });
}

void ModelUsers::Block(size_t user, size_t other, bool block) {
  bool changed = false;
  const Operation told = block ? history_.Do([&] { return app_.Block(As(user), Name(other), &changed); },
                                             {StatusCode::kNotFound, StatusCode::kUnauthenticated})
                               : history_.Do([&] { return app_.Unblock(As(user), Name(other), &changed); },
                                             {StatusCode::kNotFound});
  model_.Block(user, other, block, told);
  history_.Later([=, this] {
    block ? ExpectBoth(told, user, other) : ExpectNamed(told, other);
    if (!told.ok()) return;
    Expect(changed != block, model_.Blocks(user, other, told.span),
           Join(Text(user), " blocked ", Text(other), " before"), told.span);
  });
}

void ModelUsers::ReadFollowing(size_t of, bool known) {
  std::vector<std::string> names;
  const Operation told =
      history_.Do([&] { return app_.Following(Name(of), &names); }, {StatusCode::kNotFound});
  history_.Later([=, this, holders = holders_] {
    ExpectNamed(told, of);
    if (!told.ok()) return;
    const Span span = told.span;
    const auto follows = [&](size_t other) { return model_.Follows(of, other, span); };
    ExpectUsers(names, holders, follows, Join("followees of ", Text(of)), span);
    for (const size_t other : holders) {
      if (!known) continue;
      const bool there = std::ranges::find(names, Name(other)) != names.end();
      model_.Learn(of, other, there, span);
      EXPECT_FALSE(there && model_.Blocked(of, other, span).yes) << Text(of) << " " << Text(other);
    }
  });
}

void ModelUsers::Compose(Rng& rng, size_t user, std::optional<size_t> other) {
  PostEntry entry{.author = user, .word = Join("word", rng.Below(kWords))};
  ComposeRequest request;
  request.set_text("a post " + entry.word);
  const auto mention = [&](size_t one) {
    entry.mentioned.insert(one);
    *request.mutable_text() += " @" + Name(one);
  };
  while (rng.Below(2) == 0) mention(holders_[rng.Below(kNames)]);
  if (other) mention(*other);
  Post post;
  const Operation told =
      history_.Do([&] { return app_.Compose(As(user), request, &post); }, {StatusCode::kUnauthenticated});
  model_.Add(post.id(), std::move(entry), told);
  history_.Later([=, this] { ExpectWriter(told, user); });
}

void ModelUsers::Refer(Rng& rng, size_t user, const Chosen& to) {
  const auto& [target, entry] = to;
  if (target == 0) return;
  const uint64_t kind = rng.Below(3);  // a reply, a repost, a repost with a text
  ComposeRequest request;
  if (kind != 1) request.set_text("about it");
  kind == 0 ? request.set_reply_to(target) : request.set_repost_of(target);
  PostEntry made{.author = user, .bare = kind == 1};
  (kind == 0 ? made.reply_to : made.original) = kind != 0 && entry.bare ? entry.original : target;
  std::set<StatusCode> refusals = {StatusCode::kNotFound, StatusCode::kUnauthenticated};
  if (made.bare) refusals.insert(StatusCode::kAlreadyExists);
  Post post;
  const Operation told = history_.Do([&] { return app_.Compose(As(user), request, &post); }, refusals);
  model_.Add(post.id(), made, told);
  history_.Later([=, this, target = target] {
    const bool seen = told.code() != StatusCode::kNotFound;
    ExpectSeen(seen, user, target, told.span);
    if (seen) ExpectWriter(told, user);
    if (!seen || !made.bare || told.code() == StatusCode::kUnauthenticated) return;
    Expect(!told.ok(), model_.Repeats(user, made.original, told.span),
           Join(Text(user), " has repeated ", made.original), told.span);
  });
}

void ModelUsers::Delete(Rng& rng, size_t user) {
  const auto own = [&](const PostEntry& post, bool exists) { return post.author == user && exists; };
  const uint64_t post = model_.AnyPost(rng, own).first;
  if (post == 0) return;
  const Operation told = history_.Do([&] { return app_.Delete(As(user), post); }, {StatusCode::kNotFound});
  model_.DeletePost(post, told);
  history_.Later([=, this] {
    Expect(told.ok(), model_.Exists(post, told.span), Join(Text(user), " deletes ", post), told.span);
  });
}

void ModelUsers::Like(Rng& rng, size_t user, uint64_t post) {
  if (post == 0) return;
  const bool like = rng.Below(3) != 0;
  bool changed = false;
  const Operation told = like ? history_.Do([&] { return app_.Like(As(user), post, &changed); },
                                            {StatusCode::kNotFound, StatusCode::kUnauthenticated})
                              : history_.Do([&] { return app_.Unlike(As(user), post, &changed); });
  model_.Change({Fact::kLikes, user, post}, like, told);
  history_.Later([=, this] {
    const bool seen = told.code() != StatusCode::kNotFound;
    if (like) ExpectSeen(seen, user, post, told.span);
    if (like && seen) ExpectWriter(told, user);
    if (!told.ok()) return;
    Expect(changed != like, model_.Likes(user, post, told.span), Join(Text(user), " liked ", post),
           told.span);
  });
}

// A list of the posts that the viewer sees and for which `formula(id, entry, span)` holds. NOT_FOUND:
// `shown(span)` does not hold.
template <class Read, class Shown, class Formula>
void ModelUsers::ReadPosts(size_t viewer, const std::string& what, Read read, Shown shown, Formula formula) {
  std::vector<uint64_t> ids;
  const Operation told = history_.Do([&] { return read(As(viewer), &ids); }, {StatusCode::kNotFound});
  history_.Later([=, this] {
    Expect(told.ok(), shown(told.span), Join(Text(viewer), " is shown ", what), told.span);
    if (!told.ok()) return;
    const auto wanted = [&](uint64_t id, const PostEntry& post) {
      const Possible other = formula(id, post, told.span);
      return other.yes ? other && model_.Visible(viewer, id, told.span) : other;
    };
    ExpectList(ids, model_.posts(), wanted, Join(what, " of ", Text(viewer)), told.span);
  });
}

void ModelUsers::ReadHome(size_t viewer) {
  ReadPosts(
      viewer, "home", [&](auto& by, auto* ids) { return app_.Home(by, ids); }, Always,
      [=, this](uint64_t, auto& post, Span span) { return model_.AtHome(viewer, post, span); });
}

void ModelUsers::ReadTimeline(size_t viewer, size_t of) {
  ReadPosts(
      viewer, Text(of) + "'s timeline", [&](auto& by, auto* ids) { return app_.Timeline(by, Name(of), ids); },
      [=, this](Span span) { return !model_.Gone(of, span); },
      [=](uint64_t, auto& post, Span) { return post.author == of; });
}

void ModelUsers::ReadFavorites(size_t viewer, size_t of) {
  ReadPosts(
      viewer, Text(of) + "'s favorites",
      [&](auto& by, auto* ids) { return app_.Favorites(by, Name(of), ids); },
      [=, this](Span span) { return !model_.Gone(of, span); },
      [=, this](uint64_t id, auto&, Span span) {
        return model_.Likes(of, id, span) && !model_.Blocked(viewer, of, span);
      });
}

void ModelUsers::SearchPosts(size_t viewer, const std::string& word) {
  ReadPosts(
      viewer, "search for " + word,
      [&](auto& by, auto* ids) { return app_.Search(by, "POST " + word, /*newest=*/true, ids); }, Always,
      [=, this](uint64_t, auto& post, Span span) { return (post.word == word) && model_.Found(post, span); });
}

template <class List>
void ModelUsers::ReadReferences(size_t viewer, uint64_t to, const std::string& what, List list,
                                uint64_t PostEntry::* of) {
  ReadPosts(
      viewer, Join(what, to), [&](auto& by, auto* ids) { return (app_.*list)(by, to, ids); },
      [=, this](Span span) { return model_.Visible(viewer, to, span); },
      [=, this](uint64_t, auto& post, Span span) { return (post.*of == to) && model_.Exists(to, span); });
}

void ModelUsers::ReadAbout(size_t viewer, uint64_t id) {
  if (id == 0) return;
  ReadPost(viewer, id);
  ReadReferences(viewer, id, "replies to ", &SocialDeployment::Replies, &PostEntry::reply_to);
  ReadReferences(viewer, id, "reposts of ", &SocialDeployment::Reposts, &PostEntry::original);
  std::vector<std::string> names;
  const Operation told =
      history_.Do([&] { return app_.FavoredBy(As(viewer), id, &names); }, {StatusCode::kNotFound});
  history_.Later([=, this, holders = holders_] {
    ExpectSeen(told.ok(), viewer, id, told.span);
    const auto likes = [&](size_t user) {
      return model_.Likes(user, id, told.span) && !model_.Blocked(viewer, user, told.span);
    };
    if (told.ok()) ExpectUsers(names, holders, likes, Join("those that like ", id), told.span);
  });
}

void ModelUsers::ReadPost(size_t viewer, uint64_t id) {
  Post post;
  const Operation told =
      history_.Do([&] { return app_.Get(As(viewer), id, &post); }, {StatusCode::kNotFound});
  history_.Later([=, this] {
    ExpectSeen(told.ok(), viewer, id, told.span);
    if (!told.ok()) return;
    const uint64_t original = model_.posts().at(id).original;
    Expect(post.has_original(), original != 0 ? model_.Exists(original, told.span) : false,
           Join(id, " shows an original"), told.span);
    const auto counts = model_.CountsOf(id, users_.size(), told.span);
    if (!Misses(post, "favorites"))
      ExpectCount(counts.likes, post.favorites(), Join(" likes of ", id), told.span);
    if (Misses(post, "replies")) return;
    ExpectCount(counts.replies, post.replies(), Join(" replies to ", id), told.span);
    ExpectCount(counts.reposts, post.reposts(), Join(" reposts of ", id), told.span);
  });
}

void ModelUsers::Send(size_t user, size_t other) {
  uint64_t id = 0;
  const Operation told =
      history_.Do([&] { return app_.Send(As(user), Name(other), "a message", &id); },
                  {StatusCode::kPermissionDenied, StatusCode::kNotFound, StatusCode::kUnauthenticated});
  model_.Add(id, MessageEntry{.from = user, .to = other}, told);
  history_.Later([=, this] {
    ExpectBoth(told, user, other);
    const bool blocked = told.code() == StatusCode::kPermissionDenied;
    if (!told.ok() && !blocked) return;
    Expect(blocked, model_.Blocked(user, other, told.span),
           Join(Text(user), " writes to ", Text(other), ", refused"), told.span);
  });
}

void ModelUsers::ReadConversation(size_t user, size_t other) {
  std::vector<uint64_t> ids;
  const Operation told = history_.Do([&] { return app_.ReadConversation(As(user), Name(other), &ids); },
                                     {StatusCode::kNotFound});
  history_.Later([=, this] {
    ExpectNamed(told, other);
    if (!told.ok()) return;
    const auto wanted = [&](uint64_t id, const MessageEntry& message) {
      return message.Between(user, other) && model_.MessageVisible(user, id, told.span);
    };
    ExpectList(ids, model_.messages(), wanted, Join(Text(user), " with ", Text(other)), told.span);
  });
}

void ModelUsers::ListConversations(size_t user) {
  std::vector<Conversation> listed;
  const Span span = history_.Do([&] { return app_.ListConversations(As(user), &listed); }).span;
  history_.Later([=, this] {
    const std::string what = "conversations of " + Text(user);
    std::vector<uint64_t> last, with;
    for (const Conversation& one : listed) {
      last.push_back(one.last().id());
      with.push_back(one.with().id());
    }
    const auto newest = [&](uint64_t id, const MessageEntry&) {
      return model_.MessageVisible(user, id, span) && model_.IsLastMessage(id, span);
    };
    ExpectList(last, model_.messages(), newest, what, span);
    for (size_t other = 0; other < users_.size(); ++other) {
      const size_t times = std::erase(with, As(other).user());
      EXPECT_LE(times, 1U) << what << StepsOf(span);
      Expect(times > 0, model_.Converse(user, other, span), Join(what, " have ", Text(other)), span);
    }
    EXPECT_TRUE(with.empty()) << what << StepsOf(span);
  });
}

void ModelUsers::DeleteMessage(Rng& rng, size_t user) {
  const bool any = rng.Below(3) == 0;
  const auto wanted = [&](const MessageEntry& one, bool exists) {
    return any || (one.from == user && exists);
  };
  const auto [id, message] = model_.AnyMessage(rng, wanted);
  if (id == 0) return;
  std::set<StatusCode> refusals = {StatusCode::kNotFound};
  if (message.to == user) refusals.insert(StatusCode::kPermissionDenied);
  const uint64_t message_id = id;
  const Operation told = history_.Do([&] { return app_.DeleteMessage(As(user), message_id); }, refusals);
  EXPECT_TRUE(!told.ok() || message.from == user) << id;
  model_.DeleteMessage(id, told);
  const bool party = user == message.from || user == message.to;
  history_.Later([=, this] {
    Expect(told.code() != StatusCode::kNotFound, party && model_.Exists(message_id, told.span),
           Join(Text(user), " finds message ", message_id), told.span);
  });
}

void ModelUsers::SearchUsers(size_t viewer) {
  std::vector<std::string> names;
  const Span span = history_.Do([&] { return app_.SearchUsers(As(viewer), "user_", &names); }).span;
  history_.Later([=, this, holders = holders_] {
    const auto found = [&](size_t user) {
      return !model_.Gone(user, span) && !model_.Blocked(viewer, user, span);
    };
    ExpectUsers(names, holders, found, Join("users that ", Text(viewer), " finds"), span);
  });
}

void ModelUsers::ReadStatistics(size_t viewer, size_t of) {
  Statistics told_of;
  const Operation told = history_.Do([&] { return app_.GetStatistics(As(viewer), Name(of), &told_of); },
                                     {StatusCode::kNotFound});
  history_.Later([=, this] {
    ExpectNamed(told, of);
    if (!told.ok()) return;
    const bool zero = told_of.ByteSizeLong() == 0;
    const Possible blocked = model_.Blocked(viewer, of, told.span);
    if (zero && blocked.yes) return;
    Expect(false, blocked, Join(Text(viewer), " and ", Text(of), " are parted"), told.span);
    const auto counts = model_.CountsOfUser(of, users_.size(), told.span);
    ExpectCount(counts.posts, told_of.posts(), " posts of " + Text(of), told.span);
    ExpectCount(counts.followers, told_of.followers(), " followers of " + Text(of), told.span);
    ExpectCount(counts.following, told_of.following(), " followees of " + Text(of), told.span);
    ExpectCount(counts.likes_received, told_of.likes_received(), " likes of " + Text(of), told.span);
  });
}

void ModelUsers::Advertise(size_t user) {
  uint64_t id = 0;
  const Operation told =
      history_.Do([&] { return app_.CreateAd(As(user), &id); }, {StatusCode::kUnauthenticated});
  model_.Add(id, ReferenceModel::AdEntry{.owner = user}, told);
  history_.Later([=, this] { ExpectWriter(told, user); });
}

void ModelUsers::ReadAds(size_t viewer) {
  std::vector<uint64_t> ids;
  const Operation told =
      history_.Do([&] { return app_.ShowAds(As(viewer), &ids); }, {StatusCode::kUnauthenticated});
  history_.Later([=, this] {
    if (!told.ok() || !ids.empty()) ExpectWriter(told, viewer);  // what is shown is counted
    for (const uint64_t id : ids) {
      const auto ad = model_.ads().find(id);
      ASSERT_NE(ad, model_.ads().end()) << id;
      const Possible shown =
          model_.Exists(id, told.span) && !model_.Blocked(viewer, ad->second.owner, told.span);
      Expect(true, shown, Join(Text(viewer), " is shown the ad ", id, " of ", Text(ad->second.owner)),
             told.span);
    }
  });
}

void ModelUsers::LogIn(size_t user) {
  Session session;
  const Operation told =
      history_.Do([&] { return app_.Login(Name(user), &session); }, {StatusCode::kUnauthenticated});
  history_.Later([=, this] {
    ExpectWriter(told, user);
    EXPECT_TRUE(!told.ok() || session.user() == As(user).user()) << Text(user);
  });
}

void ModelUsers::Erase(size_t user) {
  const Operation told =
      history_.Do([&] { return app_.DeleteUser(Name(user)); }, {StatusCode::kUnauthenticated});
  model_.Change({Fact::kGone, user}, true, told);
  history_.Later([=, this] { ExpectWriter(told, user); });
}

}  // namespace curtail::social
