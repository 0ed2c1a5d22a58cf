// SPDX-License-Identifier: Apache-2.0
//
// model_testing.h - which replies the users of the social network may get while others act.
//
// The rules of apps/kit/testing/history.h hold, and those of this application:
//
//  S1  A Follow that was granted says that no block holds. One that was refused says that one holds; its
//      follow came and went, as F1 and F3 of social_graph.cc have it. One that failed may have left its
//      follow, block or not: F2 got no answer.
//  S2  A Block ends both follows. A Follow that was granted while a Block was in progress came first, unless
//      an Unblock began before it ended: F2 saw no block, so B1 came after F2, and B2 after F1.
//  S3  A post comes to homes and to the search between the beginning of its Compose and the next time that the
//      queues are empty. A follower must have it if the follow held all that time. It may have it if the
//      follow held at a moment of that time.
//  S4  Acts of one user change each other fact. So these are known once no act is in progress, but a follow
//      may not be. The services are asked for it: their answer must be possible, and is known from then on.
//  S5  A deleted user is gone from a moment of the deletion on, and with it all facts that name it, its posts
//      and its ads, conversations on both sides. A later act changes none of that: one about the user is
//      NOT_FOUND, one by which it writes UNAUTHENTICATED, and one by which it takes away finds nothing.
//  S6  The next user of its name is another one. It registers while no act is in progress, so that each name
//      has one meaning in a span.
//  S7  A post that was refused as its author was gone may have been counted as a reply or repost until then.
//      Posts that mention a deleted user may stay in its own home timeline, which only its token reads.
//  S8  A repost without a text is there while its original is: nothing counts it, or likes of it, afterwards.
//  S9  An act that ended before another began has the smaller id, whatever the services' clocks say.
//  S10 What is asked of services that may stand still can be missing in a reply, which says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/testing/facts.h"
#include "apps/kit/testing/history.h"
#include "curtail/base/rng.h"

namespace curtail::social {

using apps::Operation;
using apps::Possible;
using apps::PossibleCount;
using apps::Span;

// kLikes: the user `a` and the post `b`. kFollows, kBlocks: the user `a` and the user `b`. kGone: the user `a`.
struct Fact {
  enum Kind : uint8_t { kLikes, kFollows, kBlocks, kGone };
  Kind kind;
  uint64_t a, b = 0;
  auto operator<=>(const Fact&) const = default;
};

// A ReferenceModel holds what acts have changed. Users are numbers from 0 on, of which none is used again.
class ReferenceModel {
 public:
  struct PostEntry {
    size_t author = 0;
    std::set<size_t> mentioned = {};
    std::string word = {};  // that a search finds
    uint64_t reply_to = 0, original = 0;
    bool bare = false;
    Span made = {};
  };
  struct MessageEntry {
    size_t from = 0, to = 0;
    bool Between(size_t a, size_t b) const { return (from == a && to == b) || (from == b && to == a); }
  };
  struct AdEntry {
    size_t owner = 0;
  };
  using Posts = std::map<uint64_t, PostEntry>;
  using Messages = std::map<uint64_t, MessageEntry>;
  using Ads = std::map<uint64_t, AdEntry>;
  struct PostCounts {
    PossibleCount likes, replies, reposts;
  };
  struct UserCounts {
    PossibleCount posts, followers, following, likes_received;
  };

