// SPDX-License-Identifier: Apache-2.0
//
// thread_locals.h - gives each coroutine its own thread_local variables.
#pragma once

#include <cstddef>
#include <vector>

namespace curtail::model {

// A ThreadLocals is one thread's copy of the thread_local variables that the executable defines, those of
// shared libraries excepted. Their destructors do not run at the end of a coroutine.
class ThreadLocals {
 public:
  // As they are when a thread starts.
  ThreadLocals();
  // Swaps them with the ones in use.
  void Exchange();

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace curtail::model
