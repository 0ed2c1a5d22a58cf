// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/service.h"

#include <climits>

#include "curtail/base/strings.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

absl::Status ParseRequest(std::string_view bytes, google::protobuf::MessageLite* request) {
  if (bytes.size() <= INT_MAX && request->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return absl::InternalError(Join("request is no valid ", request->GetTypeName()));
}

absl::Status SerializeReply(const google::protobuf::MessageLite& reply, std::string* bytes) {
  if (reply.SerializeToString(bytes)) return absl::OkStatus();
  return absl::InternalError("cannot serialize the reply (larger than 2 GiB, or a required field is unset)");
}

}  // namespace curtail::internal
