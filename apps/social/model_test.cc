// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a model that knows which replies each may get. Now and then one is deleted,
// while others deal with it.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "apps/kit/temp_dir.h"
#include "apps/social/model_users_testing.h"
#include "apps/social/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

constexpr size_t kThreads = 4, kNames = ModelUsers::kNames, kWords = ModelUsers::kWords;
constexpr size_t kMeetings = 12;          // in a round
constexpr size_t kMeetingsOfErasure = 4;  // one in so many
constexpr int kActs = 3;                  // of a thread before each meeting, and as many in it
constexpr int kMostActsOfErasure = 40;    // of a thread while a user is deleted
constexpr uint64_t kActsOfErasure = 48;   // between two users, one in so many

struct HowServed {
  const char* name;
  const char* config;
  bool monolith;
  const char* store = nullptr;  // instead of the files
};
void PrintTo(const HowServed& how, std::ostream* out) { *out << how.name; }

class SocialModel : public testing::TestWithParam<HowServed> {
 protected:
  // Shared, as it ends by its own destructor.
  std::shared_ptr<const StoreProcess> StartStore() const {
    const std::string socket = dir_.File("s");
    if (Store().empty()) return nullptr;
    if (Store() == "redis") return std::make_shared<RedisProcess>(socket);
    return std::make_shared<PostgresqlProcess>(socket, PostgresqlWords(socket, dir_.File("data")));
  }
  static std::string Store() { return GetParam().store == nullptr ? "" : GetParam().store; }

  using Barrier = std::barrier<>;
  struct Meeting {
    size_t erased = kNames;          // the name of the user that is deleted, if any
    std::atomic<bool> over = false;  // the deletion has ended
  };

