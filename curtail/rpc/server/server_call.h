// SPDX-License-Identifier: Apache-2.0
//
// server_call.h - a request on its way through the server: received, queued, run, answered.
//
// A call is shared by its connection (until the stream ends) and by the executor (while it is queued or
// runs); each counts as a reference, and the last to let go frees it. The kinds of call are in unary_call.h, stream_call.h
// and health_watch_call.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "curtail/base/mutex.h"
#include "curtail/exec/task.h"
#include "curtail/rpc/call/observed_call.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/server/parts/server_parts.h"
#include "curtail/rpc/service.h"
#include "curtail/rpc/transport/connection.h"
#include "curtail/wire/session.h"

namespace curtail {

namespace internal {
class ServerConnection;
}

// The part of a call that the connection knows; the subclasses are the kinds of MethodHandler.
class ServerCall : public Task, public internal::Answerable {
 public:
  // A reply, or a turn, that the connection carries out. It lies in the call.
  struct Reply final : internal::Op {
    enum Kind : uint8_t { kReply, kTurn };
    explicit Reply(ServerCall* c, Kind k = kReply) : call(c), kind(k) {}
    ServerCall* const call;
    const Kind kind;  // kTurn: OnTurn() does all
    bool has_message = false;
    std::string message;
    absl::Status status;
    Metadata initial;  // sent ahead of the message
  };

  // A call that begins; swaps the metadata with `head`'s.
  // `peer` is the client's address, which lives as long as the connection.
  static ServerCall* New(internal::ServerParts& parts, std::shared_ptr<internal::ServerConnection> connection,
                         std::string_view peer, internal::ServedMethod& method, wire::StreamId id,
                         wire::RequestHead& head, TimePoint now);

  // Events of the stream, heard by the strand's holder. True: push this task to the ready list.
  virtual bool OnBegin() { return false; }  // calls of kind kStream only
  virtual void OnMessage(std::string&& message, wire::Session& session) = 0;
  virtual bool OnRequestEnd(TimePoint now) = 0;
  virtual void OnWritable(wire::Session&) {}
  virtual void OnTurn(wire::Session&) {}
  // The server drains. It may end the call.
  virtual void OnGoodbye(wire::Session&) {}
  // The stream is over: `ok` when the reply went out whole. Drops the connection's reference.
  void OnStreamEnd(bool ok);
  // Sends what the reply holds, unless the stream is over; called by the strand's holder.
  void Send(Reply& reply, wire::Session& session);
  // Runs the handler and answers at once; called by the strand's holder. For calls that the executor need not see.
  virtual void AnswerInLine(wire::Session&) {}
  bool in_line() const { return method_->in_line; }
  // It is pushed to the executor next.
  void TakePlace() { placed_.store(true, std::memory_order_relaxed); }
  // Answers without running the handler; called by the strand's holder.
  void Refuse(const absl::Status& status, wire::Session& session);
  // The same, because its deadline has passed.
  void RefuseLate(wire::Session& session);
  // True if its client has a credit for it, or it needs none. GiveCreditBack() follows in any case;
  // `answered`: its answer has left whole.
  bool TakeCredit(CreditAccount& account);
  void GiveCreditBack(CreditAccount& account, bool answered);
  void RefuseWithoutCredit(CreditAccount& account, wire::Session& session);
  // Bytes of the request, as they count for the queue's limit.
  virtual size_t queued_bytes() const = 0;
  // It is answered: frees the request, and returns the bytes by which queued_bytes() shrinks. Called by the strand's holder.
  virtual size_t FreeRequest() { return 0; }
  // The executor will not run it: drops its reference.
  void Drop() override { Unref(); }
  std::string_view name() const override { return method_->path; }
  TaskKind* kind() override { return &method_->kind; }
  Priority priority() const override { return priority_; }
  bool abandoned() const override { return !placed_.load(std::memory_order_relaxed); }
  // A Responder's answer, or that it was destroyed without one. Unary calls only.
  std::string* ReplyBytes() override { return nullptr; }
  void Finish(absl::Status) override {}
  void GiveUp() override {}

  Context& context() { return context_; }
  // When the server ends the call, whatever state it is in.
  TimePoint due() const { return due_; }
  // Owned by the strand's holder: the request has come whole.
  bool ended = false;

