// SPDX-License-Identifier: Apache-2.0
//
// model_users_testing.h - users of the social network who have each reply judged by a ReferenceModel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/social/data.h"
#include "apps/social/tests/model_testing.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/rng.h"

namespace curtail::social {

// ModelUsers act by the numbers of the model. A name is a number, too, and has one user at a time: when that
// is deleted, another registers by it.
//
// From Follow() to Erase() the methods are acts. They may run at once, but not two of one user. Erase() is no
// act of the user that it deletes. A deleted user may go on to act. Failures are those of the test.
class ModelUsers {
 public:
  static constexpr size_t kNames = 8, kWords = 3;
  using Chosen = std::pair<uint64_t, ReferenceModel::PostEntry>;  // a post; 0: there is none

  // Registers a user a name. `app` outlives it.
  explicit ModelUsers(SocialDeployment* app);

  // While no user acts. Registers another user by the name if its user was deleted. Thread-safe for names
  // that differ.
  void Replace(size_t name);
  size_t WithName(size_t name) const { return holders_[name]; }

  // One that there was when this began; it may be deleted.
  Chosen AnyPost(Rng& rng) const;
  Chosen PostOf(Rng& rng, size_t author) const;

  void Follow(size_t user, size_t other);
  void Unfollow(size_t user, size_t other);
  void Block(size_t user, size_t other, bool block);
  // `known`: no act is in progress, so the reply settles what the model cannot know.
  void ReadFollowing(size_t of, bool known);
  // Mentions some users, and `other` if it is given.
  void Compose(Rng& rng, size_t user, std::optional<size_t> other = std::nullopt);
  void Refer(Rng& rng, size_t user, const Chosen& to);
  void Delete(Rng& rng, size_t user);
  void Like(Rng& rng, size_t user, uint64_t post);
  void ReadHome(size_t viewer);
  void ReadTimeline(size_t viewer, size_t of);
  void ReadFavorites(size_t viewer, size_t of);
  void SearchPosts(size_t viewer, const std::string& word);
  // The post, all that refers to it, and the users that like it.
  void ReadAbout(size_t viewer, uint64_t post);
  void Send(size_t user, size_t other);
  void ReadConversation(size_t user, size_t other);
  void ListConversations(size_t user);
  // Mostly an own one.
  void DeleteMessage(Rng& rng, size_t user);
  void SearchUsers(size_t viewer);
  void ReadStatistics(size_t viewer, size_t of);
  void Advertise(size_t user);
  void ReadAds(size_t viewer);
  void LogIn(size_t user);
  void Erase(size_t user);

  // While no user acts. Judges the replies that all had since; then what the services keep of deleted users.
  void Judge();
  void ExpectNothingLeft();
  // While no user acts, and nothing is left of deleted posts. What is counted of a user and of its posts is what those
  // lists have that nobody in particular reads.
  void Recount(size_t of);
  // While no user acts, and the queues are empty.
  void Settle() { model_.Settle(history_.Step()); }
  ReferenceModel& model() { return model_; }

 private:
  struct User {
    size_t name;
    Session session;
  };
  using Holders = std::array<size_t, kNames>;  // the users that have the names
  static std::string NameText(size_t name);
  std::string Name(size_t user) const { return NameText(users_[user].name); }
  std::string Text(size_t user) const;
  const Session& As(size_t user) const { return users_[user].session; }
  void Register(size_t name);

  void ExpectSeen(bool seen, size_t viewer, uint64_t post, Span span) const;
  // As the reply to an act says: of the user that writes, of the one that the request names, or of both.
  void ExpectWriter(const Operation& told, size_t user) const;
  void ExpectNamed(const Operation& told, size_t other) const;
  void ExpectBoth(const Operation& told, size_t user, size_t other) const;
  template <class Formula>
  void ExpectUsers(std::vector<std::string> names, const Holders& holders, Formula formula,
                   const std::string& what, Span span) const;
  template <class Read, class Shown, class Formula>
  void ReadPosts(size_t viewer, const std::string& what, Read read, Shown shown, Formula formula);
  template <class List>
  void ReadReferences(size_t viewer, uint64_t to, const std::string& what, List list,
                      uint64_t ReferenceModel::PostEntry::* of);
  void ReadPost(size_t viewer, uint64_t id);
  // The likes that it has.
  uint64_t RecountPost(uint64_t id);

  SocialDeployment& app_;
  apps::History history_;
  ReferenceModel model_;
  std::mutex mu_;
  // While users act, none changes these. Otherwise `users_` is guarded by mu_; each holder is its thread's.
  std::vector<User> users_;
  Holders holders_{};
};

}  // namespace curtail::social
