// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a ledger of what each was told, while services and stores die, stand still and
// have no room to write.
//
// Property: once the queue is empty, a post that was acknowledged and not deleted is in its author's timeline
// once, and once in the home of each who follows or is mentioned. A post whose deletion was acknowledged is
// nowhere, meanwhile neither. A refused post may be there, then in its author's timeline too, and never
// twice. A user whose block was acknowledged sees nothing of the other, until it has tried to unblock. Of a
// user whose deletion was acknowledged nothing is seen from then on, whatever comes late, and its name is
// free. Once a fault has ended, posts and deletions are acknowledged again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <thread>

#include "apps/social/data.h"
#include "apps/social/guests_testing.h"
#include "apps/social/ledger_testing.h"
#include "apps/social/preload_testing.h"
#include "apps/social/social_testing.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/store_testing.h"

namespace curtail::social {
namespace {

constexpr size_t kAuthors = 6, kActors = 3;
// Of a client. Short, so that a service that stands still does not hold up the test.
constexpr Nanos kPatience = std::chrono::seconds(1);
constexpr int kActsInFault = 8, kPostsBetween = 4;

struct Kept {
  const char* store;   // files, redis or postgresql
  const char* config;  // of all services
};
void PrintTo(const Kept& kept, std::ostream* out) { *out << kept.store << " " << kept.config; }

struct Fault {
  std::string name;
  std::function<void()> strike, mend;
  bool readable = false, refuses = false;  // timelines can be read meanwhile; some post is refused
};

class SocialFaults : public testing::TestWithParam<Kept> {
 protected:
  SocialFaults() {
    for (size_t u = 0; u < kAuthors; ++u) users_.push_back(app_.Register(Called(u)));
    for (size_t u = 0; u < kAuthors; ++u) {
      for (size_t other = 0; other < kAuthors; ++other) {
        if (!Follows(u, other)) continue;
        EXPECT_TRUE(app_.Follow(users_[u], Called(other)).ok());
      }
      EXPECT_TRUE(app_.Follow(watcher_, Called(u)).ok());
    }
    guests_.Invite(users_);
  }
  std::unique_ptr<RedisProcess> StartRedis() const {
    if (std::string_view(GetParam().store) != "redis") return nullptr;
    return std::make_unique<RedisProcess>(
        dir_.File("r"),
        std::vector<std::string>{"--appendonly", "yes", "--appendfsync", "always", "--dir", dir_.File(".")},
        disk_.Words());
  }
  std::unique_ptr<PostgresqlProcess> StartPostgresql() const {
    if (std::string_view(GetParam().store) != "postgresql") return nullptr;
    std::vector<std::string> words = disk_.Words();
    std::ranges::copy(PostgresqlWords(dir_.File("s"), dir_.File("data")), std::back_inserter(words));
    return std::make_unique<PostgresqlProcess>(dir_.File("s"), words);
  }
  std::vector<std::string> StoreFlags() const {
    std::vector<std::string> flags = {"--store", "post-cache=" + cache_.address()};
    if (redis_ != nullptr) flags.insert(flags.end(), {"--store", "redis=" + redis_->address()});
    if (postgresql_ != nullptr)
      flags.insert(flags.end(), {"--store", "postgresql=" + postgresql_->address()});
    return flags;
  }
  static std::string Called(size_t user) { return Join("user_", user); }
  static bool Follows(size_t user, size_t author) {
    return user != author && (author + kAuthors - user) % kAuthors <= kAuthors / 2;
  }

