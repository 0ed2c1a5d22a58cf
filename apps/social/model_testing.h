// SPDX-License-Identifier: Apache-2.0
//
// model_testing.h - which replies the users of the social network may get while others act.
//
//  1  An act is a call, or the calls for one list. It takes a step of one counter before and another after:
//     its span. An act that ends before another begins came first. If their spans overlap, either may have
//     come first.
//  2  A fact, such as that a user follows another, changes by acts. Nothing holds at first. A value is
//     possible in a span if the change to it may be the last one at a moment of the span.
//  3  A reply is right if all that it says was possible in its span, its own change apart. It is judged once
//     no act is in progress, as all changes are known then.
//  4  A Follow that was granted says that no block holds. One that was refused says that one holds; its
//     follow came and went, as F1 and F3 of social_graph.cc have it.
//  5  A Block ends both follows. A Follow that was granted while a Block was in progress came first, unless
//     an Unblock began before it ended: F2 saw no block, so B1 came after F2, and B2 after F1.
//  6  A post comes to homes and to the search between the beginning of its Compose and the next time that the
//     queues are empty. A follower must have it if the follow held all that time. It may have it if the
//     follow held at a moment of that time.
//  7  Acts of one user change each other fact. So these are known once no act is in progress, but a follow
//     may not be. The services are asked for it: their answer must be possible, and is known from then on.
//  8  A deleted user is gone from a moment of the deletion on, and with it all facts that name it, its posts
//     and its ads, conversations on both sides. A later act changes none of that: one about the user is
//     NOT_FOUND, one by which it writes UNAUTHENTICATED, and one by which it takes away finds nothing.
//  9  The next user of its name is another one. It registers while no act is in progress, so that each name
//     has one meaning in a span.
//  10 A post that was refused as its author was gone may have been counted as a reply or repost until then.
//     Posts that mention a deleted user may stay in its own home timeline, which only its token reads.
//  11 A repost without a text is there while its original is: nothing counts it, or likes of it, afterwards.
//  12 An act that ended before another began has the smaller id, whatever the services' clocks say.
//  13 What is asked of services that may stand still can be missing in a reply, which says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"

namespace curtail::social {

struct ActSpan {
  uint64_t began = 0, ended = 0;
};

// The values that a statement may have in a span. One of several facts takes each at a moment of its own.
struct Possible {
  constexpr Possible(bool value) : no(!value), yes(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Possible(bool n, bool y) : no(n), yes(y) {}
  constexpr bool Is(bool value) const { return value ? yes : no; }
  constexpr Possible operator!() const { return {yes, no}; }
  friend constexpr Possible operator&&(Possible a, Possible b) { return {a.no || b.no, a.yes && b.yes}; }
  friend constexpr Possible operator||(Possible a, Possible b) { return !(!a && !b); }

  bool no, yes;
};

// How many of several statements may hold at once.
struct PossibleCount {
  void Add(Possible one) {
    least += one.no ? 0 : 1;
    most += one.yes ? 1 : 0;
  }
  bool MayBe(uint64_t count) const { return least <= count && count <= most; }
  uint64_t least = 0, most = 0;
};

// kExists: the post, message or ad `a`. kLikes: the user `a` and the post `b`. kFollows, kBlocks: the user
// `a` and the user `b`. kGone: the user `a`.
struct Fact {
  enum Kind : uint8_t { kExists, kLikes, kFollows, kBlocks, kGone };
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
    ActSpan made = {};
    uint64_t delivered = std::numeric_limits<uint64_t>::max();  // the step at which the queues were empty
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

