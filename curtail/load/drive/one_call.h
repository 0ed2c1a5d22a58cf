// SPDX-License-Identifier: Apache-2.0
//
// one_call.h - a single call, for a look at what a load would ask and what it would be answered.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/workload.h"

namespace curtail {

struct Answer {
  std::string reply;  // serialized; over HTTP the body
  Nanos took{0};      // connecting included
};

// Sends request 0 of `workload`, or its journey 0, to the first target. Errors: the server's; as
// Channel::Call() and LoadClient::Resolve().
absl::StatusOr<Answer> CallOnce(const RunOptions& options, const Workload& workload);

}  // namespace curtail
