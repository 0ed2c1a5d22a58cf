// SPDX-License-Identifier: Apache-2.0
//
// field_setter.h - sets a field of a message from the text of a path or a query.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace curtail::gateway::internal {

// Sets the field that `path` names ("book.author.name", by proto or JSON names) to `value`; adds to
// it if it is repeated. Messages of google.protobuf are written as in JSON, without quotes.
// Errors: INVALID_ARGUMENT, which names the field.
absl::Status SetField(google::protobuf::Message& message, std::string_view path, std::string_view value);

}  // namespace curtail::gateway::internal
