// SPDX-License-Identifier: Apache-2.0
//
// guests_testing.h - users who come and are deleted, while services and stores fail.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/facts.h"
#include "apps/kit/testing/history.h"
#include "apps/social/data.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/rng.h"

namespace curtail::social {

struct Authored {
  size_t author = 0;
  std::set<size_t> mentioned = {};
};
using AuthoredPosts = apps::Items<Authored>;

// Guests are registered one after the other, and do something about users that stay, the hosts. Then each is
// deleted: a deletion that fails is repeated until it is acknowledged. Failures are those of the test.
class Guests {
 public:
  // Guests are the authors from `first` on. `is_fault(status)`: a call may end so while something fails. `app`,
  // `history` and `posts` outlive it.
  Guests(SocialDeployment* app, apps::History* history, AuthoredPosts* posts, size_t first,
         std::function<bool(const absl::Status&)> is_fault)
      : app_(*app), history_(*history), posts_(*posts), is_fault_(std::move(is_fault)), next_(first) {}

  // Comes first.
  void Invite(std::vector<Session> hosts) { hosts_ = std::move(hosts); }
  // The life of one guest, for one thread. Ends in the middle once `actors` rest.
  void LiveOne(Rng& rng, const apps::Actors& actors);
  // An act of a host about the guest that came last, or of that guest; for another thread.
  void ActOne(Rng& rng);
  // Until one is being deleted, or one more is gone; any thread. False: that took too long.
  bool AwaitLeaving();
  bool AwaitGone();
  // Once nothing fails, and no other call is in progress: ends all deletions, and expects that nothing is
  // left.
  void SeeOff();

 private:
  struct Guest {
    size_t author = 0;
    std::string name;
    Session session;
    bool gone = false;  // its deletion was acknowledged
  };

  const Session& AnyHost(Rng& rng) const { return hosts_[rng.Below(hosts_.size())]; }
  // An act that may be late ended: with `code`, or else as while something fails. Once the guest is gone, it
  // was late.
  void ExpectLate(const Guest& guest, const absl::Status& status, absl::StatusCode code) const;
  void ActAsHost(Rng& rng, const Guest& guest);
  void ActAsGuest(Rng& rng, const Guest& guest);
  void ComposeOne(Rng& rng, const Guest& guest);
  // True: it was acknowledged, then or, `again`, by a call before.
  bool TryDelete(const Guest& guest, bool again) const;
  void SetGone(Guest* guest);
  void ExpectGone(Rng& rng, const Guest& guest) const;
  std::vector<uint64_t> PostsOf(const Guest& guest) const;

  SocialDeployment& app_;
  apps::History& history_;
  AuthoredPosts& posts_;
  const std::function<bool(const absl::Status&)> is_fault_;
  std::vector<Session> hosts_;
  // Of the thread that calls LiveOne().
  size_t next_;     // author
  int failed_ = 0;  // calls of DeleteUser
  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool leaving_ = false;  // the last one is being deleted
  size_t gone_ = 0;
  std::vector<Guest> guests_;
};

}  // namespace curtail::social
