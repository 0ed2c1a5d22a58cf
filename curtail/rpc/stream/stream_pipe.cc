// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Two bounded queues and a mutex. The session, which only the strand's holder may touch, hands in what has
// come and is handed what goes out; readers and writers touch the queues alone. Backpressure goes through: a reader
// that stops reading stops the peer's credit, and a peer that stops reading stops the writer.
//
//  P1  A message that has come enters in_. When in_ holds more than kMaxIn the stream gets no more credit (held_).
//      The reader that takes it below half of that asks for credit again (resume_), which the next Carry() gives. So
//      in_ holds kMaxIn, what the peer's window allowed by then, and one message.
//  P2  A writer waits while out_ holds more than kMaxOut. Carry() moves messages to the session until that holds more
//      than kWritableBytes of the stream; then the session's OnWritable leads to the next Carry(). So a stream holds
//      kMaxOut + kWritableBytes and two messages.
//  P3  posted_ is set with PostTurn(), and cleared by Carry() before it looks at anything. What a thread changes while
//      posted_ is set, Carry() will see. Each change is followed by a kick, at once or by P7. After the end (over_)
//      nothing is posted.
//  P4  A thread that waits enters a Waiter on its stack under the mutex, after it has looked, and takes it out under
//      the mutex. The strand's holder notifies it under the mutex: it cannot be gone.
//  P5  What ends a request wakes its waiters: OnOver() from below, the context's cancellation from beside. The
//      deadline ends each wait by itself.
//  P6  SendEnd() is called once, when writes have ended and out_ is empty, unless the stream is over.
//  P7  A message leaves when it is written, by a kick of its writer, unless another message of the connection left less
//      than HeldMessages::kGap ago. Then it is held: its turn is posted, and the kick comes
//      (a) when out_ holds kEnough;
//      (b) when its writer waits. A thread of a server sends then all that it has held, of whatever stream
//          (exec/receiver.h: Outbox); another one, what it holds of the stream that it waits for. The end of the
//          writes counts as a wait;
//      (c) with the first message that is written kGap after the last kick;
//      (d) after HeldMessages::kLongest at the latest, from a thread that does nothing else.
//      So a message that comes alone waits for nothing, and those of a burst share a write.
#include "curtail/rpc/stream/stream_pipe.h"

#include <utility>

#include "curtail/exec/fiber.h"
#include "curtail/exec/receiver.h"
#include "curtail/exec/wait.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxIn = 256u << 10;
constexpr size_t kMaxOut = 64u << 10;
constexpr size_t kEnough = 16u << 10;

}  // namespace

bool StreamPipe::Read(std::string* message) {
  Fiber::YieldIfLong();
  bool kick = false;
  {
    MutexLock lock(mu_);
    while (!cut_ && in_.empty() && !peer_ended_ && !over_) Sleep(&reader_);
    if (cut_ || in_.empty()) return false;
    in_.Pop(message);
    if (held_ && !resume_ && in_.bytes() <= kMaxIn / 2) {
      resume_ = true;
      kick = Post();
    }
  }
  if (kick) Kick();
  return true;
}

bool StreamPipe::Write(std::string&& message) {
  Fiber::YieldIfLong();
  bool first = false;
  bool enough = false;
  {
    MutexLock lock(mu_);
    while (!cut_ && !over_ && out_.bytes() > kMaxOut) Sleep(&writer_);
    if (cut_ || over_ || writes_ended_) return false;
    out_.Push(std::move(message));
    enough = out_.bytes() >= kEnough;
    first = !posted_;
    Post();
  }
  const Outlet out = outlet();  // P7
  const TimePoint now = Now();
  if (enough || now - out.connection.messages_left() >= HeldMessages::kGap || (first && !Hold(out, now)))
    Kick();
  return true;
}

void StreamPipe::EndWrites() {
  bool kick = false;
  {
    MutexLock lock(mu_);
    if (writes_ended_) return;
    writes_ended_ = true;
    kick = Post();
  }
  // A handler that ends its writes waits, or ends, soon.
  if (kick && (CurrentWait().outbox == nullptr || !Hold(outlet(), Now()))) Kick();
}

