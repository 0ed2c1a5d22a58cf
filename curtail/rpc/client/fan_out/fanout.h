// SPDX-License-Identifier: Apache-2.0
//
// fanout.h - calls that a request waits for together: what is common to all ways of waiting.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "curtail/base/timer_heap.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/exec/task.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/call/response_receiver.h"
#include "curtail/rpc/call_observer.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/hedging.h"
#include "curtail/rpc/context.h"

namespace curtail::internal {

// A Fanout sends the calls of a batch at once and counts the answers. It lies in whatever waits, and may die
// only when AllEnded() has been called: no connection refers to it any more then.
class Fanout : private Cancellable {
 public:
  Fanout(const Fanout&) = delete;
  Fanout& operator=(const Fanout&) = delete;

 protected:
  // Everything `batch` refers to outlives the fan-out. REQUIRES: at least one channel, requests for all.
  Fanout(Context& ctx, const CallBatch& batch);
  ~Fanout();

  // The last call has ended. Called once for each Send(), on any thread; the fan-out may be gone afterwards.
  virtual void AllEnded() = 0;
  // The context was cancelled. On any thread, with the context's mutex held.
  void OnCancel() override = 0;
  // Part of Send(): all calls are on their way, and AllEnded() has not been called yet.
  virtual void Sent() {}

  // Why nothing should be sent at all, if so: the caller is gone, no time is left.
  absl::Status Refusal();
  // Makes the wanted calls ready, on connections of `poller`.
  void Prepare(const std::shared_ptr<Poller>& poller);
  // Sends them, listening to the context's cancellation from now on. `hold`: they may share a write with what
  // this thread sends next.
  void Send(bool hold);
  void StopListening() { ctx_.Detach(*this); }
  // Ends attempts to connect that have taken too long, and calls whose own time is over; returns when the next will be.
  Deadline GiveUp();
  // Asks for the end of all open calls, which takes no round trip. Once for each Send().
  void CancelOpenCalls();
  // True if calls that failed are made again: those that no server has seen, and those that their methods' policies
  // repeat. The next Prepare(), at resume_at(), makes those that are due.
  bool TakeRetry(const std::shared_ptr<Poller>& poller);
  TimePoint resume_at() const { return resume_at_; }
  // When the present round was about to be sent.
  TimePoint sent_at() const { return now_; }
  // Listens to the context's cancellation without calls, until StopListening().
  void Listen() { ctx_.Attach(*this); }
  // Fills in the replies and statuses of the batch.
  void Collect(const absl::Status& refused);

  Context& ctx_;
  const CallBatch batch_;

 private:
  static constexpr TimePoint kNever = TimePoint::max();
  class Hedged;

  struct Member final : Attempt {
    void Finished() override { fanout->Ended(*this); }
    void CancelHandled() override { fanout->CancelHandled(*this); }
    Fanout* fanout = nullptr;
    bool wanted = true;  // in the present round
    Attempts attempts;
    Deadline deadline = Deadline::Infinite();  // of methods with a config
    TimePoint again = kNever;                  // when it is made again
    std::unique_ptr<HedgedCall> hedged;        // null: it is the only attempt
    uint32_t retries = 0,
             hedges = 0;  // attempts after the first, in later rounds and beside it; for observers
  };

  // The calls of one fan-out; used again with the memory of their messages.
  struct Members {
    // Room for `n`, which it forgets by itself.
    Member* Prepare(size_t n);
    bool Recycle();
    std::unique_ptr<Member[]> items;
    size_t capacity = 0;
    size_t count = 0;
  };

