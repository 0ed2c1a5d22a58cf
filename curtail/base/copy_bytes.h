// SPDX-License-Identifier: Apache-2.0
//
// copy_bytes.h - memcpy() of long data at the same speed for all addresses.
//
// Processors of the Zen families 3 and 4 copy with `rep movsb` some fifteen times slower if the
// destination lies 1 to 31 bytes behind the source, counted within pages of 4 KiB. The C libraries
// before glibc 2.39 use that instruction for long copies there (its bug 30994). A message whose
// field is a long string is such a case by nature: it is the string, some bytes further on, and
// long blocks of the heap begin at like places of their pages.
//
// Stateless; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace curtail {

// As memcpy(to, from, size).
inline void CopyBytes(char* to, const char* from, size_t size) {
  constexpr uintptr_t kPage = 4096, kNear = 31;
  // memcpy() does not use the instruction for as little.
  constexpr size_t kShort = 1024;
  const uintptr_t behind = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  const size_t step = behind - 1 < kNear ? kShort : size;
  while (size > 0) {
    const size_t part = std::min(step, size);
    memcpy(to, from, part);
    to += part, from += part, size -= part;
  }
}

}  // namespace curtail
