// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/outcome.h"

#include <exception>

#include "curtail/base/strings.h"

namespace curtail::internal {

absl::Status CancelledByCaller() { return absl::CancelledError("cancelled by the caller"); }

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
