// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/admin_client.h"

#include "curtail/base/strings.h"
#include "google/protobuf/wrappers.pb.h"
#include "tools/curtail/cli/exit_code.h"

namespace curtail::tool {

absl::Status AdminClient::Call(std::string_view method, const std::string& in, std::string* out,
                               Nanos timeout) {
  Context ctx(timeout);
  // On the wire a message with one string in field 1 is a StringValue.
  google::protobuf::StringValue request, reply;
  request.set_value(in);
  absl::Status status = channel_.Call(ctx, Join("/curtail.admin.v1.Admin/", method), request, &reply);
  *out = reply.value();
  return status;
}

int AdminFailure(const absl::Status& status, Console& console) {
  if (absl::IsInvalidArgument(status)) {
    console.Error(std::string(Message(status)), "");
    return kBadConfig;
  }
  if (absl::IsFailedPrecondition(status)) {  // says itself what to do
    console.Error(std::string(Message(status)), "");
    return kFailed;
  }
  console.Error(std::string(Message(status)), "is that the address given to the server as --admin?");
  return kFailed;
}

}  // namespace curtail::tool
