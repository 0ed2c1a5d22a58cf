// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A fan-out that the request itself waits for. Its thread or fiber serializes and sends all calls, then
// waits until the last reply is in: a thread waits on its lane, whose connections it may have to drive; a
// fiber steps aside, and its loop drives the connections. No helper thread takes part. Calls to the same
// connection share a write.
//
// The fan-out lies on the waiter's stack. It may be left only when no connection refers to it any more: when a
// deadline or a cancellation ends it early, every call still open is cancelled and its end awaited, which
// takes no round trip (a connection ends a cancelled call at once).
#include <algorithm>
#include <memory>

#include "curtail/exec/executor.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/receiver.h"
#include "curtail/rpc/async.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/fan_out/fanout.h"
#include "curtail/rpc/client/in_process_call.h"
#include "curtail/rpc/context.h"

namespace curtail {
namespace internal {
namespace {

class BlockingFanout final : public Fanout {
 public:
  BlockingFanout(Context& ctx, const CallBatch& batch, Lane* lane)
      : Fanout(ctx, batch), lane_(lane), waiter_(lane) {}

  void Run() {
    const absl::Status refused = Refusal();
    if (refused.ok()) {
      const std::shared_ptr<Poller>& poller =
          lane_ == nullptr ? CurrentWait().loop->poller() : lane_->poller();
      do {
        waiter_.Clear(Waiter::kDone | Waiter::kInterrupted);
        Prepare(poller);
        Send(/*hold=*/lane_ == nullptr);  // a fiber's loop sends before it waits
        Wait();
        StopListening();
      } while (TakeRetry(poller) && Pause());
    }
    Collect(refused);
  }

 private:
  void AllEnded() override { waiter_.Notify(Waiter::kDone); }
  void OnCancel() override { waiter_.Notify(Waiter::kInterrupted); }

  // Until the waiter is notified, or `deadline`, or sooner.
  void WaitUntil(Deadline deadline, const WaitHint& hint) {
    if (lane_ == nullptr) return waiter_.WaitOnFiber(deadline);
    if (!hint.receives) return lane_->Wait(waiter_, deadline, hint.spin);
    lane_->Wait(waiter_, std::min(deadline, receive_at_), hint.spin);
    if (waiter_.Has(Waiter::kDone | Waiter::kInterrupted) || !receive_at_.Expired()) return;
    hint.executor->ReceiveMeanwhile(hint.thread_index);
    receive_at_ = Deadline::In(Executor::kMeanwhile);
  }

  // Until calls are to be made again. False: the request has ended meanwhile.
  bool Pause() {
    if (resume_at() <= Now()) return true;
    const WaitHint hint = CurrentWait();
    FlushBeforeWait();
    waiter_.Clear(Waiter::kDone | Waiter::kInterrupted);
    Listen();
    if (lane_ != nullptr && hint.waits != nullptr) hint.waits->store(true, std::memory_order_relaxed);
    receive_at_ = Deadline::In(Executor::kMeanwhile);
    while (!waiter_.Has(Waiter::kInterrupted) && Now() < resume_at())
      WaitUntil(Deadline::At(resume_at()), hint);
    if (lane_ != nullptr && hint.waits != nullptr) hint.waits->store(false, std::memory_order_relaxed);
    StopListening();
    return !ctx_.cancelled() && !ctx_.deadline().Expired();
  }

  void Wait() {
    const WaitHint hint = CurrentWait();  // a copy: a fiber's thread has another one when it goes on
    FlushBeforeWait();
    receive_at_ = Deadline::At(sent_at() + Executor::kMeanwhile);
    if (lane_ != nullptr && hint.waits != nullptr) hint.waits->store(true, std::memory_order_relaxed);
    do {
      WaitUntil(std::min(ctx_.deadline(), GiveUp()), hint);
    } while (!waiter_.Has(Waiter::kDone | Waiter::kInterrupted) && !ctx_.deadline().Expired());
    if (!waiter_.Has(Waiter::kDone)) CancelOpenCalls();
    while (!waiter_.Has(Waiter::kDone)) {
      waiter_.Clear(Waiter::kInterrupted);
      // Sure to end: a cancelled call ends in its connection's turn.
      lane_ == nullptr ? waiter_.WaitOnFiber(Deadline::Infinite())
                       : lane_->Wait(waiter_, Deadline::Infinite(), nullptr);
    }
    if (lane_ != nullptr && hint.waits != nullptr) hint.waits->store(false, std::memory_order_relaxed);
  }

  Lane* const lane_;  // null on a fiber
  Waiter waiter_;
  Deadline receive_at_ = Deadline::Infinite();  // a thread that receives requests looks for those next
};

// The baseline: a thread a call. (muTune and its ancestors; Client::fork_join.)
void ForkJoin(Context& ctx, const CallBatch& batch) {
  const auto part = [&](size_t i) {
    return async(ctx, [&batch, i](Context& mine) {
      CallAll(mine, {.channels = batch.channels.subspan(i, 1),
                     .path = batch.PathOf(i),
                     .requests = batch.requests.subspan(i, 1),
                     .replies = batch.replies.subspan(i, 1),
                     .statuses = batch.statuses.subspan(i, 1),
                     .metadata = batch.metadata.empty() ? batch.metadata : batch.metadata.subspan(i, 1),
                     .timeouts = batch.timeouts.empty() ? batch.timeouts : batch.timeouts.subspan(i, 1)});
    });
  };
  std::vector<decltype(part(0))> calls;
  calls.reserve(batch.channels.size());
  for (size_t i = 0; i < batch.channels.size(); ++i) calls.push_back(part(i));
  for (auto& call : calls) call.get();
  if (batch.largest != nullptr) *batch.largest = kKeptBytes + 1;  // unknown
}

}  // namespace

void CallAll(Context& ctx, const CallBatch& batch) {
  if (batch.channels.empty()) return;
  Client* const client = batch.channels[0]->impl().client;
  if (StaysInProcess(batch)) return CallAllInProcess(ctx, batch);
  for (Channel* channel : batch.channels) {
    if (channel->impl().client == client) continue;
    for (absl::Status& status : batch.statuses)
      status = absl::InvalidArgumentError("channels of one fan-out share a Client");
    return;
  }
  const WaitHint& hint = CurrentWait();
  if (client->options().fork_join && batch.channels.size() > 1 && hint.executor != nullptr &&
      hint.waiting == Waiting::kSync) {
    return ForkJoin(ctx, batch);
  }
  Lane* const lane =
      Fiber::Current() != nullptr ? nullptr : &client->lane(hint.thread_index % client->lane_count());
  BlockingFanout(ctx, batch, lane).Run();
}

}  // namespace internal

}  // namespace curtail