  // Has each thread act for users of its own until Rest().
  void BeginActs() {
    for (size_t t = 0; t < kActors; ++t) {
      threads_.emplace_back([this, t] {
        Rng rng(seed_ * kActors + t);
        while (!resting_.load(std::memory_order_relaxed)) {
          acts_.Did(Act(rng, t + kActors * rng.Below(kAuthors / kActors)));
        }
      });
    }
  }
  // Has users come and be deleted, while others deal with them.
  void BeginGuests() {
    threads_.emplace_back([this] {
      Rng rng(seed_ + 1);
      while (!resting_.load(std::memory_order_relaxed)) guests_.LiveOne(rng, resting_);
    });
    threads_.emplace_back([this] {
      Rng rng(~seed_ - 1);
      while (!resting_.load(std::memory_order_relaxed)) guests_.ActOne(rng);
    });
  }
  // Has a user block authors and unblock them, and read what is left.
  void BeginWatching() {
    threads_.emplace_back([this] {
      Rng rng(~seed_);
      while (!resting_.load(std::memory_order_relaxed)) Watch(rng, rng.Below(kAuthors));
    });
  }
  void Watch(Rng& rng, size_t author) {
    absl::Status status;
    if (!blocked_.contains(author)) {
      status = app_.Block(watcher_, Called(author));
      if (status.ok()) blocked_.insert(author);
    } else if (rng.Below(4) == 0) {
      blocked_.erase(author);
      status = app_.Unblock(watcher_, Called(author));
      if (status.ok()) status = app_.Follow(watcher_, Called(author));
    }
    if (!status.ok() && !absl::IsPermissionDenied(status)) ExpectFault(status);
    ReadAsWatcher(author);
  }
  void ReadAsWatcher(size_t author) {
    std::vector<uint64_t> home, timeline;
    if (const absl::Status status = app_.Home(watcher_, &home); !status.ok()) ExpectFault(status);
    if (const absl::Status status = app_.Timeline(watcher_, Called(author), &timeline); !status.ok())
      ExpectFault(status);
    watched_ += home.size() + timeline.size();
    const std::map<uint64_t, Ledger::Entry> posts = ledger_.Posts();
    home.insert(home.end(), timeline.begin(), timeline.end());
    for (const uint64_t id : home) {
      const auto post = posts.find(id);
      if (post == posts.end()) continue;  // not acknowledged
      EXPECT_FALSE(blocked_.contains(post->second.author)) << id << " of " << Called(post->second.author);
    }
  }
  void Rest() {
    resting_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }
  Acts::Kind Act(Rng& rng, size_t user) {
    const uint64_t what = rng.Below(10);
    if (what < 4) return ComposeOne(rng, user);
    if (what < 6) {
      DeleteOne(rng, user);
    } else if (what < 8) {
      ReadOwn(user);
    } else {
      ReadHome(user);
    }
    return Acts::Kind::kOther;
  }
  // A part is away, or PostgreSQL has no room.
  static bool IsOfFault(const absl::Status& status) {
    const bool no_room =
        absl::IsResourceExhausted(status) && std::string_view(GetParam().store) == "postgresql";
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || no_room;
  }
  static void ExpectFault(const absl::Status& status) { EXPECT_TRUE(IsOfFault(status)) << status; }
  Acts::Kind ComposeOne(Rng& rng, size_t user) {
    std::set<size_t> mentioned;
    std::string text = Join("post ", next_text_.fetch_add(1, std::memory_order_relaxed));
    while (rng.Below(3) == 0) {
      const size_t other = rng.Below(kAuthors);
      if (mentioned.insert(other).second) text += " @" + Called(other);
    }
    ComposeRequest request;
    request.set_text(text);
    Post post;
    const absl::Status status = app_.Compose(users_[user], request, &post);
    if (status.ok()) {
      ledger_.Keep(post.id(), {.author = user, .mentioned = mentioned});
      return Acts::Kind::kPosted;
    }
    ExpectFault(status);
    ledger_.Refuse(user, text);
    return Acts::Kind::kRefused;
  }
  void DeleteOne(Rng& rng, size_t user) {
    using enum Ledger::Fate;
    const auto own = [&](const Ledger::Entry& entry) { return entry.author == user; };
    const Ledger::Fate fate = rng.Below(4) == 0 ? kInDoubt : kKept;
    const std::vector<uint64_t> posts = ledger_.Those(fate, own);
    if (posts.empty()) return;
    const uint64_t post = posts[rng.Below(posts.size())];
    const absl::Status status = app_.Delete(users_[user], post);
    const bool gone = status.ok() || (fate == kInDoubt && absl::IsNotFound(status));
    if (!gone) ExpectFault(status);
    ledger_.Set(post, gone ? kDeleted : kInDoubt);
  }
  static void ExpectOnceAndNone(const std::vector<uint64_t>& ids, const std::vector<uint64_t>& deleted) {
    EXPECT_EQ(std::ranges::adjacent_find(ids, std::less_equal<>()), ids.end()) << "twice, or in no order";
    for (const uint64_t id : deleted) EXPECT_EQ(std::ranges::find(ids, id), ids.end()) << id << " is deleted";
  }
  static void ExpectAll(const std::vector<uint64_t>& ids, const std::vector<uint64_t>& kept) {
    for (const uint64_t id : kept) EXPECT_NE(std::ranges::find(ids, id), ids.end()) << id << " is lost";
  }
  void ReadOwn(size_t user) {
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Timeline(users_[user], Called(user), &ids);
    if (!status.ok()) return ExpectFault(status);
    ExpectAll(ids, KeptOf(user));
    ExpectOnceAndNone(ids, ledger_.Those(Ledger::Fate::kDeleted,
                                         [&](const Ledger::Entry& entry) { return entry.author == user; }));
  }
  std::vector<uint64_t> KeptOf(size_t author) const {
    return ledger_.Those(Ledger::Fate::kKept, [&](const Ledger::Entry& one) { return one.author == author; });
  }
  void ReadHome(size_t user) {
    const std::vector<uint64_t> deleted = ledger_.Deleted();
    std::vector<uint64_t> ids;
    const absl::Status status = app_.Home(users_[user], &ids);
    if (!status.ok()) return ExpectFault(status);
    ExpectOnceAndNone(ids, deleted);
  }

