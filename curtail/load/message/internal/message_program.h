// SPDX-License-Identifier: Apache-2.0
//
// message_program.h - a serialized message in which some values are new each time.
//
// A message without such values is one string. Otherwise it is a list of steps: bytes as they are, a value to
// draw and encode, or a nested message, whose length is known only after it was written. Rendering thus costs
// as much as its variable part, however long the rest is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/load/message/internal/placeholder.h"
#include "google/protobuf/descriptor.h"

namespace curtail::internal {

// The value of a field that is no message.
struct Scalar {
  uint64_t bits = 0;  // integers (two's complement), enums, bool
  double real = 0;    // float and double
  std::string bytes;  // string and bytes
};

// Appends a scalar as a field of this type has it behind its tag.
void AppendScalar(google::protobuf::FieldDescriptor::Type type, const Scalar& value, std::string* out);
// True if it is what an absent field has: 0, false, "". Minus zero is not.
bool IsDefault(google::protobuf::FieldDescriptor::Type type, const Scalar& value);
void AppendVarint(uint64_t value, std::string* out);

// A DrawnValue is a field whose value is drawn for each request.
struct DrawnValue {
  struct Part {
    std::string literal;
    std::optional<Placeholder> placeholder;  // instead of the literal
  };

  // The part of the value that the field has.
  enum class Take {
    kAll,
    kSeconds,  // of a Timestamp or Duration, by a fraction that is not negative
    kNanos,    // the rest of it
    kMessage,  // one of `words` is the whole message, without tag and length
  };

  const google::protobuf::FieldDescriptor* field;  // with {{reply...}} it outlives the program
  google::protobuf::FieldDescriptor::Type type;
  bool omit_default = false;  // fields without presence: left out when 0 or empty
  std::string tag;
  Take take = Take::kAll;
  std::vector<Part> parts;    // several in strings only
  std::vector<Scalar> words;  // what the words of a {{pick}} mean, when the field is not a string

  void Append(const Draw& draw, std::string* out) const;
};

// A MessageProgram writes a message. Thread-compatible.
class MessageProgram {
 public:
  // The serialized message of this request. It is of no use if draw.error is set.
  std::string Render(const Draw& draw) const;
  // True if every request has the same.
  bool fixed() const;

  // To build it, in order.
  void AddBytes(std::string_view bytes);
  void AddScalar(google::protobuf::FieldDescriptor::Type type, const Scalar& value);
  void AddDrawn(DrawnValue value);
  // A length and then `body`, behind `tag`.
  void AddNested(std::string_view tag, MessageProgram body);
  void Append(MessageProgram more);
  bool empty() const { return steps_.empty(); }

 private:
  struct Step {
    std::string bytes;
    // Behind the bytes one of these, or neither.
    std::unique_ptr<const DrawnValue> drawn;
    std::unique_ptr<const MessageProgram> nested;
    bool fixed() const { return drawn == nullptr && nested == nullptr; }
  };

  void RenderTo(const Draw& draw, std::string* out) const;
  // Where bytes can be added.
  std::string* Tail();

  std::vector<Step> steps_;
};

}  // namespace curtail::internal
