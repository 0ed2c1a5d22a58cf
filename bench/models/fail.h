// SPDX-License-Identifier: Apache-2.0
//
// fail.h - how the programs of this folder end when something went wrong.
#pragma once

#include <iostream>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/strings.h"
#include "tools/curtail/cli/exit_code.h"

namespace curtail::models {

// Says "PROGRAM: why" on stderr and returns the exit code for it. REQUIRES: not OK.
inline int Fail(std::string_view program, const absl::Status& status) {
  std::cerr << program << ": " << Message(status) << "\n";
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return tool::kBadConfig;
    case absl::StatusCode::kCancelled:
      return tool::kInterrupted;
    default:
      return tool::kFailed;
  }
}

}  // namespace curtail::models
