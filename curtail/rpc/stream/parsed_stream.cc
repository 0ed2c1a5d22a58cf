// SPDX-License-Identifier: Apache-2.0
#include <climits>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/call/serialize.h"
#include "curtail/rpc/stream.h"
#include "google/protobuf/message_lite.h"

namespace curtail::internal {

bool ParsedStream::Parse(google::protobuf::MessageLite* message) {
  if (absl::Status charged = stream_->ChargeParsed(in_, *message); !charged.ok()) {
    stream_->Fail(std::move(charged));
    return false;
  }
  if (internal::Parse(in_, message)) return true;
  stream_->Fail(absl::InternalError(Join("a message of the stream is not a valid ", message->GetTypeName())));
  return false;
}

bool ParsedStream::Serialize(const google::protobuf::MessageLite& message) {
  if (internal::Serialize(message, &out_)) return true;
  stream_->Fail(
      absl::InternalError("cannot serialize a message (larger than 2 GiB, or a required field is unset)"));
  return false;
}

}  // namespace curtail::internal
