// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/coroutine.h"

#include "curtail/base/strings.h"
#include "curtail/exec/parker.h"

namespace curtail::internal {

absl::Status RunToEnd(Coroutine co) {
  static constexpr uint32_t kEnded = Parker::Signal(0);
  Parker parker;
  co.Start([](void* arg) { static_cast<Parker*>(arg)->Notify(kEnded); }, &parker);
  // Ends at once, unless the handler awaits something of its own.
  for (uint32_t ticket = parker.Ticket(); (ticket & kEnded) == 0; ticket = parker.Ticket()) {
    parker.Wait(ticket, Deadline::Infinite());
  }
  return co.Take();
}

absl::Status OutcomeOf(Coroutine& co) {
  try {
    return co.Take();
  } catch (const std::exception& e) {
    return absl::InternalError(Join("exception in a coroutine handler: ", e.what()));
  } catch (...) {
    return absl::InternalError("exception in a coroutine handler");
  }
}

}  // namespace curtail::internal
