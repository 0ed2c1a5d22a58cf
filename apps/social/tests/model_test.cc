// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a model that knows which replies each may get. Now and then one is deleted,
// while others deal with it, the wall clock is set, or a service stands still.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/preload.h"
#include "apps/social/tests/model_users_testing.h"
#include "apps/social/tests/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

constexpr size_t kThreads = 4, kNames = ModelUsers::kNames, kWords = ModelUsers::kWords;
constexpr size_t kMeetings = 12;         // in a round
constexpr int kStepSeconds = 5;          // of the clock
constexpr int kActs = 3;                 // of a thread before each meeting, and as many in it
constexpr int kMostActsOfErasure = 40;   // of a thread while a user is deleted
constexpr uint64_t kActsOfErasure = 48;  // between two users, one in so many

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
  // Of a meeting, by its number.
  enum Kind : uint8_t { kOfTwo, kStep, kStall, kErasure, kKinds };
  struct Meeting {
    size_t name = 0;                 // kErasure: of the user that is deleted
    std::atomic<bool> over = false;  // the deletion has ended
  };

  // Acts in all threads, each for users of its own. The threads meet: each waits for the others, not for
  // long, as each call has a deadline. Deleted users are replaced. Then users of two threads deal with each
  // other at once, beside what else the meeting is for.
  void ActAtOnce() {
    Rng rng(~seed_);
    std::vector<Meeting> meetings(kMeetings);
    for (Meeting& meeting : meetings) meeting.name = rng.Below(kNames);
    Barrier all(static_cast<ptrdiff_t>(kThreads));
    // A process that the first thread starts ends with the test's.
    apps::AllAtOnce(kThreads, seed_, [&](Rng& own, size_t t) { ActInThread(own, t, meetings, all); });
    seed_ += 1;
  }
  void ActInThread(Rng& rng, size_t t, std::vector<Meeting>& meetings, Barrier& all) {
    for (size_t i = 0; i < meetings.size(); ++i) {
      for (int j = 0; j < kActs; ++j) Act(rng, UserOf(rng, t));
      all.arrive_and_wait();
      for (size_t name = t; name < kNames; name += kThreads) users_.Replace(name);
      all.arrive_and_wait();
      const size_t name = t + kThreads * (i % (kNames / kThreads));
      switch (i % kKinds) {
        case kStep:
          StepAmongActs(rng, t, all);
          break;
        case kStall:
          StallAmongActs(rng, t, all);
          break;
        case kErasure:
          EraseAmongActs(rng, t, meetings[i], all);
          break;
        default:
          for (int j = 0; j < kActs; ++j) ActBetween(rng, users_.WithName(name), users_.WithName(name ^ 1));
      }
    }
  }
  // The clock goes back. Between processes that which gives ids begins again then. Later the clock goes on.
  void StepAmongActs(Rng& rng, size_t t, Barrier& all) {
    if (t == 0) {
      clock_.SetAhead(-kStepSeconds);
      if (!GetParam().monolith) app_.Start("unique-id");
    }
    all.arrive_and_wait();
    for (int i = 0; i < kActs; ++i) Act(rng, UserOf(rng, t));
    if (t == 0) clock_.SetAhead(rng.Below(2) == 0 ? 0 : kStepSeconds);
    for (int i = 0; i < kActs; ++i) Act(rng, UserOf(rng, t));
  }
  // Between processes one stands still while a thread acts without it. The others wait for it, or do without:
  // they delete no posts, whose likes count until it goes on.
  void StallAmongActs(Rng& rng, size_t t, Barrier& all) {
    static constexpr const char* kOptional[] = {"favorite", "repost-reply"};
    static constexpr const char* kNeeded[] = {
        "search", "home-timeline", "user-timeline", "write-home-timeline", "user-statistics", "text"};
    if (GetParam().monolith) return;
    const size_t user = UserOf(rng, t), other = users_.WithName(rng.Below(kNames));
    if (t == 0) {
      const bool optional = rng.Below(2) == 0;
      const char* const service =
          optional ? kOptional[rng.Below(std::size(kOptional))] : kNeeded[rng.Below(std::size(kNeeded))];
      app_.Stall(service);
      if (optional) users_.ReadTimeline(user, other);
      users_.LogIn(user);
      app_.GoOn(service);
    } else {
      for (int i = 0; i < kActs && other != user; ++i) ActAbout(rng, user, other);
    }
    all.arrive_and_wait();
  }
  size_t UserOf(Rng& rng, size_t thread) const {
    return users_.WithName(thread + kThreads * rng.Below(kNames / kThreads));
  }
  // One thread deletes the user. That whose user it is acts for it. Between processes, those acts come late
  // that need an id: each has found the user when it waits for unique-id, which stands still until the user
  // is gone.
  void EraseAmongActs(Rng& rng, size_t t, Meeting& meeting, Barrier& all) {
    const size_t erased = users_.WithName(meeting.name), owner = meeting.name % kThreads;
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
    app_.AwaitFinished();
    users_.Settle();
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
    for (size_t name = 0; name < kNames; ++name) users_.Recount(users_.WithName(name));
    users_.ExpectNothingLeft();
  }

  uint64_t seed_ = TestSeed();
  TempDir dir_;
  const apps::SetClock clock_;
  const std::shared_ptr<const StoreProcess> store_ = StartStore();
  SocialDeployment app_{GetParam().config, GetParam().monolith,
                        store_ != nullptr
                            ? std::vector<std::string>{"--store", Join(Store(), "=", store_->address())}
                            : std::vector<std::string>(),
                        clock_.Words()};
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
