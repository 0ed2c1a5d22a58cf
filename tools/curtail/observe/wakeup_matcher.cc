// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/wakeup_matcher.h"

#include <algorithm>

namespace curtail::tool {

void WakeupMatcher::JudgeUntil(int64_t until_ns) {
  std::sort(events_.begin(), events_.end(), [](const WakeupEvent& a, const WakeupEvent& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.kind < b.kind;
  });
  auto event = events_.begin();
  for (; event != events_.end() && event->at_ns < until_ns; ++event) {
    switch (event->kind) {
      case WakeupEvent::Kind::kWaking:
        ready_.try_emplace(event->thread, event->at_ns);
        break;
      case WakeupEvent::Kind::kIn:
        if (const auto ready = ready_.find(event->thread); ready != ready_.end()) {
          latencies_.Record(Nanos(event->at_ns - ready->second));
          ready_.erase(ready);
        }
        break;
      case WakeupEvent::Kind::kOut:  // it ran: the wake-up before came while it was about to sleep
        ready_.erase(event->thread);
        break;
    }
  }
  events_.erase(events_.begin(), event);
}

}  // namespace curtail::tool
