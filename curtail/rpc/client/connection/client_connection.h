// SPDX-License-Identifier: Apache-2.0
//
// client_connection.h - the client's end of a connection.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/client/connection/client_call.h"
#include "curtail/rpc/client/connection/connection_slot.h"
#include "curtail/rpc/client/connection/credit_queue.h"
#include "curtail/rpc/client/connection/health_watch.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail::internal {

// When a connection pings its server; off if `time` is zero.
struct Keepalive {
  Nanos time{0};
  Nanos timeout{0};
};

// The things that a connection finds out about its server for the balancer; none without a SharedBackend.
struct Observation {
  bool outcomes = false;                      // counts how calls end, for outlier detection
  uint32_t row = 0;                           // ... of so many failures the balancer hears; 0: of none
  std::optional<double> error_penalty;        // reads the load that calls report, by WeightOptions
  std::optional<std::string> health_service;  // watches the health of this service
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(const wire::SessionOptions& options, UniqueFd fd, std::shared_ptr<Poller> poller,
                   bool connected, std::unique_ptr<TlsStream> tls, TimePoint give_up,
                   std::weak_ptr<Slot> slot, std::string target, std::shared_ptr<SharedBackend> shared,
                   Keepalive keepalive, Observation observation, TargetConnections* counts);
  ~ClientConnection() override;

  // Posts the start of `call`. Follow with a kick, now or after more posts.
  void Begin(ClientCall& call) {
    if (shared_ != nullptr) shared_->outstanding.fetch_add(1, std::memory_order_relaxed);
    if (keepalive_.time > Nanos::zero() && look_at_.load(std::memory_order_relaxed) == kNever) [[unlikely]]
      LookAt(Now() + keepalive_.time);
    if (credits_ != nullptr) [[unlikely]]
      NoteWait(call);
    Post(&call.start);
  }

  // Calls wait for credits of the server from now on. Before the first Begin().
  void UseCredits() { credits_ = std::make_unique<CreditQueue>(); }

