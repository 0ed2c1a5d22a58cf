// SPDX-License-Identifier: Apache-2.0
//
// outcome.h - how a call ends, the same on every path: over a connection or within the process, unary or a stream.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace curtail::internal {

// The end of a call that its caller cancelled.
absl::Status CancelledByCaller();
// The end of a call whose handler threw what is in flight. REQUIRES: within a catch clause.
absl::Status ThrownBy(std::string_view handler);

// Runs `f`, which calls code of the user, and returns its status. Exceptions of that code end here, and nowhere else: the
// call is answered INTERNAL.
template <class F>
absl::Status Guarded(std::string_view handler, F&& f) {
  try {
    return f();
  } catch (...) {
    return ThrownBy(handler);
  }
}

}  // namespace curtail::internal
