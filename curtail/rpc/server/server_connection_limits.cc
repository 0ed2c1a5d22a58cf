// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A client may have the server hold memory, and may leave things half done. Both are looked at when a turn of
// the strand ends, which costs some comparisons, and when a clock rings (server_connection_clock.cc).
//
//   L1  Memory. The connection says what it holds to the server's MemoryBudget, in steps of kStep. Unfinished requests
//       are limited by the session (LimitHeld): the call that exceeds the limit ends. Whole requests are limited by a
//       pause: bytes stay in the socket until they are answered. They progress without the client, so the pause ends.
//   L2  What waits for the client cannot be waited for with a pause, since the bytes that it needs (the rest of a
//       request, a WINDOW_UPDATE) may be among those that stay in the socket. So while such calls hold too much,
//       new ones are refused; and when the budget is exceeded, the Housekeeper has the greatest holders end them.
//   L3  Connections below MemoryBudget::share() are not touched: whoever holds little is served during an attack.
//   L4  Inflating. A connection has a share of a thread's time for messages that inflate to more than eight times their
//       size: kInflateBytes, then kInflateRest. Meanwhile its bytes stay in the socket. The more connections rest, the
//       longer each does, so that all of them together have one share in kInflateEach. What messages take once they are
//       parsed, beyond kGrowsTo times the bytes that came, takes time of the same share. So does metadata that header
//       blocks have copied from HPACK's table: the session counts it as inflated.
#include <algorithm>
#include <utility>
#include <vector>

#include "curtail/rpc/server/server_call.h"
#include "curtail/rpc/server/server_connection.h"

namespace curtail::internal {
namespace {

// Changes of what is held that are not worth telling the budget.
constexpr size_t kStep = 4u << 10;
// Replies that wait for the client's windows; beyond it new calls are refused.
constexpr size_t kMaxReplies = 64u << 20;
// How often a connection that is paused for the budget looks again.
constexpr Nanos kPausePeriod = std::chrono::milliseconds(100);
// How long a connection rests that has inflated its share.
constexpr Nanos kInflateRest = std::chrono::milliseconds(16);
// ... for each of those that rest.
constexpr Nanos kInflateEach = std::chrono::milliseconds(4);
// Messages of small parts become ten times as long, compressed texts eight times.
constexpr uint64_t kGrowsTo = 16;
constexpr uint64_t kMaxEarned = 1u << 20;

}  // namespace

void ServerConnection::Rest(uint64_t bytes) {
  if (!resting()) parts_.resting.fetch_add(1, std::memory_order_relaxed);
  const Nanos each = parts_.resting.load(std::memory_order_relaxed) * kInflateEach;
  const double shares = std::max(1.0, static_cast<double>(bytes) / ServerParts::kInflateBytes);
  go_on_at_ = std::max(go_on_at_, Now() + std::max(kInflateRest, FromSeconds(InSeconds(each) * shares)));
  WakeBy(go_on_at_);
}

void ServerConnection::EndRest() {
  if (std::exchange(go_on_at_, {}) != TimePoint()) parts_.resting.fetch_sub(1, std::memory_order_relaxed);
}

void ServerConnection::Grew(uint64_t bytes) {
  earned_ += kGrowsTo * (received() - std::exchange(counted_, received()));
  const uint64_t paid = std::min(earned_, bytes);
  earned_ = std::min(earned_ - paid, kMaxEarned);
  if (bytes - paid >= ServerParts::kInflateBytes / 8) Rest(bytes - paid);
}

void ServerConnection::Shed() {
  const absl::Status why = absl::ResourceExhaustedError("the server holds too much for its clients");
  for (const auto& call : session().OpenCalls()) {
    if (!call.waits) continue;
    parts_.limits.Reached(ServerLimit::kBudget, peer_);
    session().FailCall(call.id, why);
  }
}

void ServerConnection::Looked() {
  const auto streamed = static_cast<size_t>(streamed_.load(std::memory_order_relaxed));
  const size_t memory = session().memory_bytes() + outgoing() + unended_ + running_ + streamed;
  const size_t change = memory - charged_.load(std::memory_order_relaxed) + kStep;
  const bool stalled = session().stalled();
  charge_.Received(received());
  const bool grew = charge_.grew();
  if (change > 2 * kStep || refusing_ || paused() || stalled || grew || parts_.budget.over()) [[unlikely]] {
    if (grew) Grew(charge_.TakeGrown());
    for (uint64_t n = charge_.TakeRefusals(); n > 0; --n) parts_.limits.Reached(ServerLimit::kParsed, peer_);
    if (stalled && !resting()) Rest(0);
    Charge(memory);
  }
  if (session().input_unfinished() && !resting()) [[unlikely]] {
    Late(&input_, session().inputs(), parts_.handshake_timeout, now());
  }
  if (blocked()) [[unlikely]] {
    Late(&output_, written(), parts_.write_timeout, Now());
  }
}

void ServerConnection::Charge(size_t memory) {
  parts_.budget.Add(static_cast<int64_t>(memory) -
                    static_cast<int64_t>(charged_.load(std::memory_order_relaxed)));
  charged_.store(memory, std::memory_order_relaxed);
  const bool over = parts_.budget.over() && memory > parts_.budget.share();  // L3
  const size_t most = parts_.session.max_partial_bytes;
  unended_limit_ = over ? parts_.budget.share() : std::max(most, parts_.session.max_message_bytes);
  const size_t limit = over ? parts_.budget.share() : most;
  session().LimitHeld(limit > unended_ ? limit - unended_ : 0, over ? 0 : parts_.session.max_message_bytes);
  const size_t replies = session().queued_bytes();
  refusing_ = over || replies > kMaxReplies ||
              memory - replies - running_ > 2 * most + parts_.session.max_message_bytes;
  SetOverloaded(refusing_);
  const bool pause = (running_ > most && session().open_streams() > 1) || (over && running_ > 0) ||
                     (blocked() && memory > most) || resting();
  if (pause && over) WakeBy(Now() + kPausePeriod);
  Pause(pause);
}

}  // namespace curtail::internal