void StreamPipe::Kick() {
  const Outlet out = outlet();
  out.held.Send(out.connection);
  out.connection.NoteMessagesLeft(Now());
}

bool StreamPipe::Hold(const Outlet& out, TimePoint now) {
  std::shared_ptr<PollHandler> connection = out.connection.shared_from_this();
  const WaitHint& hint = CurrentWait();
  if (hint.outbox == nullptr) return out.held.Hold(std::move(connection), now);
  return hint.outbox->HoldBriefly(hint.thread_index, std::move(connection), now);
}

void StreamPipe::Fail(absl::Status status) {
  MutexLock lock(mu_);
  CutOff(std::move(status));
}

absl::Status StreamPipe::status() {
  MutexLock lock(mu_);
  return why_;
}

void StreamPipe::CutOff(absl::Status why) {
  if (cut_) return;
  cut_ = true;
  why_ = std::move(why);
  WakeAll();
}

void StreamPipe::WakeAll() {
  for (Waiter* waiter : {reader_, writer_}) {
    if (waiter != nullptr) waiter->Notify(Waiter::kInterrupted);
  }
}

void StreamPipe::Sleep(Waiter** place) {
  if (ctx_.cancelled()) return CutOff(absl::CancelledError("cancelled by the caller"));
  if (ctx_.deadline().Expired()) return CutOff(absl::DeadlineExceededError("deadline exceeded on a stream"));
  Waiter waiter(lane_);
  *place = &waiter;
  const bool kick = posted_ && CurrentWait().outbox == nullptr;  // P7
  mu_.Unlock();
  if (kick) Kick();
  FlushBeforeWait();
  WaitFor(waiter);
  mu_.Lock();
  *place = nullptr;
}

void StreamPipe::WaitFor(Waiter& waiter) { waiter.WaitOnFiber(ctx_.deadline()); }

void StreamPipe::OnMessage(std::string&& message, wire::Session& session, wire::StreamId id) {
  MutexLock lock(mu_);
  if (cut_ || discards_) return;
  in_.Push(std::move(message));
  if (!held_ && in_.bytes() > kMaxIn) {  // P1
    held_ = true;
    session.SetReading(id, false);
  }
  if (reader_ != nullptr) reader_->Notify(Waiter::kInterrupted);
}

void StreamPipe::OnPeerEnd() {
  MutexLock lock(mu_);
  peer_ended_ = true;
  if (reader_ != nullptr) reader_->Notify(Waiter::kInterrupted);
}

void StreamPipe::OnOver(absl::Status status, bool whole) {
  MutexLock lock(mu_);
  over_ = true;
  out_.Clear();
  if (!whole) {
    CutOff(std::move(status));
    in_.Clear();
  } else if (!cut_) {
    why_ = std::move(status);
  }
  WakeAll();
}

void StreamPipe::Discard(bool credit) {
  discards_ = true;
  in_.Clear();
  resume_ = held_ && credit;
}

void StreamPipe::Carry(wire::Session& session, wire::StreamId id, bool posted) {
  MutexLock lock(mu_);
  if (posted) posted_ = false;  // P3
  if (over_) return WakeAll();
  if (std::exchange(resume_, false)) {
    held_ = false;
    session.SetReading(id, true);
  }
  Send(session, id);
}

void StreamPipe::Send(wire::Session& session, wire::StreamId id) {
  SendHead(session, id);
  while (!out_.empty() && session.queued_bytes(id) <= wire::kWritableBytes) {  // P2
    out_.Pop(&scratch_);
    session.SendMessage(id, std::move(scratch_));
  }
  if (out_.empty() && writes_ended_ && !std::exchange(end_sent_, true)) SendEnd(session, id);  // P6
  if (writer_ != nullptr && out_.bytes() <= kMaxOut) writer_->Notify(Waiter::kInterrupted);
}

}  // namespace curtail::internal
