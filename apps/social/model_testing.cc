// SPDX-License-Identifier: Apache-2.0
#include "apps/social/model_testing.h"

#include <algorithm>
#include <iterator>

#include "curtail/base/strings.h"

namespace curtail::social {

void ReferenceModel::Change(const Fact& fact, bool to, ActSpan span) {
  const std::lock_guard lock(mu_);
  ChangeLocked(fact, to, span);
}

void ReferenceModel::ChangeLocked(const Fact& fact, bool to, ActSpan span) {
  changes_.try_emplace(fact, 1).first->second.push_back({to, span});  // after the first, to nothing
}

void ReferenceModel::Add(uint64_t id, PostEntry post, ActSpan span) {
  const std::lock_guard lock(mu_);
  post.made = span;
  posts_.emplace(id, std::move(post));
  ids_.emplace_back(id, span);
  ChangeLocked({Fact::kExists, id}, true, span);
}

void ReferenceModel::Add(uint64_t id, MessageEntry message, ActSpan span) {
  const std::lock_guard lock(mu_);
  messages_.emplace(id, message);
  ids_.emplace_back(id, span);
  ChangeLocked({Fact::kExists, id}, true, span);
}

void ReferenceModel::Add(uint64_t id, AdEntry ad, ActSpan span) {
  const std::lock_guard lock(mu_);
  ads_.emplace(id, ad);
  ids_.emplace_back(id, span);
  ChangeLocked({Fact::kExists, id}, true, span);
}

void ReferenceModel::AddRefused(PostEntry post, ActSpan span) {
  const std::lock_guard lock(mu_);
  post.made = span;
  refused_.push_back(std::move(post));
}

bool ReferenceModel::IsGone(size_t user) const {
  const std::lock_guard lock(mu_);
  return Holds({Fact::kGone, user});
}

void ReferenceModel::Follow(size_t from, size_t to, bool granted, ActSpan span) {
  const std::lock_guard lock(mu_);
  ChangeLocked({Fact::kFollows, from, to}, true, span);
  if (granted) {
    granted_.push_back({from, to, span});
  } else {
    ChangeLocked({Fact::kFollows, from, to}, false, {span.ended, span.ended});
  }
}

void ReferenceModel::Block(size_t from, size_t to, bool block, ActSpan span) {
  const std::lock_guard lock(mu_);
  ChangeLocked({Fact::kBlocks, from, to}, block, span);
  if (!block) return;
  ChangeLocked({Fact::kFollows, from, to}, false, span);
  ChangeLocked({Fact::kFollows, to, from}, false, span);
}

std::string ReferenceModel::MisplacedIds() const {
  for (const auto& [id, span] : ids_) {
    for (const auto& [later, after] : ids_) {
      if (span.ended < after.began && later <= id) return Join(later, " came after ", id);
    }
  }
  return {};
}

const ReferenceModel::Changes& ReferenceModel::Of(const Fact& fact) const {
  static const Changes none(1);
  const auto found = changes_.find(fact);
  return found == changes_.end() ? none : found->second;
}

void ReferenceModel::Settle() {
  const uint64_t now = Step();
  for (auto& [id, post] : posts_) post.delivered = std::min(post.delivered, now);
  for (const auto& [from, to, span] : granted_) {
    const Changes& blocks = Of({Fact::kBlocks, to, from});
    for (const ChangeOfFact& block : blocks) {
      const bool overlaps = block.span.began < span.ended && span.began < block.span.ended;
      const bool undone = std::ranges::any_of(blocks, [&](const ChangeOfFact& other) {
        return !other.to && other.span.began > block.span.began && other.span.began < span.ended;
      });
      if (!block.to || !overlaps || undone) continue;
      // After the follow for certain, and no sooner than the Block otherwise.
      ChangeLocked({Fact::kFollows, from, to}, false, {span.ended, std::max(span.ended, block.span.ended)});
    }
  }
  granted_.clear();
}

Possible ReferenceModel::In(const Fact& fact, ActSpan span) const {
  const Changes& changes = Of(fact);
  Possible possible(false, false);
  for (const ChangeOfFact& change : changes) {
    const bool own = change.span.began == span.began, later = change.span.began >= span.ended;
    const bool undone = std::ranges::any_of(changes, [&](const ChangeOfFact& other) {
      return other.to != change.to && other.span.began >= change.span.ended && other.span.ended < span.began;
    });
    if (!own && !later && !undone) (change.to ? possible.yes : possible.no) = true;
  }
  return possible;
}

Possible ReferenceModel::Exists(uint64_t id, ActSpan span) const {
  const Possible exists = In({Fact::kExists, id}, span);
  if (const auto found = posts_.find(id); found != posts_.end()) {
    const PostEntry& post = found->second;
    return exists && !Gone(post.author, span) && (post.bare ? Exists(post.original, span) : Possible(true));
  }
  if (const auto ad = ads_.find(id); ad != ads_.end()) return exists && !Gone(ad->second.owner, span);
  const auto& [from, to] = messages_.at(id);
  return exists && BothThere(from, to, span);
}

Possible ReferenceModel::Visible(size_t viewer, uint64_t id, ActSpan span) const {
  const PostEntry& post = posts_.at(id);
  const Possible seen = Exists(id, span) && !Blocked(viewer, post.author, span);
  if (post.original == 0) return seen;
  const Possible original = Exists(post.original, span);
  const Possible hidden = Blocked(viewer, posts_.at(post.original).author, span);
  return seen && ((original && !hidden) || !original);
}

Possible ReferenceModel::AtHome(size_t viewer, const PostEntry& post, ActSpan span) const {
  if (viewer == post.author) return false;
  const ActSpan on_its_way{post.made.began, std::min(post.delivered, span.ended)};
  const Possible sent = post.mentioned.contains(viewer) ||
                        (Follows(viewer, post.author, on_its_way) && Follows(viewer, post.author, span));
  const Possible kept(Gone(viewer, span).yes, true);  // rule 10
  return sent && kept && Found(post, span);
}

Possible ReferenceModel::Repeats(size_t user, uint64_t original, ActSpan span) const {
  Possible repeats = false;
  for (const auto& [id, post] : posts_) {
    if (post.bare && post.author == user && post.original == original) repeats = repeats || Exists(id, span);
  }
  return repeats;
}

Possible ReferenceModel::MessageVisible(size_t viewer, uint64_t id, ActSpan span) const {
  const auto& [from, to] = messages_.at(id);
  return (viewer == from || viewer == to) && Exists(id, span) && !Blocked(from, to, span);
}

Possible ReferenceModel::IsLastMessage(uint64_t id, ActSpan span) const {
  const auto message = messages_.find(id);
  Possible last = true;
  for (auto other = std::next(message); other != messages_.end(); ++other) {
    if (other->second.Between(message->second.from, message->second.to))
      last = last && !Exists(other->first, span);
  }
  return last;
}

Possible ReferenceModel::Converse(size_t user, size_t other, ActSpan span) const {
  Possible any = false;
  for (const auto& [id, message] : messages_) {
    if (message.Between(user, other)) any = any || MessageVisible(user, id, span);
  }
  return any;
}

ReferenceModel::PostCounts ReferenceModel::CountsOf(uint64_t post, size_t users, ActSpan span) const {
  PostCounts counts;
  const Possible there = Exists(post, span);
  for (size_t user = 0; user < users; ++user) counts.likes.Add(Likes(user, post, span));
  for (const auto& [id, one] : posts_) {
    if (one.reply_to == post) counts.replies.Add(there && Exists(id, span));
    if (one.original == post) counts.reposts.Add(there && Exists(id, span));
  }
  for (const PostEntry& one : refused_) {
    const Possible counted(true, one.made.began < span.ended && span.began < one.made.ended);
    if (one.reply_to == post) counts.replies.Add(there && counted);
    if (one.original == post) counts.reposts.Add(there && counted);
  }
  return counts;
}

ReferenceModel::UserCounts ReferenceModel::CountsOfUser(size_t user, size_t users, ActSpan span) const {
  UserCounts counts;
  for (const auto& [id, post] : posts_) {
    if (post.author != user) continue;
    counts.posts.Add(Exists(id, span));
    for (size_t other = 0; other < users; ++other) counts.likes_received.Add(Likes(other, id, span));
  }
  for (size_t other = 0; other < users; ++other) {
    counts.followers.Add(Follows(other, user, span));
    counts.following.Add(Follows(user, other, span));
  }
  return counts;
}

}  // namespace curtail::social
