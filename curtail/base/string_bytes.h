// SPDX-License-Identifier: Apache-2.0
//
// string_bytes.h - a string as a buffer: sized without writing zeros that are overwritten at once.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace curtail {
namespace internal {

// The private function of libstdc++ that sets a size. An explicit instantiation may name what is
// private ([temp.spec.general]).
#if defined(__GLIBCXX__) && defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
struct SizeSetter {
  using Function = void (std::string::*)(size_t);
  friend Function Get(SizeSetter);
};
template <class Tag, typename Tag::Function function>
struct PublishMember {
  friend typename Tag::Function Get(Tag) { return function; }
};
template struct PublishMember<SizeSetter, &std::string::_M_set_length>;
#endif

}  // namespace internal

// Makes `bytes` as long as `size`. What it held stays, up to that size; further bytes have any
// value, which the caller overwrites.
[[gnu::always_inline]] inline void ResizeForOverwrite(std::string& bytes, size_t size) {
#if defined(__GLIBCXX__) && defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
  if (size > bytes.size()) {
    if (size > bytes.capacity()) bytes.reserve(size);
    (bytes.*Get(internal::SizeSetter()))(size);
    return;
  }
#endif
  bytes.resize(size);
}

// Makes `bytes` a copy of `from`, which is not a part of it.
[[gnu::always_inline]] inline void AssignBytes(std::string& bytes, std::string_view from) {
  if (from.size() > bytes.capacity()) bytes.clear();  // growth would copy it
  ResizeForOverwrite(bytes, from.size());
  std::memcpy(bytes.data(), from.data(), from.size());
}

// Makes `bytes` longer by `more`, which the caller writes to the place that this returns. Its
// memory grows as by appending.
[[gnu::always_inline]] inline char* ExtendForOverwrite(std::string& bytes, size_t more) {
  const size_t size = bytes.size();
  ResizeForOverwrite(bytes, size + more);
  return bytes.data() + size;
}

}  // namespace curtail