 protected:
  ServerCall() : context_(Deadline::Infinite()) {}
  virtual ~ServerCall() = default;
  // Nobody refers to it any more.
  virtual void Free() = 0;
  // The stream is over: `ok` when the reply went out whole.
  virtual void OnOver(bool /*ok*/) {}
  // Lets go of what belongs to the request.
  void Reset();

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();
  // Takes what the handler adds to the answer; what may not be sent makes it an error.
  void TakeMetadata(Reply& reply) {
    if (!context_.initial_.empty() || !context_.trailing_.empty()) [[unlikely]]
      CheckMetadata(reply);
  }
  void CheckMetadata(Reply& reply);
  // server_call_refusals.cc
  // Its turn has come: gives its place in the queue back. False: it was abandoned, and nothing is to be done.
  bool LeaveQueue(size_t bytes);
  // The stream is over, and the call may still be queued: it will not run. True: the caller owns what Run() uses.
  bool Abandon(size_t bytes);
  // Notes how important its client says that it is.
  void ReadPriority(std::string_view peer);
  // It is refused, as `reason` says: counts that for the server, and for its path class.
  void CountRefusal(internal::Refusal reason);
  // The answer to a request that the order gave up.
  absl::Status Shed(TimePoint now);
  // Begins a run: is it still worth while?
  absl::Status Begin(const WaitHint& hint);

  // True if this run is timed: one in some, but each while the method is slow, for which another clock reading is
  // nothing.
  bool Timed() const;
  // Runs the handler and notes whether it took long.
  absl::Status RunHandler(std::string_view request, const WaitHint& hint, internal::ObservedCall& observed,
                          std::string* reply);
  // A request has come.
  void Arrived(internal::ObservedCall& observed, TimePoint now) const {
    if (parts_->observers.empty()) return;
    observed.Arrived(parts_->observers, method_->path, method_->index, context_, now);
  }
  // Asks the interceptors, before the handler runs. Errors: the first of theirs.
  absl::Status Intercept() {
    if (parts_->interceptors.empty()) [[likely]]
      return absl::OkStatus();
    return AskInterceptors();
  }
  absl::Status AskInterceptors();
  // Tells them that `status` is the answer, before it is posted.
  void TellInterceptors(const absl::Status& status) {
    intercepted_.After(parts_->interceptors, method_->path, context_, status);
  }
  // Its run holds the permit that the order gave it, if it gave one.
  void TakePermit(const WaitHint& hint) {
    if (parts_->fence == nullptr) [[likely]]
      return;
    context_.fence_ = parts_->fence.get();
    context_.method_ = method_->index;
    context_.path_ = internal::ServerFence::PathOf(context_.metadata());
    context_.permit_ = Fence::PermitOf(order_note(), hint.shed);
    ran_ = false;
  }
  // The permit, which the taker gives back when the call is answered.
  struct Permit {
    // `look`: see ServerFence::Ended().
    void GiveBack(bool* look) const {
      if (fence == nullptr) [[likely]]
        return;
      fence->Ended(method, permit, end, look);
    }
    internal::ServerFence* fence = nullptr;  // null: fences are off
    uint32_t method = 0;
    uint8_t permit = 0;  // 0: none
    PermitEnd end = PermitEnd::kUnused;
  };
  Permit PermitToGiveBack(const absl::Status& answer) {
    internal::ServerFence* const fence = parts_->fence.get();
    if (fence == nullptr) [[likely]]
      return {};
    return {fence, method_->index, std::exchange(context_.permit_, uint8_t{0}), fence->EndOf(ran_, answer)};
  }
  // Its handler is about to run.
  void Began(internal::ObservedCall& observed) {
    ran_ = true;
    if (observed.Began()) context_.observed_ = &observed;
  }
  // The stream has ended without an answer, and the call may be queued.
  virtual void OnAbandoned() {}
  // The requests that wait here will not run: tells their observers that `code` is the answer.
  virtual void NeverRun(absl::StatusCode code) = 0;

  // Immutable from New() to Free().
  internal::ServerParts* parts_ = nullptr;
  std::shared_ptr<internal::ServerConnection> connection_;
  internal::ServedMethod* method_ = nullptr;
  wire::StreamId id_ = 0;
  TimePoint due_;
  Priority priority_;  // of a server that refuses by it

  // Owned by the thread that runs the request.
  Context context_;
  internal::IncomingInterception intercepted_;
  bool ran_ = false;  // its handler, in this run; with fences only

  // Owned by the strand's holder.
  bool stream_open_ = true;
  enum class Credit : uint8_t { kNone, kForeign, kOwn };
  Credit credit_ = Credit::kNone;  // that it has; kOwn: its client knows credits
  uint32_t told_ = 0;              // credits, by its answer
  // Tells its client how many credits it has.
  void TellCredits();

 private:
  // Atomic: references; the one who takes it to zero sees what the others did (acq_rel).
  std::atomic<int> refs_{1};
  // Atomic: has a place in the queue. The one who takes it (acq_rel) owns what Run() uses.
  std::atomic<bool> placed_{false};
};

}  // namespace curtail
