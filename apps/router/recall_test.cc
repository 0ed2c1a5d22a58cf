// SPDX-License-Identifier: Apache-2.0
//
// Which replicas may take part, by the leaves' histories; failure_test.cc restarts whole mid-tiers.
#include "apps/router/recall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/router/stripes.h"
#include "curtail/base/rng.h"

namespace curtail::router {
namespace {

using ::testing::ElementsAre;

// The answer of a leaf that has been sent `writes`, from stripe to version, the newest to `members`.
StoreHistory Saw(const std::map<int, uint64_t>& writes, uint32_t members = ~uint32_t{0}) {
  StoreHistory history;
  history.set_members(members);
  for (size_t i = 0; i < Stripes::kCount; ++i) history.add_begun(0), history.add_done(0);
  for (const auto& [stripe, version] : writes) {
    history.set_begun(stripe, version);
    history.set_done(stripe, version);
  }
  return history;
}
StoreHistory Flushed(uint64_t version, StoreHistory history) {
  history.set_flushed(version);
  history.set_since(version);
  return history;
}
StoreHistory NotDone(int stripe, StoreHistory history) {
  history.set_done(stripe, 0);
  return history;
}

std::vector<bool> Of(const std::vector<std::optional<StoreHistory>>& histories) {
  std::vector<const StoreHistory*> pointers;
  for (const auto& history : histories) pointers.push_back(history ? &*history : nullptr);
  return MayTakePart(pointers);
}

TEST(Recall, AllThatSawTheSameTakePart) {
  EXPECT_THAT(Of({Saw({}), Saw({})}), ElementsAre(true, true));
  EXPECT_THAT(Of({Saw({{0, 5}, {1023, 7}}), Saw({{0, 5}, {1023, 7}})}), ElementsAre(true, true));
}

TEST(Recall, WhoMissedAWriteDoesNot) {
  EXPECT_THAT(Of({Saw({{0, 5}}), Saw({{0, 5}, {3, 6}}, 0b10)}), ElementsAre(false, true));
  EXPECT_THAT(Of({Saw({{0, 5}}), Saw({{0, 6}}, 0b110), Saw({{0, 6}}, 0b110)}),
              ElementsAre(false, true, true));
}

TEST(Recall, WhoWasEmptiedSinceDoes) {
  EXPECT_THAT(Of({Flushed(7, Saw({{0, 5}})), Saw({{0, 6}}, 0b10)}), ElementsAre(true, true));
  EXPECT_THAT(Of({Flushed(7, Saw({{0, 5}})), Saw({{0, 8}}, 0b10)}), ElementsAre(false, true));
  // Its part of an unfinished write is gone.
  EXPECT_THAT(Of({Flushed(7, NotDone(1, Saw({{1, 5}}))), Saw({{0, 6}}, 0b10)}), ElementsAre(true, true));
}

// Its memcached may still carry the write out.
TEST(Recall, WhoHasBegunAWriteAndNotDoneItDoesNot) {
  EXPECT_THAT(Of({Saw({{0, 5}, {1, 6}}), NotDone(1, Saw({{0, 5}, {1, 6}}))}), ElementsAre(true, false));
}

// A write to both was half done, and not acknowledged.
TEST(Recall, OfTwoThatEachMissedAWriteTheOneThatWasThereLongerDoes) {
  EXPECT_THAT(Of({Saw({{0, 6}}), Flushed(4, Saw({{1, 5}}))}), ElementsAre(true, false));
  EXPECT_THAT(Of({Flushed(4, Saw({{1, 5}})), Saw({{0, 6}})}), ElementsAre(false, true));
  EXPECT_THAT(Of({Flushed(4, Saw({{1, 6}})), Saw({{0, 5}})}), ElementsAre(false, true));
  // But not one that the newest write did not go to.
  EXPECT_THAT(Of({Flushed(4, Saw({{1, 6}}, 0b01)), Saw({{0, 5}})}), ElementsAre(true, false));
}

// It can tell nothing of what was before.
TEST(Recall, ALeafThatWasStartedLaterGivesWay) {
  StoreHistory restarted = Saw({{1, 9}});
  restarted.set_since(8);
  EXPECT_THAT(Of({restarted, Saw({{0, 7}, {1, 9}})}), ElementsAre(false, true));
}

TEST(Recall, WhoIsSilentDoesNot) {
  EXPECT_THAT(Of({std::nullopt, Saw({})}), ElementsAre(false, true));
  EXPECT_THAT(Of({std::nullopt, std::nullopt}), ElementsAre(false, false));
}

TEST(Recall, OnlyWholeHistoriesAreBelieved) {
  StoreHistory history = Saw({});
  EXPECT_TRUE(IsWhole(history));
  history.add_done(1);
  EXPECT_FALSE(IsWhole(history));
  EXPECT_FALSE(IsWhole(StoreHistory()));
}

// A mid-tier and its leaves in small, with the rules of Write, ReplicaSet and LeafService, one step of one of them at a
// time. Keys are stripes; a value is the version of the write that brought it.
class World {
 public:
  static constexpr size_t kReplicas = 3;
  static constexpr int kKeys = 4;

