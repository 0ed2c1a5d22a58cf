// SPDX-License-Identifier: Apache-2.0
//
// outcome.h - how a call ends, the same on every path: over a connection or within the process, unary or a stream.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace curtail {

class Context;

namespace internal {

// The end of a call that its caller cancelled.
absl::Status CancelledByCaller();
// The end of a call whose deadline has passed: "deadline exceeded", and what the call did then, such as "while queued".
absl::Status DeadlinePassed(std::string_view then = {});
// The end of a call whose handler threw what is in flight. REQUIRES: within a catch clause.
absl::Status ThrownBy(std::string_view handler);

// The rule of Handler (service.h) for an error of a handler that ran with `ctx`.
void NameDeadline(const Context& ctx, absl::Status* error);
// For any outcome; costs a branch if it is not an error.
inline void SettleOutcome(const Context& ctx, absl::Status* status) {
  if (!status->ok()) [[unlikely]]
    NameDeadline(ctx, status);
}

// Runs `f`, which calls the handler, or takes the result of its coroutine, and returns its status. An exception of the
// user's code ends here: the call is answered INTERNAL.
template <class F>
absl::Status Guarded(std::string_view handler, F&& f) {
  try {
    return f();
  } catch (...) {
    return ThrownBy(handler);
  }
}

}  // namespace internal
}  // namespace curtail
