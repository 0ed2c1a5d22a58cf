// SPDX-License-Identifier: Apache-2.0
//
// json_scalar.h - the values of fields that are no messages, as protobuf's JSON mapping writes them.
//
// https://protobuf.dev/programming-guides/json/: 64-bit integers may be strings, bytes are base64, enums
// names or numbers, and so on.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "curtail/load/message/internal/json_reader.h"
#include "curtail/load/message/internal/message_program.h"
#include "google/protobuf/descriptor.h"

namespace curtail::internal {

// The field of that name, as JSON or the .proto file has it; null if there is none.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor& type,
                                                   const std::string& name);

// A JSON value that is no object and no list.
struct JsonToken {
  JsonReader::Kind kind = JsonReader::Kind::kNull;
  std::string text;  // the string, the number as written, "true", "false" or "null"
};

// Reads it. False when the text is wrong, or an object or list stands there.
bool ReadToken(JsonReader* in, JsonToken* token);
// As an error quotes it: strings in double quotes, cut when long.
std::string Quoted(const JsonToken& token);

// The value of `token` in `field`, whose type is no message. Errors: INVALID_ARGUMENT without position:
// `"abc" is not a valid int32`.
[[nodiscard]] absl::Status ParseScalar(const google::protobuf::FieldDescriptor& field, const JsonToken& token,
                                       Scalar* value);
// The same of a word written without quotes, of which the field's type says what it is.
[[nodiscard]] absl::Status ParseWord(const google::protobuf::FieldDescriptor& field, const std::string& word,
                                     Scalar* value);

}  // namespace curtail::internal
