// SPDX-License-Identifier: Apache-2.0
//
// server_connection.h - the server's end of a connection: makes calls of its streams, and bounds what its client may
// have it hold and wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/server/parts/server_parts.h"
#include "curtail/rpc/server/parts/timer_clock.h"
#include "curtail/rpc/transport/connection.h"
#include "curtail/rpc/transport/peer_identity.h"

namespace curtail {
class ServerCall;
}

namespace curtail::internal {

// A ServerConnection hands each request that has come whole to the executor, and sends the replies.
class ServerConnection final : public Connection, public Clocked {
 public:
  // `peer` is the client's address.
  ServerConnection(ServerParts& parts, UniqueFd fd, std::shared_ptr<Poller> poller,
                   std::unique_ptr<TlsStream> tls, std::string peer);
  ~ServerConnection() override;

  // Starts the clock of a connection that was just accepted. Call once, before Register().
  void StartClock();
  // A request that waited for a thread has left the queue. Any thread.
  void Dequeued() { queued_.fetch_sub(1, std::memory_order_relaxed); }
  // The bytes that it was charged for last. Any thread.
  size_t charged() const { return charged_.load(std::memory_order_relaxed); }

  // The bytes that its streams hold: see NewStreamCall().
  std::atomic<int64_t>* streamed() { return &streamed_; }
  ParsedCharge& charge() { return charge_; }
  // Its credits; the strand's holder's. REQUIRES: the server gives some.
  CreditAccount& account() { return *account_; }
  // Of its client; null without a verified certificate. Set before the first call.
  const PeerIdentity* identity() const { return identity_.get(); }

  // Clocked.
  void OnClock(TaskList* ready) override { Kick(kClock, ready); }
  std::shared_ptr<Clocked> KeepAlive() override;

 private:
  using Metadata = wire::Metadata;
  // Calls that begin between two looks at what is held.
  static constexpr uint64_t kLookEvery = 64;
  // After a call's deadline, for handlers that keep it themselves.
  static constexpr Nanos kGrace = std::chrono::milliseconds(50);
  // Something that ends the connection unless it changes in time.
  struct Watch {
    uint64_t seen = 0;  // the counter that shows progress
    TimePoint since;    // when it was first seen so; zero: not watched
  };

  void HandleOp(Op* op) override;
  void HandleGoodbye(uint32_t bits) override;
  void OnConnected() override;
  void HandleClock(uint32_t bits) override;
  void Looked() override;
  void OnClosed(const absl::Status& why, bool connected) override;
  void* OnRequest(wire::StreamId id, wire::RequestHead&& head) override;
  void OnMessage(wire::StreamId id, void* tag, std::string&& message) override;
  void OnRequestEnd(wire::StreamId id, void* tag) override;
  void OnWritable(wire::StreamId id, void* tag) override;
  void OnCallEnd(wire::StreamId id, void* tag, absl::Status&& status, Metadata&& trailing) override;
  void OnLimit(wire::Limit limit) override { parts_.limits.Reached(limit, peer_); }
  // Null: the server lacks the method. Most requests call the method of the one before.
  ServedMethod* MethodOf(std::string_view path) {
    if (last_method_ == nullptr || last_method_->path != path) last_method_ = parts_.methods.Find(path);
    return last_method_;
  }
  void Queue(ServerCall& call);
  // The time, if there are observers to be told that a request has come.
  TimePoint ArrivedAt() { return parts_.observers.empty() ? TimePoint() : now(); }

  // server_connection_clock.cc
  // Has the clock tell of `when` at the latest.
  void WakeBy(TimePoint when);
  // Ends the calls whose deadline has passed; returns the first of the others'.
  TimePoint EndLateCalls(TimePoint now);
  void Give(ServerLimit limit, const char* why);
  // The next step towards its end by age is due: the notice, the goodbye, the end.
  void GrowOld(TimePoint now);
  // Notes that what `counter` counts has not come; true if it has not for `limit`.
  bool Late(Watch* watch, uint64_t counter, Nanos limit, TimePoint now);

  // server_connection_limits.cc
  // Takes nothing of the client for a while, since `bytes` were inflated, or parsed, that it did not send.
  void Rest(uint64_t bytes);
  void EndRest();
  bool resting() const { return go_on_at_ != TimePoint(); }
  // Messages took so many bytes once they were parsed.
  void Grew(uint64_t bytes);
  // Ends the calls that wait for the client.
  void Shed();
  // Charges the budget, and draws the conclusions.
  void Charge(size_t memory);

  // Immutable after construction.
  ServerParts& parts_;
  const std::shared_ptr<TimerClock> clock_;
  const std::string peer_;
  const uint32_t flow_;  // of its calls
  TimePoint accepted_;   // set by StartClock()
  // Set by OnConnected(), of TLS.
  std::unique_ptr<const PeerIdentity> identity_;

  // Owned by the strand's holder.
  enum class Age : uint8_t { kYoung, kNoticed, kLeaving };
  Age age_ = Age::kYoung;
  TimePoint age_at_ = TimePoint::max();   // when the next step is due
  TimePoint wake_at_ = TimePoint::max();  // when the clock will tell
  TimePoint go_on_at_;                    // the end of a rest; zero: it does not rest
  uint64_t earned_ = 0;                   // bytes that messages may take beside those that come
  uint64_t counted_ = 0;                  // of received(), when that was last reckoned
  Watch input_;                           // half a frame
  Watch output_;                          // a socket that takes nothing
  Watch calls_;                           // no call
  uint64_t begun_ = 0;                    // calls
  ServedMethod* last_method_ = nullptr;   // of the last request; null: there was none, or no such method
  size_t unended_ = 0;                    // bytes of messages whose requests have not ended
  size_t unended_limit_ = SIZE_MAX;
  size_t running_ = 0;  // bytes of whole requests that are not answered
  bool refusing_ = false;
  std::optional<CreditAccount> account_;  // empty: the server gives no credits

  // Thread-safe by itself.
  ParsedCharge charge_;
  // Atomic, relaxed: a counter that readers and writers of streams change.
  std::atomic<int64_t> streamed_{0};
  // Atomic, relaxed: written by the strand's holder.
  std::atomic<size_t> charged_{0};
  // Atomic, relaxed: requests in the server's queue.
  std::atomic<uint32_t> queued_{0};
};

}  // namespace curtail::internal
