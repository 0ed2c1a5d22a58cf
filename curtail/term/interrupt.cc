// SPDX-License-Identifier: Apache-2.0
#include "curtail/term/interrupt.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdint>

namespace curtail {
namespace {

// A signal handler has no argument to carry it, so this one flag is static.
std::atomic<bool>& Flag() {
  static std::atomic<bool> interrupted{false};
  return interrupted;
}

void OnSignal(int) { Flag().store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>& CatchInterrupts() {
  std::atomic<bool>& flag = Flag();  // initialised before a handler can run
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESETHAND;  // the second signal has its default effect
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup is respected
  }
  // Whoever started us may have left these otherwise: children must be waited for, and signals arrive.
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t ours;
  sigemptyset(&ours);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ours, signal);
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);
  // Peers that go away, and `curtail ... | head`, are errors of write(), not the end.
  std::signal(SIGPIPE, SIG_IGN);
  return flag;
}

bool WaitUntil(TimePoint when, const std::atomic<bool>& stop) {
  constexpr int64_t kMostMs = 100;
  while (Now() < when && !stop.load(std::memory_order_relaxed)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Now()).count();
    poll(nullptr, 0, static_cast<int>(std::clamp<int64_t>(left, 0, kMostMs)));  // a signal ends it
  }
  return !stop.load(std::memory_order_relaxed);
}

}  // namespace curtail
