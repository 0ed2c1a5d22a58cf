// SPDX-License-Identifier: Apache-2.0
//
// The lane's leader and followers under all schedules: whoever leads, each waiter returns once its own reply
// has come, and the lane is never without a leader while somebody waits.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "curtail/rpc/call/lane.h"
#include "tests/model/kernel.h"
#include "tests/model/moment.h"
#include "tests/model/scheduler.h"

namespace curtail {
namespace {

using model::At;
using model::Check;
using model::Explore;
using model::Fresh;
using model::Options;
using model::Outcome;

// A Peer sends replies on one connection of the lane: slot numbers, each of which completes the waiter in
// that slot.
class Peer {
 public:
  Peer() : fd_(model::EventFd()), slots_(3), handler_(std::make_shared<Handler>(this)) {
    Check(poller().Add(fd_, handler_).ok(), "Add");
  }
  Lane& lane() { return lane_; }
  Poller& poller() { return *lane_.poller(); }

  // Any thread: waits for a call in each of these slots, and then replies to them in one packet.
  void Send(std::vector<int> slots) {
    for (const int slot : slots) {
      model::Block("wait for a call", nullptr, [&] { return calls_[slot] > 0; });
      --calls_[slot];
    }
    replies_.insert(replies_.end(), slots.begin(), slots.end());
    model::Write(fd_);
  }
  // The thread of `slot`: waits for its reply, or until `deadline`. Returns whether the reply came.
  bool Call(int slot, Deadline deadline = Deadline::Infinite(), SpinBudget* spin = nullptr);
  // Any thread: as if the reply had come another way.
  void CompleteCall(int slot) {
    model::Block("wait for a call", nullptr, [&] { return calls_[slot] > 0; });
    --calls_[slot];
    Complete(slot);
  }

 private:
  void Complete(int slot) {
    if (Waiter* waiter = slots_[slot].exchange(nullptr)) waiter->Notify(Waiter::kDone);
  }

  class Handler final : public PollHandler {
   public:
    explicit Handler(Peer* peer) : peer_(peer) {}
    void OnEvents(uint32_t, TaskList*) override {
      Check(!std::exchange(busy_, true), "two leaders handle events at once");
      model::Read(peer_->fd_);
      for (const int slot : std::exchange(peer_->replies_, {})) peer_->Complete(slot);
      busy_ = false;
    }

   private:
    Peer* const peer_;
    bool busy_ = false;
  };

  const int fd_;
  int calls_[3] = {};
  std::vector<int> replies_;
  std::vector<std::atomic<Waiter*>> slots_;
  const std::shared_ptr<Handler> handler_;
  Lane lane_;
};

bool Peer::Call(int slot, Deadline deadline, SpinBudget* spin) {
  Fresh<Waiter> waiter(&lane_);
  slots_[slot].store(waiter.get());
  ++calls_[slot];
  lane_.Wait(*waiter, deadline, spin);
  if (waiter->Has(Waiter::kDone)) return true;
  Check(deadline.Expired(), "a waiter returned before its reply and before its deadline");
  if (slots_[slot].exchange(nullptr) != nullptr) return false;
  // Somebody has taken it from its slot and is about to complete it.
  lane_.Wait(*waiter, Deadline::Infinite(), spin);
  Check(waiter->Has(Waiter::kDone), "a waiter returned without its reply");
  return true;
}

// Two waiters, and a peer that replies to each by itself, in both orders.
TEST(LaneModel, EachWaiterGetsItsReply) {
  for (const bool newest_first : {false, true}) {
    const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000, .spurious_wakeups = 1}, [&] {
      Peer peer;
      std::thread a([&] { Check(peer.Call(0), "no reply"); });
      std::thread b([&] { Check(peer.Call(1), "no reply"); });
      peer.Send({newest_first});
      peer.Send({!newest_first});
      a.join(), b.join();
    });
    EXPECT_TRUE(outcome.ok) << outcome.report;
  }
}