  // True if new calls may be posted with some hope. Any thread.
  bool usable() const { return usable_.load(std::memory_order_acquire); }
  // When a call was last posted. Any thread; approximate.
  TimePoint last_used() const { return TimePoint(Nanos(last_used_.load(std::memory_order_relaxed))); }
  void Touch(TimePoint now) { last_used_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
  // When an attempt to connect (TLS handshake included) that is still under way is to be given up; infinite once
  // the connection stands. Any thread.
  Deadline connect_deadline() const {
    return standing_.load(std::memory_order_acquire) ? Deadline::Infinite() : Deadline::At(give_up_);
  }
  // When a thread that waits for its calls is to Look() at it: an attempt to connect may be given up, or the server be
  // silent for too long. Any thread.
  Deadline look_at() const {
    return standing_.load(std::memory_order_acquire)
               ? Deadline::At(TimePoint(Nanos(look_at_.load(std::memory_order_relaxed))))
               : Deadline::At(give_up_);
  }
  void Look();
  // Begins the watch of the server's health, if there is one and it does not run. Follow with a kick. Any thread.
  void WatchHealth(TimePoint now);
  // True if calls may go out now: the transport stands, and the server has said how it is. Any thread.
  bool ready() const {
    return standing_.load(std::memory_order_acquire) && (health_ == nullptr || health_->known());
  }
  // True if look_at() may come again after it was infinite.
  bool looks_again() const { return keepalive_.time > Nanos::zero() || credits_ != nullptr; }
  // The server among those of its channel; null: it is the only one.
  const SharedBackend* server() const { return shared_.get(); }
  // True if its server has ever answered a call. Any thread.
  bool greeted() const { return greeted_.load(std::memory_order_acquire); }

  // For event-driven use: whether calls were posted that no kick has followed. Owned by the polling thread.
  bool dirty = false;
  // ... and whether the client has seen to its connect_deadline().
  bool watched = false;

 private:
  static constexpr int64_t kNever = TimePoint::max().time_since_epoch().count();

  void LookAt(TimePoint when) { look_at_.store(when.time_since_epoch().count(), std::memory_order_relaxed); }
  void HandleOp(Op* op) override;
  void HandleClock(uint32_t bits) override;
  void HandleGoodbye(uint32_t bits) override;
  void OnConnected() override;
  void OnClosed(const absl::Status& why, bool connected) override;
  bool PeerIsKnown() const override { return counts_.answered.load(std::memory_order_relaxed); }
  void OnResponseHead(wire::StreamId id, void* tag, wire::Metadata&& metadata) override;
  void OnMessage(wire::StreamId id, void* tag, std::string&& message) override;
  void OnWritable(wire::StreamId id, void* tag) override;
  void OnCallUnprocessed(wire::StreamId id, void* tag, std::string&& message) override;
  void OnReply(wire::StreamId id, void* tag, std::string_view message) override;
  void OnCallEnd(wire::StreamId id, void* tag, absl::Status&& status, wire::Metadata&& trailing) override;
  void OnGoaway(wire::StreamId last, std::string_view why) override;
  void Start(ClientCall& call);
  // Sends it with `head`: its own, or a copy that was changed.
  void Send(ClientCall& call, const wire::RequestHead& head);
  // The stream of a call is over, and its outcome is there.
  inline void End(ClientCall& call);
  // Its server has answered a call.
  void NoteGreeted();
  // The end of a call that Begin() began; the last touch of it.
  void Finish(ClientCall& call) {
    if (shared_ != nullptr) Count(call);
    call.Finished();
  }
  void Count(ClientCall& call);
  // Ends the watch of the server's health.
  void EndWatch();
  // Counts that it stands, or that it is over.
  void CountStanding();
  void CountEnd();

  // client_connection_credits.cc; all but the last REQUIRE credits_.
  // Any thread: `call`, which is begun, may have to wait.
  void NoteWait(ClientCall& call);
  // Sends `call` if it has a credit. Else it waits, or ends.
  void SendOrWait(ClientCall& call);
  // Sends `call`, which has a credit, with `head` and the demand of the calls that wait.
  void SendWithCredit(ClientCall& call, wire::RequestHead head, size_t demand);
  void SendWaiting();
  void Refuse(ClientCall& call, std::string_view why);
  void RefuseOverdue(TimePoint now);
  // Ends those that wait, which no server has seen.
  void EndWaiting(const absl::Status& why);
  // Looks at `when`, or when a call that waits is overdue.
  void LookNext(TimePoint when);

  // Immutable after construction.
  const TimePoint give_up_;
  const std::weak_ptr<Slot> slot_;
  const std::string target_;
  const Keepalive keepalive_;
  const std::shared_ptr<SharedBackend> shared_;  // null: the only server of its channel
  const bool counts_outcomes_;
  const uint32_t row_;
  const std::optional<double> error_penalty_;  // nothing: reports of load are not read
  const std::unique_ptr<HealthWatch> health_;  // the object is thread-safe as it says; null: no watch
  TargetConnections& counts_;                  // thread-safe by itself

  // Set before the first call, and the strand's holder's from then on; null: calls need no credits.
  std::unique_ptr<CreditQueue> credits_;

  // Atomic. usable_ falls once (release, pairs with usable()); standing_ and greeted_ rise once; last_used_
  // is a hint.
  std::atomic<bool> usable_{true};
  std::atomic<bool> standing_;
  std::atomic<bool> greeted_{false};
  std::atomic<int64_t> last_used_{0};
  std::atomic<int64_t> look_at_{kNever};  // a hint, for keepalive

  // Owned by the strand's holder.
  enum class Counted : uint8_t { kAttempt, kStanding, kOver };
  Counted counted_ = Counted::kAttempt;
  uint64_t heard_ = 0;                  // session().inputs() at the last look
  TimePoint answer_by_;                 // of a PING, if nothing was heard since; else zero
  std::vector<ClientCall*> impatient_;  // streams begun before the transport stood
  absl::Status why_closed_;
  std::string goaway_why_;  // of a goodbye because of an error
};

}  // namespace curtail::internal