  // Acts in all threads, each for users of its own. The threads meet: each waits for the others, not for
  // long, as each call has a deadline. Deleted users are replaced. Then users of two threads deal with each
  // other at once, or a user is deleted while all deal with it.
  void ActAtOnce() {
    Rng rng(~seed_);
    std::vector<Meeting> meetings(kMeetings);
    for (size_t i = kMeetingsOfErasure - 1; i < kMeetings; i += kMeetingsOfErasure) {
      meetings[i].erased = rng.Below(kNames);
    }
    Barrier all(static_cast<ptrdiff_t>(kThreads));
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { ActInThread(t, meetings, all); });
    for (std::thread& thread : threads) thread.join();
    seed_ += 1;
  }
  void ActInThread(size_t t, std::vector<Meeting>& meetings, Barrier& all) {
    Rng rng(seed_ * kThreads + t);
    for (size_t i = 0; i < meetings.size(); ++i) {
      for (int j = 0; j < kActs; ++j) Act(rng, UserOf(rng, t));
      all.arrive_and_wait();
      for (size_t name = t; name < kNames; name += kThreads) users_.Replace(name);
      all.arrive_and_wait();
      if (meetings[i].erased < kNames) {
        EraseAmongActs(rng, t, meetings[i], all);
      } else {
        const size_t name = t + kThreads * (i % (kNames / kThreads));
        for (int j = 0; j < kActs; ++j) {
          ActBetween(rng, users_.WithName(name), users_.WithName(name ^ 1));
        }
      }
    }
  }
  size_t UserOf(Rng& rng, size_t thread) const {
    return users_.WithName(thread + kThreads * rng.Below(kNames / kThreads));
  }
  // One thread deletes the user. That whose user it is acts for it. Between processes, those acts come late
  // that need an id: each has found the user when it waits for unique-id, which stands still until the user
  // is gone.
  void EraseAmongActs(Rng& rng, size_t t, Meeting& meeting, Barrier& all) {
    const size_t erased = users_.WithName(meeting.erased), owner = meeting.erased % kThreads;
    const auto act = [&] {
      const size_t user = UserOf(rng, t), other = users_.WithName(rng.Below(kNames));
      if (t != owner) {
        ActAbout(rng, user, erased);
      } else if (other != erased) {
        ActAbout(rng, erased, other);
      }
    };
    if (t == (owner + 1) % kThreads) {
      if (!GetParam().monolith) app_.Stall("unique-id");
      users_.Erase(erased);
      if (!GetParam().monolith) app_.GoOn("unique-id");
      meeting.over = true;
    } else {
      for (int i = 0; i < kMostActsOfErasure && !meeting.over; ++i) act();
    }
    all.arrive_and_wait();
    for (int i = 0; i < kActs; ++i) act();  // late
  }

  void Act(Rng& rng, size_t user) {
    const size_t other = users_.WithName(rng.Below(kNames));
    const uint64_t what = rng.Below(27);
    if (what < 2) return users_.Compose(rng, user);
    if (what < 4) return users_.Refer(rng, user, users_.AnyPost(rng));
    if (what < 5) return users_.Delete(rng, user);
    if (what < 6) return users_.Like(rng, user, users_.AnyPost(rng).first);
    if (what < 7) return users_.DeleteMessage(rng, user);
    if (what < 8) return users_.ReadHome(user);
    if (what < 9) return users_.ReadTimeline(user, user);
    if (what < 10) return users_.ReadTimeline(user, other);
    if (what < 11) return users_.ReadFavorites(user, other);
    if (what < 12) return users_.SearchPosts(user, Word(rng.Below(kWords)));
    if (what < 13) return users_.ListConversations(user);
    if (what < 14) return users_.ReadAbout(user, users_.AnyPost(rng).first);
    if (what < 15) return users_.SearchUsers(user);
    if (what < 16) return users_.ReadStatistics(user, other);
    if (what < 17) return rng.Below(2) == 0 ? users_.Advertise(user) : users_.ReadAds(user);
    if (other != user) ActBetween(rng, user, other);
  }
  void ActBetween(Rng& rng, size_t user, size_t other) {
    if (rng.Below(kActsOfErasure) == 0) return users_.Erase(other);
    const uint64_t what = rng.Below(16);
    if (what < 2) return users_.Block(user, other, true);
    if (what < 5) return users_.Block(user, other, false);
    if (what < 6) return users_.Unfollow(user, other);
    if (what < 7) return users_.ReadConversation(user, other);
    if (what < 10) return users_.Send(user, other);
    if (what < 11) return users_.ReadFollowing(other, /*known=*/false);
    users_.Follow(user, other);
  }
  // One of the two is deleted.
  void ActAbout(Rng& rng, size_t user, size_t other) {
    const uint64_t what = rng.Below(20);
    if (what < 3) return users_.Follow(user, other);
    if (what < 4) return users_.Block(user, other, true);
    if (what < 6) return users_.Block(user, other, false);
    if (what < 9) return users_.Send(user, other);
    if (what < 10) return users_.Compose(rng, user, other);
    if (what < 11) return users_.Refer(rng, user, users_.PostOf(rng, other));
    if (what < 13) return users_.Like(rng, user, users_.PostOf(rng, other).first);
    if (what < 14) return users_.ReadAbout(user, users_.PostOf(rng, other).first);
    if (what < 15) return users_.ReadTimeline(user, other);
    if (what < 16) return users_.ReadConversation(user, other);
    if (what < 17) return users_.ListConversations(user);
    if (what < 18) return users_.ReadStatistics(user, other);
    if (what < 19) return rng.Below(2) == 0 ? users_.Advertise(user) : users_.ReadAds(user);
    users_.LogIn(other);
  }
  static std::string Word(size_t number) { return Join("word", number); }

  // Judges the replies that all had, then those that each gets once the queues are empty.
  void ExpectAsModel() {
    app_.AwaitQueue();
    app_.AwaitIndex();
    users_.model().Settle();
    for (size_t name = 0; name < kNames; ++name) {
      users_.ReadFollowing(users_.WithName(name), /*known=*/true);
    }
    users_.Judge();
    for (size_t name = 0; name < kNames; ++name) {
      const size_t viewer = users_.WithName(name);
      users_.ReadHome(viewer);
      users_.SearchPosts(viewer, Word(name % kWords));
      users_.ListConversations(viewer);
      users_.SearchUsers(viewer);
      users_.ReadAds(viewer);
      for (size_t other = 0; other < kNames; ++other) {
        const size_t of = users_.WithName(other);
        users_.ReadTimeline(viewer, of);
        users_.ReadFavorites(viewer, of);
        users_.ReadStatistics(viewer, of);
        if (other > name) users_.ReadConversation(viewer, of);
      }
      if (name % kThreads != seed_ % kThreads) continue;  // all of them takes long
      for (const auto& [id, post] : users_.model().posts()) users_.ReadAbout(viewer, id);
    }
    users_.Judge();
    users_.ExpectNothingLeft();
  }

  uint64_t seed_ = TestSeed();
  apps::TempDir dir_;
  const std::shared_ptr<const StoreProcess> store_ = StartStore();
  SocialDeployment app_{GetParam().config, GetParam().monolith,
                        store_ != nullptr
                            ? std::vector<std::string>{"--store", Join(Store(), "=", store_->address())}
                            : std::vector<std::string>()};
  ModelUsers users_{&app_};
};

// Each kind of waiting and each store once; without a sanitizer also in processes of their own, and in a long run each store
// under several.
std::vector<HowServed> Served() {
  std::vector<HowServed> served{{"SDB", "SDB1-16", true},
                                {"FDBPostgresql", "FDB1-2", true, "postgresql"},
                                {"ADBRedis", "ADB1-2-2", true, "redis"}};
  if (!kSanitized) served.push_back({"FDB", "FDB1-2", false});
  if (Repeats(0, 1) > 0) {
    served.insert(served.end(), {{"ADB", "ADB1-2-2", true},
                                 {"ADBPostgresql", "ADB1-2-2", true, "postgresql"},
                                 {"FDBRedis", "FDB1-2", false, "redis"}});
  }
  return served;
}
INSTANTIATE_TEST_SUITE_P(Models, SocialModel, testing::ValuesIn(Served()),
                         [](const auto& info) { return std::string(info.param.name); });

// Property: whatever many users do at once, each reply is one that some order of the acts explains. Once the
// queues are empty, each sees exactly what is left. Of users whose deletion was acknowledged nothing is seen
// from then on, and no service keeps anything.
TEST_P(SocialModel, EachSeesWhatItMaySeeStress) {
  for (int round = 0; round < Repeats(2, 6) && !HasFailure(); ++round) {
    ActAtOnce();
    ExpectAsModel();
  }
}

}  // namespace
}  // namespace curtail::social
