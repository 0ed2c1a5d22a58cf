// SPDX-License-Identifier: Apache-2.0
//
// stream_end.h - how the user of one end of a stream waits: as a thread, as a fiber, or as a coroutine that holds
// neither. The protocol is at the top of stream_end.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/task.h"
#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/call/response_receiver.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/stream.h"

namespace curtail::internal {

// A StreamEnd carries out steps (StreamStep). One may wait for reading, or for the end, while another waits for
// writing.
class StreamEnd : public MessageStream, private ResponseTimer {
 public:
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

  bool Read(std::string* message) override {
    return Do({.kind = StreamStep::Kind::kRead, .message = message});
  }
  bool Write(std::string&& message) override {
    return Do({.kind = StreamStep::Kind::kWrite, .message = &message});
  }
  void Fail(absl::Status status) override;
  absl::Status status() override;
  bool Await(StreamStep& step) override;

 protected:
  // `lane`: where a plain thread drives its connections while it waits; null: others do.
  StreamEnd(Context& ctx, Lane* lane) : ctx_(ctx), lane_(lane) {}
  ~StreamEnd() = default;

  // Where a step waits.
  struct Place final : Task {
    explicit Place(StreamEnd* e) : end(e) {}
    void Run(const WaitHint&) override { end->GoOn(*this); }
    std::string_view name() const override { return "a step of a stream"; }

    StreamEnd* const end;
    // The end's mutex guards the rest. At most one of these is there.
    Waiter* waiter = nullptr;    // a thread, or a fiber
    StreamStep* step = nullptr;  // a coroutine's
    bool queued = false;         // GoOn() is sure to come
  };

  // True if steps of a coroutine that `hint` belongs to can wait without a thread.
  static bool CanSuspend(const WaitHint& hint) {
    return hint.waiting == Waiting::kAsync && hint.executor != nullptr && hint.response != nullptr;
  }
  // From now on they do, until StopSuspending(). REQUIRES: CanSuspend(hint); no step is under way.
  void Suspend(const WaitHint& hint);
  // After the last step. REQUIRES: on the thread of the request.
  void StopSuspending();
  bool suspends() const { return executor_ != nullptr; }

  // Carries `step` out, if it can be: it can once the stream is cut off, unless it is a kGone.
  virtual bool Try(StreamStep& step) CURTAIL_REQUIRES(mu_) = 0;
  // Does what is left of a step (StreamStep::owed) that Try() has carried out, without the mutex.
  virtual void Settle(const StreamStep&) {}
  // A thread is about to sleep, without the mutex.
  virtual void BeforeSleep() {}
  // Returns when woken, or at the latest at `deadline`. The mutex is not held.
  virtual void WaitFor(Waiter& waiter, Deadline deadline) { waiter.WaitOnFiber(deadline); }
  // Looks at the other events that the end waits for; returns when to do so again. Any thread.
  virtual Deadline Look() { return Deadline::Infinite(); }

  // Carries `step` out as the present thread waits. True if the step succeeded.
  bool Do(StreamStep step);
  // Sleeps once, and not past `deadline`; any change wakes it.
  void Sleep(Place& place, Deadline deadline) CURTAIL_REQUIRES(mu_);
  // Tries, and cuts the stream off if the request has ended.
  bool TryOrCut(StreamStep& step) CURTAIL_REQUIRES(mu_);
  void CutOff(absl::Status why) CURTAIL_REQUIRES(mu_);
  void Wake(Place& place) CURTAIL_REQUIRES(mu_);
  void WakeAll() CURTAIL_REQUIRES(mu_) { Wake(reader_), Wake(writer_); }
  // Notes that a coroutine begins to run on this thread.
  static void BeginTurn();

  // When the stream ends, at the latest. For the thread of the request.
  Deadline deadline() const { return std::min(ctx_.deadline(), limit_); }

  Context& ctx_;
  Lane* const lane_;
  Deadline limit_ = Deadline::Infinite();  // immutable before the first step

  Mutex mu_;
  absl::Status why_ CURTAIL_GUARDED_BY(mu_);  // of the end; OK: the peer's own
  bool cut_ CURTAIL_GUARDED_BY(mu_) = false;  // nothing is read or written any more, see why_
  Place reader_ CURTAIL_GUARDED_BY(mu_){this};
  Place writer_ CURTAIL_GUARDED_BY(mu_){this};

 private:
  Place& PlaceOf(const StreamStep& step) CURTAIL_REQUIRES(mu_) {
    return step.kind == StreamStep::Kind::kWrite ? writer_ : reader_;
  }
  void Submit(Place& place) CURTAIL_REQUIRES(mu_);
  void GoOn(Place& place);
  void Arm();
  Deadline OnTimer() override;

  // Owned by the thread of the request; others read the first two while a coroutine's step is in its place.
  Executor* executor_ = nullptr;  // null: steps wait as the thread waits
  ResponseReceiver* receiver_ = nullptr;
  Deadline armed_ = Deadline::Infinite();  // the deadline that the timer knows

  Deadline until_ CURTAIL_GUARDED_BY(mu_) = Deadline::Infinite();  // the same
  uint32_t wakes_ CURTAIL_GUARDED_BY(mu_) = 0;
};

}  // namespace curtail::internal
