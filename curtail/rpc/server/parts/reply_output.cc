// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/parts/reply_output.h"

#include <atomic>
#include <utility>

#include "curtail/exec/task.h"
#include "curtail/exec/wait.h"

namespace curtail::internal {
namespace {

// How long output may wait for more to share its write, besides kPriceOfSend for each connection.
constexpr Nanos kMaxHold = std::chrono::microseconds(50);

}  // namespace

void ReplyOutput::Output(std::shared_ptr<Connection> connection) {
  const WaitHint& hint = CurrentWait();
  if (hint.outbox != this) return Kick(*connection, Connection::kPosted);
  if (!hint.more_ready && held_[hint.thread_index].handlers.empty()) {
    return Kick(*connection, Connection::kPosted);
  }
  Hold(hint.thread_index, std::move(connection));
  if (hint.more_ready) return FlushIfDue(hint.thread_index);
  Flush(hint.thread_index);
}

void ReplyOutput::Kick(Connection& connection, uint32_t bits) {
  TaskList ready;
  connection.Kick(bits, &ready);
  if (!ready.empty()) executor_->Submit(ready);
}

void ReplyOutput::FlushAll() {
  for (size_t i = 0; i < held_.size(); ++i) Flush(static_cast<uint32_t>(i));
}

void ReplyOutput::Hold(uint32_t thread_index, std::shared_ptr<PollHandler> handler) {
  static std::atomic<uint64_t> lists{0};
  Held& held = held_[thread_index];
  if (held.handlers.empty()) {
    held.since = TimePoint();
    held.list = lists.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  if (handler->held_in.load(std::memory_order_relaxed) == held.list) return;
  handler->held_in.store(held.list, std::memory_order_relaxed);
  held.handlers.push_back(std::move(handler));
}

bool ReplyOutput::HoldBriefly(uint32_t thread_index, std::shared_ptr<PollHandler> handler, TimePoint now) {
  if (!messages_.Hold(handler, now)) return false;
  Hold(thread_index, std::move(handler));
  return true;
}

void ReplyOutput::Send(PollHandler& handler) {
  TaskList ready;
  handler.OnEvents(0, &ready);
  if (!ready.empty()) executor_->Submit(ready);
}

void ReplyOutput::FlushIfDue(uint32_t thread_index) {
  Held& held = held_[thread_index];
  if (held.handlers.empty()) return;
  const TimePoint now = Now();
  if (held.since == TimePoint()) held.since = now;
  if (now - held.since > kMaxHold + held.handlers.size() * kPriceOfSend) Flush(thread_index);
}

void ReplyOutput::Flush(uint32_t thread_index) {
  Held& held = held_[thread_index];
  if (held.handlers.empty()) return;
  TaskList ready;
  for (const auto& handler : held.handlers) handler->OnEvents(0, &ready);
  held.handlers.clear();
  if (!ready.empty()) executor_->Submit(ready);
}

}  // namespace curtail::internal
