// SPDX-License-Identifier: Apache-2.0
//
// housekeeper.h - what a server does about its memory from time to time: ends calls of the connections that hold most
// when the budget is exceeded, and gives free memory back to the system: soon after a flood, and now and then.
#pragma once

#include <memory>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/server/parts/server_parts.h"
#include "curtail/rpc/server/parts/timer_clock.h"

namespace curtail::internal {

// A Housekeeper looks every 20 s while little is held. Thread-safe.
class Housekeeper final : public Clocked, public std::enable_shared_from_this<Housekeeper> {
 public:
  // `parts` live until Stop().
  explicit Housekeeper(ServerParts& parts) : parts_(parts) {}
  ~Housekeeper() { Stop(); }

  // Once, when the clock runs.
  void Start();
  // The budget rose above one of its lines.
  void Rouse();
  void Stop() { parts_.clock->Disarm(*this); }

  // Clocked.
  void OnClock(TaskList* ready) override;
  std::shared_ptr<Clocked> KeepAlive() override { return weak_from_this().lock(); }

 private:
  void Shed(TaskList* ready);
  // Looks at `when`, or earlier if it is to.
  void LookBy(TimePoint when);

  ServerParts& parts_;
  Mutex mu_;
  TimePoint next_ CURTAIL_GUARDED_BY(mu_) = TimePoint::max();
  bool roused_ CURTAIL_GUARDED_BY(mu_) = false;
};

}  // namespace curtail::internal
