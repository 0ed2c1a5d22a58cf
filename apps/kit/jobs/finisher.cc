// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/jobs/finisher.h"

#include <algorithm>
#include <chrono>

#include "curtail/base/clock.h"

namespace curtail::apps {

void Finisher::WorkWhileServing(Env& env) {
  env.WhileServing([this] { thread_ = std::thread([this] { Work(); }); },
                   [this] {
                     stopping_.store(true, std::memory_order_release);
                     end_.Notify();
                     thread_.join();
                   });
}

void Finisher::Work() {
  constexpr Nanos kLook = std::chrono::seconds(2), kFirstPause = std::chrono::milliseconds(50),
                  kLastPause = std::chrono::seconds(10);
  const auto stopping = [this] { return stopping_.load(std::memory_order_acquire); };
  Nanos pause = kFirstPause;
  while (true) {
    const uint32_t ticket = end_.Ticket();
    if (stopping()) return;
    const bool done = round_(stopping).ok();
    pause = done ? kFirstPause : std::min(2 * pause, kLastPause);
    end_.Wait(ticket, Deadline::In(done ? kLook : pause));
  }
}

}  // namespace curtail::apps
