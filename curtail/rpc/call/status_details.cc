// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/status_details.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/message_lite.h"

namespace curtail {
namespace {

std::string TypeUrl(const google::protobuf::MessageLite& message) {
  return absl::StrCat("type.googleapis.com/", message.GetTypeName());
}

}  // namespace

void AddDetail(absl::Status& status, const google::protobuf::MessageLite& detail) {
  // The constructor that takes a std::string has different names in libraries of gcc and programs of clang.
  const std::string bytes = detail.SerializeAsString();
  status.SetPayload(TypeUrl(detail), absl::Cord(absl::string_view(bytes)));
}

bool internal::FindDetail(const absl::Status& status, google::protobuf::MessageLite* detail) {
  const auto payload = status.GetPayload(TypeUrl(*detail));
  return payload && detail->ParseFromString(std::string(*payload));
}

}  // namespace curtail