  size_t size() const { return batch_.channels.size(); }
  // The connection that call i was sent on, if it was.
  ClientConnection* ConnectionOf(size_t i) const {
    return members_[i].wanted ? members_[i].connection.get() : nullptr;
  }
  absl::Status Outcome(size_t i, bool cancelled, bool expired);
  // Has the interceptors look at call i. False: they refused it.
  bool Intercept(size_t i);
  void TellInterceptors();
  // Tells the request's server of calls that got no credit.
  void CountRefused() const;
  // Why a call that waits to be made again is not.
  absl::Status CutShort(size_t i, bool cancelled) const;
  // Finds what is said of the calls' methods.
  void BeginAttempts();
  Deadline DeadlineOf(const Member& call) const { return std::min(call.deadline, ctx_.deadline()); }
  // Takes the calls whose time has come into the round.
  void TakeDue();
  // Finds a connection for call i; false: it has failed.
  bool Connect(size_t i, const std::shared_ptr<Poller>& poller, const Metadata& inherited);
  // Fails a call that is not sent, and never will be.
  static void Refuse(Member& call, absl::Status why);
  // Decides if call i, which has ended, is made again.
  void Repeat(size_t i, const std::shared_ptr<Poller>& poller, TimePoint now);
  // Ends a call whose own time is over, or sends further attempts at it; returns when to look again.
  // REQUIRES: it was prepared.
  Deadline Attend(Member& call);
  // Asks for the end of a call, if that was not asked for before. REQUIRES: it was sent, and the fan-out stays meanwhile.
  void PostCancel(Member& call);
  // Begins the round of the calls whose methods have a hedging policy, if there are any.
  void BeginHedges(const std::shared_ptr<Poller>& poller);
  // The calls of the round were sent: now further attempts at them may be.
  void StartHedges();
  // Hands out what came with the answer of call i.
  void TakeMetadata(size_t i);
  // A call has ended, on any thread.
  void Ended(Member& member) {
    if (member.hedged != nullptr) [[unlikely]]
      return member.hedged->Ended(member);
    if (ctx_.observed() != nullptr) member.answered = ctx_.observed()->AnsweredAt();
    Settled(member);
  }
  // ... and its outcome is there.
  void Settled(const Member& member) {
    // One that no server has seen may be sent again.
    if (batch_.fail_fast && !member.status.ok() && !member.attempts.MayGoOn(member)) OnCancel();
    Complete();
  }
  void CancelHandled(Member& member) {
    if (member.hedged != nullptr) [[unlikely]]
      return member.hedged->CancelHandled();
    Complete();
  }
  // Tell the request's observers. REQUIRES: ctx_.observed().
  // All but how it ended.
  void Describe(size_t i, ChildCall* child) const;
  void BeforeSend();
  void TellLeaves();
  void TellCalled();
  void TellFence() const;
  void TellFenceOfEach() const;
  void TellAnswered() const;
  // True if a call is to be kept of which that is not clear from the start.
  bool AnyKept(TimePoint late) const;
  // Those that `room` has no place for are kept if they failed or ended after `late`.
  void TellEach(TimePoint late, std::span<ChildCall> room) const;
  // Fewer calls to wait for. The last to call it touches nothing afterwards.
  void Complete(int calls = 1) {
    if (pending_.fetch_sub(calls, std::memory_order_acq_rel) == calls) AllEnded();
  }
  // Counts one more thing to wait for, unless all is over.
  bool AddPending();

  const Recycler<Members>::Lease lease_ = Recycler<Members>::Borrow();
  Member* const members_;  // its items
  bool first_ = true;      // no round has ended
  bool policies_ = false;  // a method has a config
  bool intercepted_ = false;
  TimePoint resume_at_;
  TimePoint now_;         // when it was about to be sent
  TimePoint called_;      // ... first; for observers
  TimePoint sent_;        // ... and was; for observers that want exact times, else zero
  uint32_t ordinal_ = 0;  // of the first call, among all of the request; for observers
  // Atomic: calls and cancellations under way. Reaching zero is AllEnded().
  std::atomic<int> pending_{0};
  // Atomic: the thread that sets it posts the cancellations.
  std::atomic<bool> cancelling_{false};
};

// An AsyncFanout waits without a thread: the thread that takes the last reply, or another of the response
// pool, goes on with Continue().
class AsyncFanout : private Fanout, private Task, private ResponseTimer {
 public:
  // Sends. Continue() may run before this returns. REQUIRES: on a thread of a pool that has asynchronous models.
  void Start();

 protected:
  AsyncFanout(Context& ctx, const CallBatch& batch) : Fanout(ctx, batch) {}
  ~AsyncFanout() = default;
  // All replies and statuses are there. The fan-out is no longer used: it may be destroyed.
  virtual void Continue() = 0;

 private:
  void Run(const WaitHint& hint) override;
  void AllEnded() override;
  void OnCancel() override { pause_.load(std::memory_order_acquire) == kNone ? CancelOpenCalls() : Resume(); }
  void PrepareAndSend();
  void Sent() override;
  // Waits for resume_at().
  void Pause();
  // Ends the pause, if it has not ended. On any thread.
  void Resume();
  Deadline OnTimer() override;
  Deadline NextTimer();

  Executor* executor_ = nullptr;
  ResponseReceiver* receiver_ = nullptr;
  absl::Status refused_;
  // Atomic (acq_rel): see A4.
  enum PauseState : uint8_t { kNone, kBegun, kWaiting, kOver };
  std::atomic<PauseState> pause_{kNone};
};

}  // namespace curtail::internal
