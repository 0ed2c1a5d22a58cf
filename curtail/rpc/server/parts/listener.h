// SPDX-License-Identifier: Apache-2.0
//
// listener.h - a socket that accepts connections for a server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/server/parts/timer_clock.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::internal {

// A Listener accepts. It keeps a spare descriptor: when descriptors run out, it accepts a connection and closes it,
// which would otherwise wait in the backlog without an answer. Then it pauses for a moment. Thread-safe.
class Listener final : public PollHandler, public Clocked, public std::enable_shared_from_this<Listener> {
 public:
  // `accepted` takes each connection, on the threads that handle events, with the listener's mutex held; and no
  // connection when descriptors have run out.
  Listener(UniqueFd fd, std::shared_ptr<Poller> poller, std::shared_ptr<TimerClock> clock,
           std::function<void(UniqueFd)> accepted);
  ~Listener() override { clock_->Disarm(*this); }

  // Starts to accept.
  absl::Status Register(std::shared_ptr<Listener> self);
  // Stops; afterwards `accepted` is called no more. Idempotent.
  void Close();

  void OnEvents(uint32_t events, TaskList*) override;

  // Clocked.
  void OnClock(TaskList* ready) override;
  std::shared_ptr<Clocked> KeepAlive() override { return weak_from_this().lock(); }

 private:
  // Immutable after construction.
  const std::shared_ptr<Poller> poller_;
  const std::shared_ptr<TimerClock> clock_;
  const std::function<void(UniqueFd)> accepted_;

  Mutex mu_;
  UniqueFd fd_ CURTAIL_GUARDED_BY(mu_);
  UniqueFd spare_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail::internal
