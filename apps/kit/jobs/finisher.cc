// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/jobs/finisher.h"

#include "apps/kit/jobs/pauses.h"
#include "curtail/base/boundary.h"
#include "curtail/base/clock.h"

namespace curtail::apps {

void Finisher::WorkWhileServing(Env& env) {
  env.WhileServing([this] { thread_ = std::thread([this] { Work(); }); },
                   [this] {
                     stopping_.store(true, std::memory_order_release);
                     wake_.Notify();
                     thread_.join();
                   });
}

void Finisher::Work() {
  const auto stopping = [this] { return stopping_.load(std::memory_order_acquire); };
  int64_t failures = 0;
  while (true) {
    uint32_t ticket = wake_.Ticket();
    if (stopping()) return;
    bool done = false;
    Contain("finisher", [&] { done = round_(stopping).ok(); });
    failures = done ? 0 : failures + 1;
    const Deadline until = Deadline::In(done ? look_ : PauseAfter(failures));
    wake_.Wait(ticket, until);
    while (!done && !stopping() && !until.Expired()) {
      ticket = wake_.Ticket();
      if (!stopping()) wake_.Wait(ticket, until);
    }
  }
}

}  // namespace curtail::apps
