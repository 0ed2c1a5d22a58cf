// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/recycler.h"

#include <new>

namespace curtail {
namespace {

using internal::Block;

// Calls f with a null pointer to the smallest Block that holds `bytes`; false when none does.
template <class F>
bool WithClassOf(size_t bytes, F f) {
  if (bytes <= 256) return f(static_cast<Block<256>*>(nullptr)), true;
  if (bytes <= 512) return f(static_cast<Block<512>*>(nullptr)), true;
  if (bytes <= 1024) return f(static_cast<Block<1024>*>(nullptr)), true;
  if (bytes <= 2048) return f(static_cast<Block<2048>*>(nullptr)), true;
  if (bytes <= 4096) return f(static_cast<Block<4096>*>(nullptr)), true;
  return false;
}

}  // namespace

void* AllocateBlock(size_t bytes) {
  void* block = nullptr;
  const auto take = [&block]<class B>(B*) { block = Recycler<B>::Take(); };
  return WithClassOf(bytes, take) ? block : ::operator new(bytes);
}

void FreeBlock(void* block, size_t bytes) {
  const auto give = [block]<class B>(B*) { Recycler<B>::Give(static_cast<B*>(block)); };
  if (!WithClassOf(bytes, give)) ::operator delete(block, bytes);
}

}  // namespace curtail
