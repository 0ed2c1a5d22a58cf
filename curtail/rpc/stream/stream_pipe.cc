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
//  P4  Threads, fibers and coroutines wait by the rules of stream_end.cc.
//  P5  What ends a request wakes its waiters: OnOver() from below, the context's cancellation from beside. The
//      deadline ends each wait by itself.
//  P6  SendEnd() is called once, when writes have ended and out_ is empty, unless the stream is over.
//  P7  A message leaves when it is written, by a kick of its writer, unless another message of the connection left less
//      than HeldMessages::kGap ago. Then it is held: its turn is posted, and the kick comes
//      (a) when out_ holds kEnough;
//      (b) when its writer waits. A thread of a server sends then all that it has held, of whatever stream
//          (exec/receiver.h: Outbox), as it does when a coroutine leaves it without work; another one, what it holds of
//          the stream that it waits for. The end of the writes counts as a wait;
//      (c) with the first message that is written kGap after the last kick;
//      (d) after HeldMessages::kLongest at the latest, from a thread that does nothing else.
//      So a message that comes alone waits for nothing, and those of a burst share a write.
#include "curtail/rpc/stream/stream_pipe.h"

#include <utility>

#include "curtail/exec/receiver.h"
#include "curtail/exec/wait.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxIn = 256u << 10;
constexpr size_t kMaxOut = 64u << 10;
constexpr size_t kEnough = 16u << 10;

}  // namespace

bool StreamPipe::Try(StreamStep& step) {
  return step.kind == StreamStep::Kind::kRead ? TryRead(step) : TryWrite(step);
}

bool StreamPipe::TryRead(StreamStep& step) {
  step.ok = !cut_ && !in_.empty();
  if (!step.ok) return cut_ || peer_ended_ || over_;
  in_.Pop(step.message);
  if (held_ && !resume_ && in_.bytes() <= kMaxIn / 2) {
    resume_ = true;
    if (Post()) step.owed = kKick;
  }
  return true;
}

bool StreamPipe::TryWrite(StreamStep& step) {
  const bool ended = cut_ || over_;
  if (!ended && out_.bytes() > kMaxOut) return false;
  step.ok = !ended && !writes_ended_;
  if (!step.ok) return true;
  out_.Push(std::move(*step.message));
  const bool first = !posted_;
  if (!Post()) return true;
  step.owed = kMessage;
  if (out_.bytes() >= kEnough) step.owed |= kFull;
  if (first) step.owed |= kFirst;
  return true;
}

void StreamPipe::Settle(const StreamStep& step) {
  if (step.owed == 0) return;
  if ((step.owed & (kKick | kFull)) != 0) return Kick();
  const Outlet out = outlet();  // P7
  const TimePoint now = Now();
  const bool first = (step.owed & kFirst) != 0;
  if (now - out.connection.messages_left() >= HeldMessages::kGap || (first && !Hold(out, now))) Kick();
}

void StreamPipe::BeforeSleep() {
  if (CurrentWait().outbox != nullptr) return;
  {
    MutexLock lock(mu_);
    if (!posted_) return;
  }
  Kick();  // P7
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

void StreamPipe::OnMessage(std::string&& message, wire::Session& session, wire::StreamId id) {
  MutexLock lock(mu_);
  if (cut_ || discards_) return;
  in_.Push(std::move(message));
  if (!held_ && in_.bytes() > kMaxIn) {  // P1
    held_ = true;
    session.SetReading(id, false);
  }
  Wake(reader_);
}

void StreamPipe::OnPeerEnd() {
  MutexLock lock(mu_);
  peer_ended_ = true;
  Wake(reader_);
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
  if (out_.bytes() <= kMaxOut) Wake(writer_);
}

}  // namespace curtail::internal
