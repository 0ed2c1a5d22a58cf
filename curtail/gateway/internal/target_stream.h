// SPDX-License-Identifier: Apache-2.0
//
// target_stream.h - a call of many messages to the target, driven by events.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/timer_heap.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/connection/client_call.h"
#include "curtail/rpc/client/connection/client_connection.h"

namespace curtail::gateway::internal {

// A TargetStream is one call. The timer is its deadline: its owner has it run out by OnDeadline(). Only
// the thread that polls the client may use it. It is destroyed once gone().
class TargetStream : public Timer,
                     private curtail::internal::ClientCall,
                     private curtail::internal::ClientStreamEvents {
 public:
  TargetStream(const TargetStream&) = delete;
  TargetStream& operator=(const TargetStream&) = delete;

  // Begins the call. Errors: why it does not begin; it is gone then, and no event comes.
  absl::Status Begin(Channel& channel, std::string_view path, Metadata metadata, Deadline deadline);
  // The call ends with `why`, unless it ends before. OnEnd() comes later.
  void Cancel(absl::Status why);
  // Lets the target send more than its window allows, or not.
  void Read(bool on);
  // When its timer is due; infinite: never.
  Deadline deadline() const { return deadline_; }
  void OnDeadline() { Cancel(absl::DeadlineExceededError("deadline exceeded on a stream")); }
  // True if nothing refers to it.
  bool gone() const { return !open_ && !turn_posted_ && !cancel_posted_; }

 protected:
  TargetStream() = default;
  ~TargetStream() = default;

  // Goes on with the requests, soon.
  void PostTurn();

  // Until OnEnd().
  const Metadata& reply_head() const { return ClientCall::metadata.initial; }

  // The next request of the client. False: there is none. It may Cancel().
  virtual bool NextRequest(std::string* message) = 0;
  // The requests have left. The last of them may do so unseen: PostTurn() looks again.
  virtual void OnRequestsLeft() = 0;
  // The initial metadata has come: reply_head(). Not of a reply that is a status alone.
  virtual void OnReplyHead() = 0;
  virtual void OnReply(std::string&& message) = 0;
  virtual void OnEnd(const absl::Status& status, ReplyMetadata&& metadata) = 0;

 private:
  // ClientStreamEvents.
  void OnStanding() final {}
  void OnHead() final { OnReplyHead(); }
  void OnMessage(std::string&& message, wire::Session& session, wire::StreamId id) final;
  void OnTurn(wire::Session& session, wire::StreamId id, bool posted) final;
  // ClientCall.
  void Finished() final;
  void CancelHandled() final { cancel_posted_ = false; }

  Channel* channel_ = nullptr;
  std::shared_ptr<curtail::internal::ClientConnection> connection_;
  curtail::internal::ClientOp turn_{curtail::internal::ClientOp::Kind::kTurn, this};
  Deadline deadline_ = Deadline::Infinite();
  bool open_ = false;
  bool turn_posted_ = false;
  bool cancel_posted_ = false;
  bool requests_ended_ = false;
  bool reads_ = true;   // what the session knows
  bool wanted_ = true;  // ... and is to know
  absl::Status why_;    // of an end that is ours
};

}  // namespace curtail::gateway::internal
