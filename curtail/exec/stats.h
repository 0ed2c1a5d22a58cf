// SPDX-License-Identifier: Apache-2.0
//
// stats.h - the present activity of a server's pools: the sensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/exec/config.h"

namespace curtail {

// The present activity of the pools.
struct ExecutorStats {
  struct Pool {
    std::string name;  // "network", "workers", "response"
    int threads = 0;   // that have the role now; after a switch they take it one by one
    int active = 0;    // run requests or read sockets
    int waiting = 0;   // for events or for replies, blocked or spinning
    int parked = 0;
  };
  Config config;
  std::vector<Pool> pools;  // the config's; others until their last thread has left
  int spinning = 0;         // of the waiting ones
  int asleep = 0;           // threads without a role in the config
  size_t fibers = 0;
  size_t queued = 0;        // requests ready to run
  uint64_t begun = 0;       // requests taken from the queue so far
  Nanos queue_wait{0};      // sum over those
  Nanos max_queue_wait{0};  // since the last Sample()
};

}  // namespace curtail