  // While users act; thread-safe.
  void Change(const Fact& fact, bool to, const Operation& by) { facts_.Set(fact, to, by); }
  void Add(uint64_t id, PostEntry post, const Operation& by);
  void Add(uint64_t id, MessageEntry message, const Operation& by);
  void Add(uint64_t id, AdEntry ad, const Operation& by);
  void DeletePost(uint64_t id, const Operation& by) { posts_.Remove(id, by); }
  void DeleteMessage(uint64_t id, const Operation& by) { messages_.Remove(id, by); }
  void Follow(size_t from, size_t to, const Operation& by);
  void Block(size_t from, size_t to, bool block, const Operation& by);
  // A deletion was acknowledged.
  bool IsGone(size_t user) const { return facts_.Last({Fact::kGone, user}); }
  // A random one that wanted(entry, exists) chooses; 0: there is none.
  template <class Wanted>
  std::pair<uint64_t, PostEntry> AnyPost(Rng& rng, Wanted wanted) const {
    return posts_.Any(rng, [&](const PostEntry& post, bool exists) {
      return wanted(post, exists && !IsGone(post.author));
    });
  }
  template <class Wanted>
  std::pair<uint64_t, MessageEntry> AnyMessage(Rng& rng, Wanted wanted) const {
    return messages_.Any(rng, [&](const MessageEntry& message, bool exists) {
      return wanted(message, exists && !IsGone(message.from) && !IsGone(message.to));
    });
  }

  // Judging; no act is in progress. Settle() is first, at a step once the queues are empty: rules S2 and S3.
  void Settle(uint64_t step);
  const std::map<uint64_t, PostEntry>& posts() const { return posts_.all(); }
  const std::map<uint64_t, MessageEntry>& messages() const { return messages_.all(); }
  const std::map<uint64_t, AdEntry>& ads() const { return ads_.all(); }
  // Takes the services' word, rule S4.
  void Learn(size_t from, size_t to, bool follows, Span span) {
    facts_.Set({Fact::kFollows, from, to}, follows, span);
  }
  // Empty if rule S9 holds.
  std::string MisplacedIds() const;
  Possible Gone(size_t user, Span span) const { return facts_.In({Fact::kGone, user}, span); }
  Possible BothThere(size_t a, size_t b, Span span) const { return !Gone(a, span) && !Gone(b, span); }
  Possible Exists(uint64_t id, Span span) const;
  Possible Follows(size_t from, size_t to, Span span) const {
    return facts_.In({Fact::kFollows, from, to}, span) && BothThere(from, to, span);
  }
  Possible Blocks(size_t from, size_t to, Span span) const {
    return facts_.In({Fact::kBlocks, from, to}, span) && BothThere(from, to, span);
  }
  Possible Blocked(size_t a, size_t b, Span span) const { return Blocks(a, b, span) || Blocks(b, a, span); }
  Possible Likes(size_t user, uint64_t post, Span span) const {
    return facts_.In({Fact::kLikes, user, post}, span) && !Gone(user, span) && Exists(post, span);
  }
  Possible Visible(size_t viewer, uint64_t post, Span span) const;
  // Of a post that is visible.
  Possible AtHome(size_t viewer, const PostEntry& post, Span span) const;
  Possible Found(const PostEntry& post, Span span) const { return {Delivered(post) >= span.began, true}; }
  // The user has a repost without a text.
  Possible Repeats(size_t user, uint64_t original, Span span) const;
  Possible MessageVisible(size_t viewer, uint64_t id, Span span) const;
  Possible IsLastMessage(uint64_t id, Span span) const;
  // The user sees a message that one of the two sent to the other.
  Possible Converse(size_t user, size_t other, Span span) const;
  // Of the users below `users`, which are all.
  PostCounts CountsOf(uint64_t post, size_t users, Span span) const;
  UserCounts CountsOfUser(size_t user, size_t users, Span span) const;

 private:
  struct Granted {
    size_t from, to;
    Span span;
  };
  // The step at which the queues were empty.
  uint64_t Delivered(const PostEntry& post) const;

  apps::Facts<Fact> facts_;
  apps::Items<PostEntry> posts_;
  apps::Items<MessageEntry> messages_;
  apps::Items<AdEntry> ads_;
  std::vector<uint64_t> settled_;  // steps; of the thread that judges
  mutable std::mutex mu_;
  // Guarded by mu_ while users act.
  std::vector<Granted> granted_;  // since Settle()
  std::vector<PostEntry> refused_;
  std::vector<std::pair<uint64_t, Span>> ids_;
};

}  // namespace curtail::social