  explicit World(uint64_t seed) : rng_(seed) {
    admitted_.fill(true);
    emptied_.fill(false);
  }

  void Step() {
    const int key = static_cast<int>(rng_.Below(kKeys));
    const size_t replica = rng_.Below(kReplicas);
    switch (rng_.Below(16)) {
      case 0:
        if (!writes_.contains(key)) Send(key);
        break;
      case 1:  // a get has failed
        Eject(replica);
        break;
      case 2:
        if (!admitted_[replica]) Empty(replica);
        break;
      case 3:
        if (emptied_[replica]) Admit(replica);
        break;
      case 4:
        if (rng_.Below(8) == 0) Forget(replica);
        break;
      default:
        if (writes_.contains(key)) Answer(key, replica);
    }
    for (const auto& [acknowledged, version] : acknowledged_) {
      if (!AnyHasBeenThereSince(version)) lost_.insert(acknowledged);
    }
  }

  // The mid-tier ends and another one starts; what is on its way is refused from then on. Checks that nothing that was
  // acknowledged, and was there, is gone or old, and that replicas that take part hold the same, or nothing.
  void Restart() {
    writes_.clear();
    emptied_.fill(false);
    std::vector<const StoreHistory*> histories;
    for (Leaf& leaf : leaves_) {
      leaf.history.set_flushed(leaf.flushed);
      leaf.history.set_since(leaf.since);
      histories.push_back(&leaf.history);
    }
    std::ranges::copy(MayTakePart(histories), admitted_.begin());
    const std::map<int, uint64_t> after = Held();
    for (const auto& [key, version] : acknowledged_) {
      const auto held = after.find(key);
      const uint64_t missing = lost_.contains(key) ? version : 0;
      ASSERT_GE(held == after.end() ? missing : held->second, version) << "key " << key;
    }
    for (const auto& [key, version] : after) {
      for (size_t i = 0; i < kReplicas; ++i) {
        const auto held = leaves_[i].holds.find(key);
        const bool counts = admitted_[i] && held != leaves_[i].holds.end();
        ASSERT_EQ(counts ? held->second : version, version) << "key " << key << ", replica " << i;
      }
    }
  }

 private:
  enum Outcome { kNotSent, kOpen, kDone, kLate, kMissed };
  struct Leaf {
    StoreHistory history = Saw({});
    uint64_t flushed = 0, since = 0, refuses = 0;
    uint64_t newest = 0;  // begun
    std::map<int, uint64_t> holds;
  };
  struct Sent {
    uint64_t version;
    std::array<Outcome, kReplicas> at;
  };

  bool AnyHasBeenThereSince(uint64_t version) const {
    for (size_t i = 0; i < kReplicas; ++i) {
      if (admitted_[i] && leaves_[i].since < version) return true;
    }
    return false;
  }

