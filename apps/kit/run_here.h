// SPDX-License-Identifier: Apache-2.0
//
// run_here.h - runs a coroutine on a thread outside of any server.
#pragma once

#include "absl/status/status.h"
#include "curtail/rpc/coroutine.h"

namespace curtail::apps {

// Runs a coroutine to its end. REQUIRES: the thread is not a server's. On other threads a coroutine waits where it is, so it
// has ended when Start() returns.
inline absl::Status RunHere(Coroutine coroutine) {
  coroutine.Start([](void*) {}, nullptr);
  return coroutine.Take();
}

}  // namespace curtail::apps