  Fault KillService(const std::string& service) {
    return {.name = service + " is killed",
            .strike = [this, service] { app_.Kill(service); },
            .mend = [this, service] { app_.Start(service); }};
  }
  Fault FillDisk(const std::string& service) {
    return {.name = service + " has no room",
            // The process before drains and leaves no log, so what is written makes the log longer.
            .strike = [this, service] { app_.Start(service, kSharedBytes + kRoomBytes); },
            .mend =
                [this, service] {
                  app_.Kill(service);
                  app_.Start(service);
                },
            .readable = true,
            .refuses = service != "home-timeline"};  // it is told behind the caller's back
  }
  // It ends at the first write that it cannot keep, before it answers. Started again, it does so again.
  Fault FillDiskOfRedis() {
    return {.name = "redis has no room",
            .strike =
                [this] {
                  disk_.Fill();
                  redis_->AwaitEnd();
                  (void)redis_->TryStart();
                },
            .mend =
                [this] {
                  disk_.Free();
                  redis_->Kill();
                  redis_->Start();
                },
            .refuses = true};
  }
  Fault FillDiskOfPostgresql() {
    return {.name = "postgresql has no room",
            .strike = [this] { disk_.Fill(); },
            .mend = [this] { disk_.Free(); },
            .readable = true,
            .refuses = true};
  }
  // In random order.
  std::vector<Fault> Faults(Rng& rng) {
    std::vector<Fault> faults;
    for (const char* service : {"post-storage", "user-timeline", "home-timeline", "write-home-timeline"}) {
      faults.push_back(KillService(service));
    }
    constexpr const char* kForgetful[] = {"favorite", "direct-message", "social-graph", "block-user"};
    constexpr const char* kOthers[] = {"front-end", "compose-post", "read-post", "unique-id",
                                       "search",    "repost-reply", "ads",       "user"};
    faults.push_back(KillService(kForgetful[rng.Below(std::size(kForgetful))]));
    faults.push_back(KillService(kOthers[rng.Below(std::size(kOthers))]));
    faults.push_back({.name = "write-home-timeline stands still",
                      .strike = [this] { app_.Stall("write-home-timeline"); },
                      .mend = [this] { app_.GoOn("write-home-timeline"); }});
    faults.push_back({.name = "the cache is killed",
                      .strike = [this] { cache_.Kill(); },
                      .mend = [this] { cache_.Start(); }});
    if (redis_ != nullptr) {
      faults.push_back({.name = "redis is killed",
                        .strike = [this] { redis_->Kill(); },
                        .mend = [this] { redis_->Start(); }});
      faults.push_back(FillDiskOfRedis());
    } else if (postgresql_ != nullptr) {
      faults.push_back({.name = "postgresql is killed",
                        .strike = [this] { postgresql_->Kill(); },
                        .mend = [this] { postgresql_->Start(); }});
      faults.push_back(FillDiskOfPostgresql());
    } else {
      for (const char* service : {"post-storage", "user-timeline", "home-timeline", "write-home-timeline"}) {
        faults.push_back(FillDisk(service));
      }
    }
    for (size_t i = faults.size(); i > 1; --i) std::swap(faults[i - 1], faults[rng.Below(i)]);
    return faults;
  }
  void Endure(Rng& rng, const Fault& fault) {
    std::printf("%s\n", fault.name.c_str());
    const testing::ScopedTrace trace(__FILE__, __LINE__, fault.name);
    EXPECT_TRUE(guests_.AwaitLeaving() && acts_.Await(static_cast<int>(rng.Below(kActsInFault))));
    const int refused = acts_.refused();
    fault.strike();
    EXPECT_TRUE(acts_.Await(kActsInFault));
    EXPECT_TRUE(!fault.refuses || acts_.AwaitRefusedAfter(refused));
    if (fault.readable) {
      std::vector<uint64_t> ids;
      for (const Session& user : users_) {
        if (!Patiently([&] { return app_.Home(user, &ids); }).ok()) break;
      }
    }
    fault.mend();
    EXPECT_TRUE(acts_.AwaitPosted(kPostsBetween)) << "no post was acknowledged since";
    EXPECT_TRUE(guests_.AwaitGone()) << "no deletion of a user was acknowledged since";
  }

