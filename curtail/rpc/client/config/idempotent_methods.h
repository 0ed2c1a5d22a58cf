// SPDX-License-Identifier: Apache-2.0
//
// idempotent_methods.h - the methods that may run more than once, as their .proto files say.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "curtail/base/mutex.h"

namespace curtail::internal {

// True if the .proto of the method "/package.Service/Method" declares `option idempotency_level = IDEMPOTENT`, or
// NO_SIDE_EFFECTS. False for a method whose .proto is no part of this program. Takes a mutex of protobuf's.
bool IsDeclaredIdempotent(std::string_view path);

// An IdempotentMethods remembers what was declared of the methods that a program calls. Thread-safe.
class IdempotentMethods {
 public:
  bool Contains(std::string_view path);

 private:
  // More methods than that are looked up each time.
  static constexpr size_t kMost = 4096;

  Mutex mu_;
  std::map<std::string, bool, std::less<>> known_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail::internal
