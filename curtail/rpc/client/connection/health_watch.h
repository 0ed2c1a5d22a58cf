// SPDX-License-Identifier: Apache-2.0
//
// health_watch.h - asks a server over one connection how it is, and hears when that changes.
//
// https://github.com/grpc/proposal/blob/master/A17-client-side-health-checking.md
#pragma once

#include <atomic>
#include <string>

#include "curtail/rpc/client/connection/client_call.h"
#include "curtail/rpc/client/connection/connection_slot.h"

namespace curtail::internal {

// A HealthWatch is the call of Health/Watch of one connection, which owns it. All methods on the strand, but for those
// that say otherwise. The protocol is at the top of health_watch.cc.
class HealthWatch final : public ClientCall, private ClientStreamEvents {
 public:
  HealthWatch(SharedBackend& server, const std::string& service);

  // True if the server has said how it is, or that it never will. Any thread.
  bool known() const { return known_.load(std::memory_order_acquire); }
  // True if the watch does not run, and may be begun now: the caller posts its start. Any thread.
  bool TakeStart(TimePoint now);
  // Makes it ready for that, ahead of it.
  void Prepare();
  // Set by the connection ahead of Finished(): whether it goes on.
  bool connection_lives = true;

 private:
  enum class State : uint8_t { kWatching, kEnded };

  void Tell(bool serves);
  void OnStanding() override {}
  void OnHead() override {}
  void OnMessage(std::string&& message, wire::Session& session, wire::StreamId id) override;
  void OnTurn(wire::Session&, wire::StreamId, bool) override {}
  void Finished() override;
  void CancelHandled() override {}

  // Immutable after construction.
  SharedBackend& server_;
  const std::string request_;

  // Atomic: rises once (release, pairs with known()).
  std::atomic<bool> known_{false};
  // Atomic, acq_rel: who takes it from kEnded posts the call, which sets it again as its last act.
  std::atomic<State> state_{State::kEnded};
  // Atomic, relaxed: when it last ended.
  std::atomic<int64_t> ended_at_{0};
};

}  // namespace curtail::internal
