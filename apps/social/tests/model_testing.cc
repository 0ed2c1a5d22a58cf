// SPDX-License-Identifier: Apache-2.0
#include "apps/social/tests/model_testing.h"

#include <algorithm>
#include <iterator>

#include "curtail/base/strings.h"

namespace curtail::social {

void ReferenceModel::Add(uint64_t id, PostEntry post, const Operation& by) {
  post.made = by.span;
  {
    const std::lock_guard lock(mu_);
    if (by.ok()) ids_.emplace_back(id, by.span);
    if (by.code() == absl::StatusCode::kUnauthenticated) refused_.push_back(post);  // rule S7
  }
  posts_.Add(id, std::move(post), by);
}

void ReferenceModel::Add(uint64_t id, MessageEntry message, const Operation& by) {
  messages_.Add(id, message, by);
  const std::lock_guard lock(mu_);
  if (by.ok()) ids_.emplace_back(id, by.span);
}

void ReferenceModel::Add(uint64_t id, AdEntry ad, const Operation& by) {
  ads_.Add(id, ad, by);
  const std::lock_guard lock(mu_);
  if (by.ok()) ids_.emplace_back(id, by.span);
}

void ReferenceModel::Follow(size_t from, size_t to, const Operation& by) {
  if (by.code() == absl::StatusCode::kPermissionDenied) {
    facts_.Set({Fact::kFollows, from, to}, true, by.span);
    facts_.Set({Fact::kFollows, from, to}, false, {by.span.ended, by.span.ended});
    return;
  }
  facts_.Set({Fact::kFollows, from, to}, true, by);
  if (by.ok()) {
    const std::lock_guard lock(mu_);
    granted_.push_back({from, to, by.span});
  }
}

void ReferenceModel::Block(size_t from, size_t to, bool block, const Operation& by) {
  facts_.Set({Fact::kBlocks, from, to}, block, by);
  if (!block) return;
  facts_.Set({Fact::kFollows, from, to}, false, by);
  facts_.Set({Fact::kFollows, to, from}, false, by);
}

std::string ReferenceModel::MisplacedIds() const {
  for (const auto& [id, span] : ids_) {
    for (const auto& [later, after] : ids_) {
      if (span.ended < after.began && later <= id) return Join(later, " came after ", id);
    }
  }
  return {};
}

void ReferenceModel::Settle(uint64_t step) {
  settled_.push_back(step);
  for (const auto& [from, to, span] : granted_) {
    const std::vector<apps::Change> blocks = facts_.ChangesOf({Fact::kBlocks, to, from});
    for (const apps::Change& block : blocks) {
      const bool overlaps = block.span.began < span.ended && span.began < block.span.ended;
      const bool undone = std::ranges::any_of(blocks, [&](const apps::Change& other) {
        return !other.to && other.span.began > block.span.began && other.span.began < span.ended;
      });
      if (!block.to || !overlaps || undone) continue;
      // After the follow for certain, and no sooner than the Block otherwise.
      facts_.Set({Fact::kFollows, from, to}, false, {span.ended, std::max(span.ended, block.span.ended)});
    }
  }
  granted_.clear();
}

uint64_t ReferenceModel::Delivered(const PostEntry& post) const {
  const auto next = std::ranges::upper_bound(settled_, post.made.ended);
  return next == settled_.end() ? Span::kOpen : *next;
}

Possible ReferenceModel::Exists(uint64_t id, Span span) const {
  if (const auto found = posts().find(id); found != posts().end()) {
    const PostEntry& post = found->second;
    const Possible original = post.bare ? Exists(post.original, span) : true;
    return posts_.Exists(id, span) && !Gone(post.author, span) && original;
  }
  if (const auto ad = ads().find(id); ad != ads().end())
    return ads_.Exists(id, span) && !Gone(ad->second.owner, span);
  const auto& [from, to] = messages().at(id);
  return messages_.Exists(id, span) && BothThere(from, to, span);
}

Possible ReferenceModel::Visible(size_t viewer, uint64_t id, Span span) const {
  const PostEntry& post = posts().at(id);
  const Possible seen = Exists(id, span) && !Blocked(viewer, post.author, span);
  if (post.original == 0) return seen;
  const Possible original = Exists(post.original, span);
  const Possible hidden = Blocked(viewer, posts().at(post.original).author, span);
  return seen && ((original && !hidden) || !original);
}

Possible ReferenceModel::AtHome(size_t viewer, const PostEntry& post, Span span) const {
  if (viewer == post.author) return false;
  const Span on_its_way{post.made.began, std::min(Delivered(post), span.ended)};
  const Possible sent = post.mentioned.contains(viewer) ||
                        (Follows(viewer, post.author, on_its_way) && Follows(viewer, post.author, span));
  const Possible kept(Gone(viewer, span).yes, true);  // rule S7
  return sent && kept && Found(post, span);
}

Possible ReferenceModel::Repeats(size_t user, uint64_t original, Span span) const {
  Possible repeats = false;
  for (const auto& [id, post] : posts()) {
    if (post.bare && post.author == user && post.original == original) repeats = repeats || Exists(id, span);
  }
  return repeats;
}

Possible ReferenceModel::MessageVisible(size_t viewer, uint64_t id, Span span) const {
  const auto& [from, to] = messages().at(id);
  return (viewer == from || viewer == to) && Exists(id, span) && !Blocked(from, to, span);
}

Possible ReferenceModel::IsLastMessage(uint64_t id, Span span) const {
  const auto message = messages().find(id);
  Possible last = true;
  for (auto other = std::next(message); other != messages().end(); ++other) {
    if (other->second.Between(message->second.from, message->second.to))
      last = last && !Exists(other->first, span);
  }
  return last;
}

Possible ReferenceModel::Converse(size_t user, size_t other, Span span) const {
  Possible any = false;
  for (const auto& [id, message] : messages()) {
    if (message.Between(user, other)) any = any || MessageVisible(user, id, span);
  }
  return any;
}

ReferenceModel::PostCounts ReferenceModel::CountsOf(uint64_t post, size_t users, Span span) const {
  PostCounts counts;
  const Possible there = Exists(post, span);
  for (size_t user = 0; user < users; ++user) counts.likes.Add(Likes(user, post, span));
  for (const auto& [id, one] : posts()) {
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

ReferenceModel::UserCounts ReferenceModel::CountsOfUser(size_t user, size_t users, Span span) const {
  UserCounts counts;
  for (const auto& [id, post] : posts()) {
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
