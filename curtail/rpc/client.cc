// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/internal/channel_impl.h"

namespace curtail {

using internal::ClientConnection;
using internal::Connection;
using internal::StartedCall;

void internal::StartedCall::Finished() {
  if (timed_out) status = absl::DeadlineExceededError("deadline exceeded");
  client->impl_->Finish(this);
}

StartedCall* Client::Impl::NewCall() {
  if (free_calls.empty()) {
    pool.push_back(std::make_unique<StartedCall>());
    free_calls.push_back(pool.back().get());
  }
  StartedCall* call = free_calls.back();
  free_calls.pop_back();
  ++call->serial;
  call->Reset();
  call->timed_out = false;
  call->active = true;
  return call;
}

void Client::Impl::Finish(StartedCall* call) {
  ++completed;
  Completion* done = call->done;
  absl::Status status = std::move(call->status);
  std::string reply = std::move(call->reply);
  call->active = false;
  call->connection.reset();
  free_calls.push_back(call);
  done->Done(std::move(status), std::move(reply));
}

void Client::Impl::ExpireTimers() {
  if (timers.empty()) return;
  const TimePoint now = Now();
  while (!timers.empty() && timers.top().when <= now) {
    const Timer timer = timers.top();
    timers.pop();
    if (!timer.call->active || timer.call->serial != timer.serial) continue;
    timer.call->timed_out = true;
    const std::shared_ptr<ClientConnection> connection = timer.call->connection;
    connection->Post(&timer.call->cancel);
    connection->Kick(Connection::kPosted, nullptr);
  }
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>()) {
  for (int i = 0; i < std::max(1, options.lanes); ++i) impl_->lanes.push_back(std::make_unique<Lane>());
}

Client::~Client() = default;

Lane& Client::lane(size_t index) { return *impl_->lanes[index]; }
size_t Client::lane_count() const { return impl_->lanes.size(); }
void Client::Wake() { impl_->lanes[0]->poller().Wake(); }

size_t Client::Poll(Deadline deadline) {
  Impl& impl = *impl_;
  impl.completed = 0;
  while (!impl.dirty.empty()) {
    const std::vector<std::shared_ptr<ClientConnection>> dirty = std::move(impl.dirty);
    impl.dirty.clear();
    for (const auto& connection : dirty) {
      connection->dirty = false;
      connection->Kick(Connection::kPosted, nullptr);
    }
  }
  while (!impl.failed.empty()) {
    StartedCall* call = impl.failed.back();
    impl.failed.pop_back();
    impl.Finish(call);
  }
  while (!impl.timers.empty() &&
         (!impl.timers.top().call->active || impl.timers.top().call->serial != impl.timers.top().serial)) {
    impl.timers.pop();
  }
  if (!impl.timers.empty()) deadline = std::min(deadline, Deadline::At(impl.timers.top().when));
  if (impl.completed > 0) deadline = Deadline::At(TimePoint());
  impl.lanes[0]->PollOnce(deadline);
  impl.ExpireTimers();
  return impl.completed;
}

}  // namespace curtail
