// SPDX-License-Identifier: Apache-2.0
//
// fanout.h - calls that a request waits for together: what is common to all ways of waiting.
#pragma once

#include <atomic>
#include <memory>

#include "curtail/base/timer_heap.h"
#include "curtail/exec/recycler.h"
#include "curtail/exec/task.h"
#include "curtail/rpc/call_observer.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/context.h"

namespace curtail::internal {

class ResponseReceiver;

// A Fanout sends the calls of a batch at once and counts the answers. It lies in whatever waits, and may die
// only when AllEnded() has been called: no connection refers to it any more then.
class Fanout : private Cancellable {
 public:
  Fanout(const Fanout&) = delete;
  Fanout& operator=(const Fanout&) = delete;

 protected:
  // Everything `batch` refers to outlives the fan-out. REQUIRES: at least one channel, requests for all.
  Fanout(Context& ctx, const CallBatch& batch);
  ~Fanout() = default;

  // The last call has ended. Called once for each Send(), on any thread; the fan-out may be gone afterwards.
  virtual void AllEnded() = 0;
  // The context was cancelled. On any thread, with the context's mutex held.
  void OnCancel() override = 0;

  // Why nothing should be sent at all, if so: nobody waits, no time is left.
  absl::Status Refusal();
  // Makes the wanted calls ready, on connections of `poller`.
  void Prepare(const std::shared_ptr<Poller>& poller);
  // Sends them, listening to the context's cancellation from now on. `hold`: they may share a write with what
  // this thread sends next.
  void Send(bool hold);
  void StopListening() { ctx_.Detach(*this); }
  // Ends attempts to connect that have taken too long; returns when the next will have.
  Deadline GiveUpConnecting();
  // Asks for the end of all open calls, which takes no round trip. Once for each Send().
  void CancelOpenCalls();
  // Whether calls failed that no server has seen, which are wanted again then. Only if time and attempts are left.
  bool TakeRetry();
  // Fills in the replies and statuses of the batch.
  void Collect(const absl::Status& refused);

  Context& ctx_;
  const CallBatch batch_;

 private:
  struct Member final : ClientCall {
    void Finished() override { fanout->Ended(*this); }
    void CancelHandled() override { fanout->Complete(); }
    Fanout* fanout = nullptr;
    std::shared_ptr<ClientConnection> connection;
    bool wanted = true;
    TimePoint answered;  // for observers; zero without
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
  // Hands out what came with the answer of call i.
  void TakeMetadata(size_t i);
  // A call has ended, on any thread.
  void Ended(Member& member) {
    if (ctx_.observed() != nullptr) member.answered = Now();
    // One that no server has seen may be sent again.
    if (batch_.fail_fast && !member.status.ok() &&
        (!member.unprocessed || attempts_ == ClientCall::kMaxAttempts))
      OnCancel();
    Complete();
  }
  // Tell the request's observers. REQUIRES: ctx_.observed().
  ChildCall Child(size_t i) const;
  void BeforeSend();
  void TellCalled() const;
  void TellAnswered() const;
  // One call fewer to wait for. The last to call it touches nothing afterwards.
  void Complete() {
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) AllEnded();
  }
  // Counts one more thing to wait for, unless all is over.
  bool AddPending();

  const Recycler<Members>::Lease lease_ = Recycler<Members>::Borrow();
  Member* const members_;  // its items
  int attempts_ = 1;
  bool intercepted_ = false;
  TimePoint now_;     // when it was about to be sent
  TimePoint called_;  // ... first; for observers
  // Atomic: calls and cancellations under way. Reaching zero is AllEnded().
  std::atomic<int> pending_{0};
  // Atomic: who sets it posts the cancellations.
  std::atomic<bool> cancelling_{false};
};

// An AsyncFanout waits without a thread: the thread that takes the last reply, or another of the response
// pool, goes on with Continue().
class AsyncFanout : private Fanout, private Task, private Timer {
 public:
  // Sends. Continue() may run before this returns. REQUIRES: on a thread of a pool that has asynchronous models.
  void Start();

 protected:
  AsyncFanout(Context& ctx, const CallBatch& batch) : Fanout(ctx, batch) {}
  ~AsyncFanout() = default;
  // All replies and statuses are there. The fan-out is no longer used: it may be destroyed.
  virtual void Continue() = 0;

 private:
  friend class ResponseReceiver;
  void Run(const WaitHint& hint) override;
  void AllEnded() override;
  void OnCancel() override { CancelOpenCalls(); }
  void SendAndArm();
  // Its time has come; returns when to be called again. Under the receiver's mutex.
  Deadline OnTimer();
  Deadline NextTimer();

  Executor* executor_ = nullptr;
  ResponseReceiver* receiver_ = nullptr;
  absl::Status refused_;
};

}  // namespace curtail::internal