  // Until it is so, or it has an error that is no fault's.
  template <class Call>
  absl::Status Patiently(Call call) const {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    absl::Status status;
    do {
      status = call();
    } while (IsOfFault(status) && !deadline.Expired());
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    return status;
  }
  // A deletion that failed half way can be repeated.
  void RepeatDeletions() {
    for (const auto& [id, entry] : ledger_.Posts()) {
      if (entry.fate != Ledger::Fate::kInDoubt) continue;
      const Session& author = users_[entry.author];
      const uint64_t post = id;
      (void)Patiently([&] { return app_.Delete(author, post); });
      ledger_.Set(post, Ledger::Fate::kDeleted);
    }
  }
  struct Lists {
    std::vector<std::vector<uint64_t>> timelines, homes;
  };
  Lists ReadAll() {
    Lists all{.timelines = std::vector<std::vector<uint64_t>>(kAuthors),
              .homes = std::vector<std::vector<uint64_t>>(kAuthors)};
    for (size_t u = 0; u < kAuthors; ++u) {
      (void)Patiently([&] { return app_.Home(users_[u], &all.homes[u]); });
      const Session& other = users_[(u + 1) % kAuthors];
      (void)Patiently([&] { return app_.Timeline(other, Called(u), &all.timelines[u]); });
    }
    return all;
  }
  void ExpectAcknowledged(const Lists& all) {
    const std::vector<uint64_t> deleted = ledger_.Deleted();
    for (size_t u = 0; u < kAuthors; ++u) {
      const testing::ScopedTrace trace(__FILE__, __LINE__, Called(u));
      ExpectAll(all.timelines[u], KeptOf(u));
      ExpectOnceAndNone(all.timelines[u], deleted);
      ExpectAll(all.homes[u], ledger_.Those(Ledger::Fate::kKept, [&](const Ledger::Entry& entry) {
        return entry.author != u && (Follows(u, entry.author) || entry.mentioned.contains(u));
      }));
      ExpectOnceAndNone(all.homes[u], deleted);
    }
    for (const uint64_t id : deleted) {
      Post post;
      EXPECT_TRUE(absl::IsNotFound(app_.Get(users_[0], id, &post))) << id;
    }
  }
  // Empty if those that were refused are there in whole and once, or not at all.
  std::string ComplaintOf(const Lists& all) {
    const std::map<uint64_t, Ledger::Entry> known = ledger_.Posts();
    std::set<uint64_t> in_timelines;
    std::set<std::string> texts;
    for (size_t u = 0; u < kAuthors; ++u) {
      for (const uint64_t id : all.timelines[u]) {
        in_timelines.insert(id);
        if (known.contains(id)) continue;
        Post post;
        if (const absl::Status got = app_.Get(users_[u], id, &post); !got.ok()) return got.ToString();
        if (!ledger_.Refused(u, post.text())) return Join("nobody wrote ", id, ": ", post.text());
        if (!texts.insert(post.text()).second) return Join("twice: ", post.text());
      }
    }
    for (size_t u = 0; u < kAuthors; ++u) {
      for (const uint64_t id : all.homes[u]) {
        if (!in_timelines.contains(id))
          return Join(id, " is in the home of ", u, ", not in its author's timeline");
      }
    }
    return {};
  }

