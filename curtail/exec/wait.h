// SPDX-License-Identifier: Apache-2.0
//
// wait.h - what a request should know of the thread that runs it, handed down from the pool.
#pragma once

#include <cstdint>

namespace curtail {

class Receiver;
class SpinBudget;

// A WaitHint tells how this thread waits and which things are its own.
struct WaitHint {
  uint32_t thread_index = 0;     // dense index within the server's pools; picks the lane
  SpinBudget* spin = nullptr;    // polling models: spin for events while this has a slot; null: sleep
  Receiver* receiver = nullptr;  // to be flushed before a wait; null outside of servers
  bool more_ready = false;  // other requests were ready when this one began: its output may share their write
};

}  // namespace curtail
