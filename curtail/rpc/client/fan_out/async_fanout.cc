// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A fan-out that nobody waits for. When the last call has ended, the fan-out itself becomes a task of
// the response pool, which runs the continuation (muTune, section 3: the last reply runs FinalizeResponse).
//
//  A1  Until AllEnded() the connections own it; from then on the response pool does, until Continue().
//  A2  Deadline and cancellation end its calls, and so lead to AllEnded() like replies do. Before it goes on it
//      leaves the timers and the context, both under their mutexes: nobody holds on to it after that. It joins them
//      when its calls are on their way, so that there is something to end, and before it can have gone on.
//  A3  It counts as begun in the executor from before it is sent until after Continue(), so a thread takes its
//      replies whatever the config is by then.
//  A4  Before it makes calls again it may wait: the timer, or the cancellation, ends the pause. The thread that begins
//      the pause goes from kBegun to kWaiting as its last touch. A thread that ends it sets kOver, and submits the
//      task if it found kWaiting; if it found kBegun, the thread that begins the pause does.
//
// Race considered: replies may all be there before Start() returns, and the continuation may run on another
// thread meanwhile. So nothing is touched after the last Complete() (A1).
#include <algorithm>

#include "curtail/exec/executor.h"
#include "curtail/rpc/call/response_receiver.h"
#include "curtail/rpc/client/fan_out/fanout.h"
#include "curtail/rpc/client/in_process_call.h"

namespace curtail::internal {

void AsyncFanout::Start() {
  const WaitHint& hint = CurrentWait();
  executor_ = hint.executor;
  receiver_ = static_cast<ResponseReceiver*>(hint.response);
  executor_->AsyncBegun();  // A3
  refused_ = Refusal();
  if (refused_.ok()) return PrepareAndSend();
  AllEnded();
}

void AsyncFanout::PrepareAndSend() {
  Prepare(receiver_->shared_poller());
  Send(/*hold=*/true);
}

void AsyncFanout::Sent() {
  if (const Deadline next = NextTimer(); !next.infinite()) receiver_->Arm(*this, next.when());
}

Deadline AsyncFanout::NextTimer() { return std::min(ctx_.deadline(), GiveUp()); }

void AsyncFanout::Pause() {
  if (resume_at() <= Now()) return PrepareAndSend();
  pause_.store(kBegun, std::memory_order_release);
  Listen();
  receiver_->Arm(*this, resume_at());
  PauseState begun = kBegun;
  if (!pause_.compare_exchange_strong(begun, kWaiting, std::memory_order_acq_rel)) AllEnded();
}

void AsyncFanout::Resume() {
  if (pause_.exchange(kOver, std::memory_order_acq_rel) == kWaiting) AllEnded();
}

Deadline AsyncFanout::OnTimer() {
  if (pause_.load(std::memory_order_acquire) != kNone) {
    Resume();
    return Deadline::Infinite();
  }
  if (ctx_.deadline().Expired()) {
    CancelOpenCalls();
    return Deadline::Infinite();
  }
  return NextTimer();
}

void AsyncFanout::AllEnded() {
  Executor* const executor = executor_;
  if (TaskList* batch = receiver_->Batch()) return batch->Push(this);
  TaskList alone;
  alone.Push(this);
  executor->SubmitResponse(alone);
}

void AsyncFanout::Run(const WaitHint&) {
  Executor* const executor = executor_;
  if (refused_.ok()) {
    receiver_->Disarm(*this);  // A2
    StopListening();
    if (pause_.exchange(kNone, std::memory_order_acq_rel) == kOver) {
      if (!ctx_.cancelled() && !ctx_.deadline().Expired()) return PrepareAndSend();
    } else if (TakeRetry(receiver_->shared_poller())) {
      return Pause();
    }
  }
  Collect(refused_);
  Continue();
  executor->AsyncEnded();  // A3
}

namespace {

// One that tells a function, and is gone.
class HeapFanout final : public AsyncFanout, public InBlock {
 public:
  HeapFanout(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg)
      : AsyncFanout(ctx, batch), done_(done), arg_(arg) {}

 private:
  void Continue() override {
    void (*const done)(void*) = done_;
    void* const arg = arg_;
    delete this;
    try {
      done(arg);
    } catch (...) {
      // The request was answered when its Responder was destroyed on the way here.
    }
  }
  void (*const done_)(void*);
  void* const arg_;
};

absl::Status Unsuitable(const CallBatch& batch) {
  const WaitHint& hint = CurrentWait();
  if (hint.executor == nullptr || hint.response == nullptr) {
    return absl::FailedPreconditionError("an asynchronous fan-out needs a thread of a server");
  }
  if (batch.channels.empty()) return absl::InvalidArgumentError("a fan-out to nobody");
  return absl::OkStatus();
}

}  // namespace

void StartAsync(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg) {
  if (StaysInProcess(batch)) return StartAsyncInProcess(ctx, batch, done, arg);
  if (absl::Status unsuitable = Unsuitable(batch); !unsuitable.ok()) {
    for (absl::Status& status : batch.statuses) status = unsuitable;
    return done(arg);
  }
  (new HeapFanout(ctx, batch, done, arg))->Start();
}

}  // namespace curtail::internal
