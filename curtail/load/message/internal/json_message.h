// SPDX-License-Identifier: Apache-2.0
//
// json_message.h - turns JSON with placeholders into a MessageProgram, by protobuf's JSON mapping.
//
// The text is read once and written straight to protobuf's encoding: no tree, no message object. Every error
// thus knows the path of its field and the place in the text. Well-known types with a form of their own
// (Timestamp, Any, Struct, ...) are left to protobuf, unless they have placeholders.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/load/message/internal/json_reader.h"
#include "curtail/load/message/internal/json_scalar.h"
#include "curtail/load/message/internal/message_program.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/util/type_resolver.h"

namespace curtail::internal {

// A JsonMessageReader reads messages of one type. Thread-compatible. Fields are written in the order of their
// numbers, as protobuf does; the entries of a map in the order of the text.
class JsonMessageReader {
 public:
  // The most that the placeholders of one message may add up to.
  static constexpr int64_t kMaxDrawnBytes = 64 << 20;

  // `type` outlives the reader, and its messages if they use `replies`: the replies of a journey so far, or null.
  JsonMessageReader(const google::protobuf::Descriptor& type, uint64_t seed, ReplyFields* replies = nullptr);
  ~JsonMessageReader();

  // The message that stands next in `in`. Errors: INVALID_ARGUMENT, such as
  // `field user.age: "abc" is not a valid int32, at 3:12`; what follows in `in` is then undefined.
  [[nodiscard]] absl::StatusOr<MessageProgram> Read(JsonReader* in);

 private:
  using Descriptor = google::protobuf::Descriptor;
  using Field = google::protobuf::FieldDescriptor;

  absl::Status ReadMessage(const Descriptor& type, MessageProgram* out);
  // With `of_any` the member "@type" is read over.
  absl::Status ReadMembers(const Descriptor& type, MessageProgram* out, bool of_any = false);
  absl::Status ReadMember(const Field& field, std::set<std::string>* given, MessageProgram* out);
  absl::Status ReadWellKnown(const Descriptor& type, MessageProgram* out);
  // Those of them that may have placeholders.
  absl::Status ReadAny(const Descriptor& type, MessageProgram* out);
  absl::Status FindAnyType(const Descriptor** type, std::string* url);
  absl::Status ReadDrawnTime(const Descriptor& type, MessageProgram* out);
  absl::Status AddDrawnTime(const Descriptor& type, const Placeholder& drawn, MessageProgram* out);
  // A value of `type` in its form of JSON, as bytes.
  absl::StatusOr<std::string> Encode(const Descriptor& type, std::string_view json);
  absl::Status ReadList(const Field& field, MessageProgram* out);
  absl::Status ReadMap(const Field& field, MessageProgram* out);
  // One value: with its tag, unless that is empty (packed lists).
  absl::Status ReadValue(const Field& field, const std::string& tag, bool omit_default, MessageProgram* out);
  absl::Status ReadScalar(const Field& field, const std::string& tag, bool omit_default, MessageProgram* out);
  absl::Status AddDrawn(const Field& field, DrawnValue value, const std::vector<TemplatePiece>& pieces,
                        MessageProgram* out);
  absl::StatusOr<Placeholder> ParsePlaceholder(const std::string& text);
  // True if what `placeholder` gives fits the field; fills in the words of a pick.
  absl::Status Fit(const Field& field, const Placeholder& placeholder, DrawnValue* value) const;

  absl::Status UnknownField(const Descriptor& type, const std::string& name) const;
  // "field a.b[2]: what, at 3:12"; the reader's own error, if it has one, goes ahead.
  absl::Status Error(size_t offset, std::string_view what) const;

  // Immutable after construction.
  const Descriptor& type_;
  const uint64_t seed_;
  ReplyFields* const replies_;

  std::unique_ptr<google::protobuf::util::TypeResolver> resolver_;  // made when needed
  google::protobuf::DynamicMessageFactory factory_;

  // Of the message that is read.
  JsonReader* in_ = nullptr;
  std::string path_;
  uint64_t placeholders_ = 0;
  int64_t drawn_bytes_ = 0;
};

}  // namespace curtail::internal
