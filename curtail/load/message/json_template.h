// SPDX-License-Identifier: Apache-2.0
//
// json_template.h - JSON text with placeholders as a source of request messages.
//
//   {"user": "user-{{uniform 1 1000}}", "limit": "{{pick 10 20 50}}",
//    "vector": [0.5, "{{real 0 1}}"]}
//
// JSON is mapped to messages as protobuf does it (https://protobuf.dev/programming-guides/json/),
// but strictly: it must be valid JSON, and a field is given once. Strings may hold:
//
//   {{index}}              the request's number, from 0; begins again where a 32-bit field ends
//   {{uniform LOW HIGH}}   an integer, both ends included
//   {{real LOW HIGH}}      a real number, HIGH excluded
//   {{zipf N EXPONENT}}    an integer from 1 to N, the small ones often
//   {{skew N PERCENT}}     an integer from 1 to N: nine times in ten one of the first
//                          (100 - PERCENT) % of them
//   {{string N}}           N letters and digits
//   {{bytes N}}            N bytes, for fields of type bytes
//   {{uuid}}               a random UUID (version 4)
//   {{pick A B ...}}       one of the words
//
// A string that is only a placeholder also serves for numbers, bools and enums. In string fields
// text may stand around it. {{{{ is a literal {{. Placeholders may not stand in keys of maps, nor
// in types with a JSON form of their own (Any, Struct, Timestamp, ...).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
}

namespace curtail {

namespace internal {
class MessageProgram;
}

// A JsonTemplate writes the serialized message of each request. The message is a pure function of
// the text, the seed and the request's number. Immutable, thus thread-safe.
class JsonTemplate {
 public:
  static constexpr size_t kMaxJsonBytes = 64u << 20;

  // `type` is used during the call only.
  // Errors: INVALID_ARGUMENT that names place and field, such as `3:12: field user.age: "abc" is
  // not a valid int32`; RESOURCE_EXHAUSTED when the text exceeds kMaxJsonBytes.
  [[nodiscard]] static absl::StatusOr<JsonTemplate> Parse(const google::protobuf::Descriptor& type,
                                                          std::string_view json, uint64_t seed);
  // The template of a program that was read elsewhere.
  explicit JsonTemplate(internal::MessageProgram program);
  ~JsonTemplate();
  JsonTemplate(JsonTemplate&&) noexcept;
  JsonTemplate& operator=(JsonTemplate&&) noexcept;

  // Costs about as much as the placeholders and the bytes, far less than parsing JSON.
  std::string Render(uint64_t request) const;
  // True if there are no placeholders, so that all requests have the same bytes.
  bool fixed() const;

 private:
  std::unique_ptr<const internal::MessageProgram> program_;
};

}  // namespace curtail
