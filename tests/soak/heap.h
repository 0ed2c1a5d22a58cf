// SPDX-License-Identifier: Apache-2.0
//
// heap.h - how much of its heap a process uses.
#pragma once

#include <malloc.h>

#include <cstdint>

namespace curtail::soak {

// Bytes that this process's malloc() has given out; 0 under a sanitizer, which has its own.
inline uint64_t HeapInUse() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace curtail::soak
