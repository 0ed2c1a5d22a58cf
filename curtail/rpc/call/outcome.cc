// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/outcome.h"

#include <exception>

#include "curtail/base/strings.h"
#include "curtail/rpc/context.h"

namespace curtail::internal {

absl::Status CancelledByCaller() { return absl::CancelledError("cancelled by the caller"); }

absl::Status DeadlinePassed(std::string_view then) {
  return absl::DeadlineExceededError(Join("deadline exceeded", then.empty() ? "" : " ", then));
}

void NameDeadline(const Context& ctx, absl::Status* error) {
  if (!absl::IsCancelled(*error) || ctx.cancelled() || !ctx.deadline().Expired()) return;
  *error = absl::DeadlineExceededError(Join("deadline exceeded: ", Message(*error)));
}

absl::Status ThrownBy(std::string_view handler) {
  try {
    throw;
  } catch (const std::exception& e) {
    return absl::InternalError(Join("exception in handler of ", handler, ": ", e.what()));
  } catch (...) {
    return absl::InternalError(Join("exception in handler of ", handler));
  }
}

}  // namespace curtail::internal
