// SPDX-License-Identifier: Apache-2.0
//
// boundary.h - keeps the exceptions of libraries from ending the process.
//
// curtail throws nothing. The libraries below it do: a string without memory, a JSON value of a
// surprising type. Each thread runs its work within a boundary. A connection is closed after an
// exception.
//
// Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace curtail {

namespace internal {

// Counts and logs the exception being handled. `where` is for the operator: "gateway".
void NoteException(std::string_view where) noexcept;

}  // namespace internal

// Runs `work`. False: an exception left it, which is counted, and logged once in ten seconds at
// most.
template <class Work>
bool Contain(std::string_view where, const Work& work) {
  try {
    work();
    return true;
  } catch (...) {
    internal::NoteException(where);
    return false;
  }
}

// Exceptions that ended at a boundary of this process.
uint64_t ContainedExceptions();

}  // namespace curtail
