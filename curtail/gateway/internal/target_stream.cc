// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. One thread owns the client and all streams, so it is the holder of each connection's strand whenever something
// happens here. What a stream wants of its connection is an operation that lies in the stream: the stream lives until
// none is under way.
#include "curtail/gateway/internal/target_stream.h"

#include <algorithm>
#include <utility>

#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/client/channel_impl.h"

namespace curtail::gateway::internal {
namespace {

using curtail::internal::StartedCall;

// Requests that one stream sends while others wait.
constexpr int kTurnRequests = 64;

}  // namespace

absl::Status TargetStream::Begin(Channel& channel, std::string_view path, Metadata metadata,
                                 Deadline deadline) {
  Channel::Impl& impl = channel.impl();
  const TimePoint now = Now();
  curtail::internal::Attempts attempts;
  attempts.Begin(impl.policy(), path);
  if (attempts.method() != nullptr && attempts.method()->timeout) {
    deadline = std::min(deadline, Deadline::At(now + *attempts.method()->timeout));
  }
  if (deadline.when() <= now)
    return absl::DeadlineExceededError("deadline exceeded before the call was sent");
  head.path.assign(path);
  head.metadata = std::move(metadata);
  head.encoding = impl.options.encoding;
  if (absl::Status refused = impl.Intercept(leaving, path, head.metadata); !refused.ok()) return refused;
  auto connection = impl.Acquire(impl.client->lane(0).poller(), now, head.metadata);
  if (!connection.ok()) {
    impl.TellInterceptors(leaving, path, connection.status());
    return connection.status();
  }
  stream = this;
  channel_ = &channel;
  connection_ = *std::move(connection);
  deadline_ = deadline;
  SetTimeout(deadline, now);
  open_ = true;
  connection_->Begin(*this);
  PostTurn();
  return absl::OkStatus();
}

void TargetStream::Cancel(absl::Status why) {
  if (!open_ || std::exchange(cancel_posted_, true)) return;
  why_ = std::move(why);
  connection_->Post(&cancel);
  StartedCall::Touch(*channel_->impl().client, connection_);
}

void TargetStream::Read(bool on) {
  if (wanted_ == on) return;
  wanted_ = on;
  PostTurn();
}

void TargetStream::PostTurn() {
  if (!open_ || std::exchange(turn_posted_, true)) return;
  connection_->Post(&turn_);
  StartedCall::Touch(*channel_->impl().client, connection_);
}

void TargetStream::OnMessage(std::string&& bytes, wire::Session& session, wire::StreamId id) {
  if (cancel_posted_) return;
  OnReply(std::move(bytes));
  if (reads_ != wanted_) session.SetReading(id, reads_ = wanted_);
}

void TargetStream::OnTurn(wire::Session& session, wire::StreamId id, bool posted) {
  if (posted) turn_posted_ = false;
  if (!open_ || cancel_posted_) return;
  if (reads_ != wanted_) session.SetReading(id, reads_ = wanted_);
  for (int i = 0; !requests_ended_ && session.queued_bytes(id) <= wire::kWritableBytes; ++i) {
    if (i == kTurnRequests) return PostTurn();
    std::string request;
    if (NextRequest(&request)) {
      session.SendMessage(id, std::move(request));
    } else if (!cancel_posted_) {
      requests_ended_ = true;
      session.EndRequest(id);
    } else {
      return;
    }
  }
  if (requests_ended_ && session.queued_bytes(id) == 0) OnRequestsLeft();
}

void TargetStream::Finished() {
  open_ = false;
  absl::Status end = why_.ok() ? std::move(status) : std::move(why_);
  // The target ends a call that is late, perhaps before the timer here.
  if (absl::IsCancelled(end) && deadline_.Expired()) {
    end = absl::DeadlineExceededError("deadline exceeded on a stream");
  }
  const Channel::Impl& impl = channel_->impl();
  impl.TellInterceptors(leaving, head.path, end);
  OnEnd(end, std::move(ClientCall::metadata));
}

}  // namespace curtail::gateway::internal