  // The newest of each key at the replicas that take part.
  std::map<int, uint64_t> Held() const {
    std::map<int, uint64_t> held;
    for (size_t i = 0; i < kReplicas; ++i) {
      if (!admitted_[i]) continue;
      for (const auto& [key, version] : leaves_[i].holds) held[key] = std::max(held[key], version);
    }
    return held;
  }

  void Send(int key) {
    Sent& sent = writes_[key];
    sent.version = ++version_;
    for (size_t i = 0; i < kReplicas; ++i) sent.at[i] = admitted_[i] ? kOpen : kNotSent;
  }

  void Eject(size_t replica) {
    if (std::ranges::count(admitted_, true) > 1) admitted_[replica] = false;
  }

  // It is flushed, or is sent a flush without an answer.
  void Empty(size_t replica) {
    Leaf& leaf = leaves_[replica];
    const bool answered = rng_.Below(4) != 0;
    if (answered || rng_.Below(2) == 0) leaf.holds.clear();
    leaf.refuses = leaf.since = ++version_;
    if (answered) leaf.flushed = version_;
    emptied_[replica] = answered;
  }

  void Admit(size_t replica) {
    emptied_[replica] = false;
    admitted_[replica] = true;
    leaves_[replica].flushed = leaves_[replica].since = ++version_;
  }

  // Its memcached starts again, or its leaf. The latter one of them only, and while another one remembers the newest
  // write: see Limits.
  void Forget(size_t replica) {
    Leaf& leaf = leaves_[replica];
    leaf.since = ++version_;
    if (rng_.Below(2) == 0) {
      leaf.holds.clear();
    } else if (replica == 0 && std::ranges::any_of(leaves_, [&](const Leaf& l) {
                 return &l != &leaf && l.newest >= leaf.newest;
               })) {
      leaf.history = Saw({});
      leaf.newest = leaf.flushed = 0;
      leaf.refuses = version_;
    }
  }

  void Answer(int key, size_t replica) {
    Sent& sent = writes_[key];
    if (sent.at[replica] == kOpen) sent.at[replica] = Do(key, sent, &leaves_[replica]);
    const auto count = [&](Outcome outcome) { return std::ranges::count(sent.at, outcome); };
    if (count(kOpen) > 0) return;
    const bool alone = count(kNotSent) == kReplicas - 1;
    for (size_t i = 0; i < kReplicas; ++i) {
      if (sent.at[i] == kMissed && !alone) Eject(i);
    }
    if (count(kLate) > 0 || (count(kDone) > 0 && count(kMissed) > 0)) return Send(key);
    if (count(kDone) > 0) {
      acknowledged_[key] = sent.version;
      lost_.erase(key);
    }
    writes_.erase(key);
  }

  Outcome Do(int key, const Sent& sent, Leaf* leaf) {
    if (sent.version <= leaf->refuses) return kLate;
    uint32_t members = 0;
    for (size_t i = 0; i < kReplicas; ++i) members |= sent.at[i] == kNotSent ? 0 : 1u << i;
    const bool answered = rng_.Below(8) != 0, done = answered || rng_.Below(2) == 0;
    leaf->history.set_begun(key, sent.version);
    if (sent.version > leaf->newest) {
      leaf->newest = sent.version;
      leaf->history.set_members(members);
    }
    if (done) leaf->holds[key] = sent.version;
    if (answered) leaf->history.set_done(key, sent.version);
    return answered ? kDone : kMissed;
  }

  Rng rng_;
  uint64_t version_ = 0;
  std::array<Leaf, kReplicas> leaves_;
  std::array<bool, kReplicas> admitted_;
  std::array<bool, kReplicas> emptied_;  // but not admitted yet
  std::map<int, Sent> writes_;           // under way, one of a key at most
  std::map<int, uint64_t> acknowledged_;
  // Of those: what is left when some were emptied and then the others ejected; here are no gets to bring it back.
  std::set<int> lost_;
};

TEST(Recall, NothingAcknowledgedIsLostWhereverAMidTierEnds) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int life = 0; life < 5; ++life) {
      for (uint64_t step = 0; step < 20 + 17 * seed % 60; ++step) world.Step();
      world.Restart();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace curtail::router
