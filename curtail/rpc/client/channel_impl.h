// SPDX-License-Identifier: Apache-2.0
//
// channel_impl.h - the private parts of Channel and Client.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "curtail/base/timer_heap.h"
#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/attempts.h"
#include "curtail/rpc/client/connection/client_connection.h"
#include "curtail/rpc/client/hedging.h"
#include "curtail/rpc/client/servers/name_lookups.h"
#include "curtail/rpc/client/servers/servers.h"
#include "curtail/rpc/client/servers/subchannel.h"
#include "curtail/rpc/stream/held_messages.h"

namespace curtail {

namespace internal {

// An event-driven call. Kept in the Client's pool for ever. The timer is its deadline.
class StartedCall final : public Attempt, public Timer {
 public:
  Client* client = nullptr;
  Channel* channel = nullptr;
  Completion* done = nullptr;
  bool timed_out = false;
  bool given_up = false;  // by its caller, which timed_out follows
  Attempts attempts;
  // Of a call whose method has a config: what it is made again with.
  std::string kept_message;
  Metadata kept_metadata;
  std::unique_ptr<HedgedCall> hedged;  // null: it is the only attempt now
  // Its time to be made again, or of the next attempt.
  struct Wait final : Timer {
    StartedCall* call = nullptr;
  } wait;

  // Has the next Client::Poll() carry out what was posted on `connection`, and watches it until it stands.
  static void Touch(Client& client, const std::shared_ptr<ClientConnection>& connection);

  void Finished() override;
  // The status of one that timed out, or was given up. `before` says how it stood.
  absl::Status Late(std::string_view before = {}) const;

 private:
  void CancelHandled() override;
};

}  // namespace internal

// Lanes and lookups are for any thread; the rest is owned by the thread that polls.
struct Client::Impl {
  class Hedged;
  explicit Impl(const ClientOptions& o) : options(o) {}

  const ClientOptions options;
  std::vector<std::unique_ptr<Lane>> lanes;
  internal::NameLookups lookups;

  std::vector<std::unique_ptr<internal::StartedCall>> pool;
  std::vector<internal::StartedCall*> free_calls;
  std::vector<internal::StartedCall*> failed;   // to be finished by the next Poll()
  std::vector<internal::StartedCall*> refused;  // by servers that have not seen them: to be sent again
  std::vector<std::shared_ptr<internal::ClientConnection>> dirty;
  // Connections whose attempt to connect may run out of time.
  std::vector<std::shared_ptr<internal::ClientConnection>> connecting;
  // The content of those two when Poll() began; empty outside of it.
  std::vector<internal::StartedCall*> failed_before;
  std::vector<internal::StartedCall*> refused_before;
  std::vector<std::shared_ptr<internal::ClientConnection>> dirty_before;
  TimerHeap timers;
  bool gave_up = false;  // calls, of which the next Poll() sees the timers
  TimerHeap waits;       // StartedCall::Wait
  std::string reply;     // the memory for the next reply that is not taken
  size_t completed = 0;  // that no Poll() has told; the start of a call may read replies to others

  // Thread-safe by itself. Last: its thread uses the connections of lanes.
  internal::HeldMessages held_messages{[](PollHandler& handler) { handler.OnEvents(0, nullptr); }};

  internal::StartedCall* NewCall();
  // Posts a call that is ready, on a connection of its channel, or has it wait for one. False: there is none, and the
  // next Poll() finishes it.
  bool Send(internal::StartedCall* call, TimePoint now);
  void Touch(const std::shared_ptr<internal::ClientConnection>& connection);
  // A call was sent whose method has a hedging policy.
  void Hedge(internal::StartedCall* call, TimePoint now);
  // Has a call that failed be made again, if that is to be.
  bool Again(internal::StartedCall* call, TimePoint now);
  void SendRefusedAgain();
  void EndWaits();
  void Finish(internal::StartedCall* call);
  void Cancel(internal::StartedCall* call);
  void ExpireTimers();
  // Gives up attempts to connect whose time is over; returns when the next is.
  Deadline GiveUpConnecting();
};

struct Channel::Impl {
  using Connected = absl::StatusOr<std::shared_ptr<internal::ClientConnection>>;

  Impl(Client* c, std::string t, ChannelOptions o);
  Impl(Client* c, const InProcess* service, ChannelOptions o);
  ~Impl();

  // A connection on `poller` that takes a call, connecting if need be; to a server that is not `used`, if there is one.
  // UNAVAILABLE during backoff.
  Connected Acquire(const std::shared_ptr<Poller>& poller, TimePoint now, const Metadata& metadata,
                    internal::UsedServers used = {}) {
    if (only_ != nullptr) [[likely]]
      return only_->Acquire(poller, now);
    if (servers_ == nullptr) return wrong_;
    return servers_->Acquire(poller, now, metadata, used);
  }
  // The same of a channel to one server with which that is quick; false: see Acquire().
  bool FindReady(const std::shared_ptr<Poller>& poller, TimePoint now,
                 std::shared_ptr<internal::ClientConnection>* connection) {
    return only_ != nullptr && only_->FindReady(poller, now, connection);
  }
  // OK once the servers' addresses are known. Asks for them the first time, which may block.
  absl::Status Resolve();
  // When a connection on `poller` may be asked for with some hope.
  TimePoint NextAttempt(const std::shared_ptr<Poller>& poller) {
    if (only_ != nullptr) return only_->NextAttempt(poller->id());
    return servers_ == nullptr ? TimePoint::max() : servers_->NextAttempt();
  }
  // Asks the interceptors about a call, whose `metadata` they may add to. TellInterceptors() follows. Errors: the first
  // of theirs.
  absl::Status Intercept(internal::OutgoingInterception& call, std::string_view path,
                         Metadata& metadata) const {
    if (options.interceptors.empty()) [[likely]]
      return absl::OkStatus();
    return call.Before(options.interceptors, Outgoing(path), metadata);
  }
  // Tells those that let the call pass, once, how it has ended.
  void TellInterceptors(internal::OutgoingInterception& call, std::string_view path,
                        const absl::Status& status) const {
    if (call.passed()) [[unlikely]]
      call.After(options.interceptors, Outgoing(path), status);
  }
  // The policy of the calls of this channel; null: none.
  internal::CallPolicy* policy() const { return policy_.get(); }
  // True if a server has answered a call.
  bool Answered() const;
  // Asks the resolver again, unless that was less than min_resolve_interval ago. May block.
  void LookUp() {
    if (servers_ != nullptr) servers_->LookUp();
  }

  Client* const client;
  const InProcess* const in_process = nullptr;  // null: by connections
  const std::string target;
  const ChannelOptions options;
  bool secure = false;  // see OutgoingCall; immutable after construction

 private:
  // A call of it, as its interceptors see it.
  OutgoingCall Outgoing(std::string_view path) const {
    return {.path = path, .target = target, .secure = secure};
  }
  absl::Status Connect();
  // Reads the service config; its balancer goes to `balancer`, and what that needs to know to `observation`.
  absl::Status Configure(internal::BalancerOptions* balancer, internal::Observation* observation);

  // Immutable after construction. One of the three is there, unless in_process is.
  absl::Status wrong_;                          // why no call can be made
  std::unique_ptr<internal::Subchannel> only_;  // the one address, which stays
  std::shared_ptr<internal::Servers> servers_;
  std::unique_ptr<internal::CallPolicy> policy_;
};

}  // namespace curtail