  // While users act; thread-safe. Changes are told once they are acknowledged.
  uint64_t Step() { return steps_.fetch_add(1) + 1; }
  void Change(const Fact& fact, bool to, ActSpan span);
  void Add(uint64_t id, PostEntry post, ActSpan span);
  void Add(uint64_t id, MessageEntry message, ActSpan span);
  void Add(uint64_t id, AdEntry ad, ActSpan span);
  // Rule 10.
  void AddRefused(PostEntry post, ActSpan span);
  void Follow(size_t from, size_t to, bool granted, ActSpan span);
  void Block(size_t from, size_t to, bool block, ActSpan span);
  // A deletion was acknowledged.
  bool IsGone(size_t user) const;
  // A random one of `all`, posts() or messages(), that wanted(entry, exists) chooses; 0: there is none.
  template <class Entry, class Wanted>
  std::pair<uint64_t, Entry> Any(const std::map<uint64_t, Entry>& all, Rng& rng, Wanted wanted) const {
    const std::lock_guard lock(mu_);
    std::vector<std::pair<uint64_t, Entry>> those;
    for (const auto& [id, entry] : all) {
      if (wanted(entry, Holds({Fact::kExists, id}) && !PartyGone(entry))) those.emplace_back(id, entry);
    }
    return those.empty() ? std::pair<uint64_t, Entry>() : those[rng.Below(those.size())];
  }

  // Judging; no act is in progress. Settle() is first, once the queues are empty: rules 5 and 6.
  void Settle();
  const Posts& posts() const { return posts_; }
  const Messages& messages() const { return messages_; }
  const Ads& ads() const { return ads_; }
  // Empty if rule 12 holds.
  std::string MisplacedIds() const;
  Possible Gone(size_t user, ActSpan span) const { return In({Fact::kGone, user}, span); }
  Possible BothThere(size_t a, size_t b, ActSpan span) const { return !Gone(a, span) && !Gone(b, span); }
  Possible Exists(uint64_t id, ActSpan span) const;
  Possible Follows(size_t from, size_t to, ActSpan span) const {
    return In({Fact::kFollows, from, to}, span) && BothThere(from, to, span);
  }
  Possible Blocks(size_t from, size_t to, ActSpan span) const {
    return In({Fact::kBlocks, from, to}, span) && BothThere(from, to, span);
  }
  Possible Blocked(size_t a, size_t b, ActSpan span) const {
    return Blocks(a, b, span) || Blocks(b, a, span);
  }
  Possible Likes(size_t user, uint64_t post, ActSpan span) const {
    return In({Fact::kLikes, user, post}, span) && !Gone(user, span) && Exists(post, span);
  }
  Possible Visible(size_t viewer, uint64_t post, ActSpan span) const;
  // Of a post that is visible.
  Possible AtHome(size_t viewer, const PostEntry& post, ActSpan span) const;
  static Possible Found(const PostEntry& post, ActSpan span) { return {post.delivered >= span.began, true}; }
  // The user has a repost without a text.
  Possible Repeats(size_t user, uint64_t original, ActSpan span) const;
  Possible MessageVisible(size_t viewer, uint64_t id, ActSpan span) const;
  Possible IsLastMessage(uint64_t id, ActSpan span) const;
  // The user sees a message that one of the two sent to the other.
  Possible Converse(size_t user, size_t other, ActSpan span) const;
  // Of the users below `users`, which are all.
  PostCounts CountsOf(uint64_t post, size_t users, ActSpan span) const;
  UserCounts CountsOfUser(size_t user, size_t users, ActSpan span) const;

 private:
  struct ChangeOfFact {
    bool to = false;
    ActSpan span;
  };
  using Changes = std::vector<ChangeOfFact>;
  struct Granted {
    size_t from, to;
    ActSpan span;
  };
  const Changes& Of(const Fact& fact) const;
  bool Holds(const Fact& fact) const { return Of(fact).back().to; }  // after the last change
  bool PartyGone(const PostEntry& post) const { return Holds({Fact::kGone, post.author}); }
  bool PartyGone(const MessageEntry& message) const {
    return Holds({Fact::kGone, message.from}) || Holds({Fact::kGone, message.to});
  }
  Possible In(const Fact& fact, ActSpan span) const;  // rules 2 and 3
  void ChangeLocked(const Fact& fact, bool to, ActSpan span);

  std::atomic<uint64_t> steps_{0};  // sequentially consistent: a step orders the calls around it
  mutable std::mutex mu_;
  // Guarded by mu_ while users act.
  std::map<Fact, Changes> changes_;  // each after one to nothing
  std::vector<Granted> granted_;     // since Settle()
  Posts posts_;
  Messages messages_;
  Ads ads_;
  std::vector<PostEntry> refused_;
  std::vector<std::pair<uint64_t, ActSpan>> ids_;
};

}  // namespace curtail::social
