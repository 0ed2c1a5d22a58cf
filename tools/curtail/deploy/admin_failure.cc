// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/admin_failure.h"

#include <string>

#include "curtail/base/strings.h"
#include "curtail/term/exit_code.h"

namespace curtail::tool {

int AdminFailure(const absl::Status& status, std::string_view process, Console& console) {
  const std::string text =
      process.empty() ? std::string(Message(status)) : Join(process, ": ", Message(status));
  if (absl::IsInvalidArgument(status)) {
    console.Error(text, "");
    return kBadConfig;
  }
  if (absl::IsNotFound(status)) {
    console.Error(text, "for a server of your own give its --admin address");
    return kBadConfig;
  }
  if (absl::IsFailedPrecondition(status) || absl::IsInternal(status) ||
      absl::IsPermissionDenied(status)) {  // says itself what to do
    console.Error(text, "");
    return kFailed;
  }
  console.Error(text, process.empty() ? "is that the address given to the server as --admin?" : "");
  return kFailed;
}

int LookFailure(const absl::Status& status, Console& console) {
  console.Error(std::string(Message(status)), "");
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kBadConfig : kFailed;
}

}  // namespace curtail::tool