// The leader completes itself and a follower by one event; L2 and L3 on the way out.
TEST(LaneModel, OnePacketServesLeaderAndFollowers) {
  const Outcome outcome = Explore({.preemptions = 1, .random_schedules = 5000}, [] {
    Peer peer;
    std::thread a([&] { Check(peer.Call(0), "no reply"); });
    std::thread b([&] { Check(peer.Call(1), "no reply"); });
    std::thread c([&] { Check(peer.Call(2), "no reply"); });
    peer.Send({2, 0, 1});
    a.join(), b.join(), c.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// L5: a thread that is no waiter of the lane completes waiters, whether they lead, follow, or are on their
// way.
TEST(LaneModel, AnyThreadCompletesAWaiter) {
  const Outcome outcome = Explore({.preemptions = 3, .random_schedules = 5000}, [] {
    Peer peer;
    std::thread a([&] { Check(peer.Call(0), "no reply"); });
    peer.CompleteCall(0);
    a.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

TEST(LaneModel, AnyThreadCompletesTheLeaderWhileOthersWait) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000}, [] {
    Peer peer;
    std::thread a([&] { Check(peer.Call(0), "no reply"); });
    std::thread b([&] { Check(peer.Call(1), "no reply"); });
    peer.CompleteCall(0);
    peer.Send({1});
    a.join(), b.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// A waiter gives up at its deadline, as leader, as follower or just promoted; the other one is served. The
// late reply to the first may come at any time, or be on its way when it gives up.
TEST(LaneModel, AWaiterThatGivesUpHandsOn) {
  int gave_up = 0, served = 0;
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000}, [&] {
    Peer peer;
    const Deadline deadline = At(1000);
    std::thread a([&] { ++(peer.Call(0, deadline) ? served : gave_up); });
    std::thread b([&] { Check(peer.Call(1), "no reply"); });
    peer.Send({0});
    peer.Send({1});
    a.join(), b.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
  EXPECT_GT(gave_up, 0);
  EXPECT_GT(served, 0);
}

// The lane is as new after everybody has left: the same threads wait once more.
TEST(LaneModel, TheLaneServesRoundAfterRound) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000}, [] {
    Peer peer;
    const auto two_rounds = [&](int slot) {
      for (int round = 0; round < 2; ++round) {
        Check(peer.Call(slot), "no reply");
      }
    };
    std::thread a([&] { two_rounds(0); });
    std::thread b([&] { two_rounds(1); });
    for (const int slot : {0, 1, 0, 1}) peer.Send({slot});
    a.join(), b.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// A cancelled waiter returns, and leaves the lane in good order for the other.
TEST(LaneModel, AnInterruptedWaiterReturns) {
  const Outcome outcome = Explore({.preemptions = 2, .random_schedules = 5000}, [] {
    Peer peer;
    Waiter waiter(&peer.lane());
    std::thread other([&] { Check(peer.Call(1), "no reply"); });
    std::thread canceller([&] { waiter.Notify(Waiter::kInterrupted); });
    peer.Send({1});
    peer.lane().Wait(waiter, Deadline::Infinite(), nullptr);
    Check(waiter.Has(Waiter::kInterrupted) && !waiter.Has(Waiter::kDone), "not what it waited for");
    canceller.join(), other.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

// Polling waiters: one has the slot of the budget, the other spins briefly and then blocks.
TEST(LaneModel, PollingWaitersGetTheirReplies) {
  const Outcome outcome = Explore({.preemptions = 1, .random_schedules = 5000}, [] {
    Peer peer;
    SpinBudget budget(1);
    std::thread a([&] { Check(peer.Call(0, Deadline::Infinite(), &budget), "no reply"); });
    std::thread b([&] { Check(peer.Call(1, Deadline::Infinite(), &budget), "no reply"); });
    peer.Send({0});
    peer.Send({1});
    a.join(), b.join();
  });
  EXPECT_TRUE(outcome.ok) << outcome.report;
}

}  // namespace
}  // namespace curtail