  // One page of the log's index, which SQLite maps; and little more than nothing.
  static constexpr uint64_t kSharedBytes = 32 << 10, kRoomBytes = 8 << 10;

  const uint64_t seed_ = TestSeed();
  Ledger ledger_;
  Acts acts_;
  std::atomic<bool> resting_{false};    // relaxed: it orders nothing
  std::atomic<uint64_t> next_text_{0};  // relaxed: only unique
  std::vector<std::thread> threads_;
  TempDir dir_;
  FullDisk disk_{FULL_DISK_LIBRARY};  // of Redis and of PostgreSQL
  MemcachedProcess cache_{dir_.File("m")};
  const std::unique_ptr<RedisProcess> redis_ = StartRedis();
  const std::unique_ptr<PostgresqlProcess> postgresql_ = StartPostgresql();
  SocialDeployment app_{GetParam().config, /*monolith=*/false, StoreFlags()};
  std::vector<Session> users_;
  const Session watcher_ = app_.Register("watcher");
  // Of the watcher's thread, and of the test's once that has ended.
  std::set<size_t> blocked_;  // whose block was acknowledged
  size_t watched_ = 0;        // posts that it read
  Guests guests_{&app_, &ledger_, /*first=*/kAuthors, IsOfFault};
};

INSTANTIATE_TEST_SUITE_P(Stores, SocialFaults,
                         testing::Values(Kept{"files", "FDB1-2"}, Kept{"redis", "ADB1-2-2"},
                                         Kept{"postgresql", "SDB1-16"}),
                         [](const auto& info) { return std::string(info.param.store); });

TEST_P(SocialFaults, WhatWasAcknowledgedIsKeptStress) {
  Rng rng(seed_);
  app_.SetPatience(kPatience);
  BeginActs();
  BeginWatching();
  BeginGuests();
  EXPECT_TRUE(acts_.AwaitPosted(kPostsBetween));
  for (const Fault& fault : Faults(rng)) {
    Endure(rng, fault);
    if (HasFailure()) break;
  }
  Rest();
  app_.SetPatience(kMaxTestWait);
  guests_.SeeOff();
  RepeatDeletions();
  app_.AwaitQueue();
  for (size_t author = 0; author < kAuthors; ++author) ReadAsWatcher(author);
  EXPECT_GT(watched_, 0U);
  Lists all = ReadAll();
  ExpectAcknowledged(all);
  // Posts that were refused last may still be taken back.
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::string complaint;
  while (!(complaint = ComplaintOf(all)).empty() && !deadline.Expired()) all = ReadAll();
  EXPECT_EQ(complaint, "");
}

}  // namespace
}  // namespace curtail::social
