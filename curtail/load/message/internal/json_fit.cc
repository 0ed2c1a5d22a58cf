// SPDX-License-Identifier: Apache-2.0
//
// Which placeholders fit which fields.
#include <cmath>
#include <limits>

#include "curtail/base/strings.h"
#include "curtail/load/message/internal/json_message.h"

namespace curtail::internal {
namespace {

using google::protobuf::FieldDescriptor;

template <class Integer>
bool Within(const Placeholder& placeholder) {
  return placeholder.is_index() ||
         (std::in_range<Integer>(placeholder.min()) && std::in_range<Integer>(placeholder.max()));
}

bool EachIsKnown(const google::protobuf::EnumDescriptor& type, const Placeholder& placeholder) {
  if (placeholder.is_index() || !Within<int32_t>(placeholder)) return false;
  // The range may be far longer than the enum.
  if (placeholder.max() - placeholder.min() >= type.value_count()) return false;
  for (int64_t number = placeholder.min(); number <= placeholder.max(); ++number) {
    if (type.FindValueByNumber(static_cast<int>(number)) == nullptr) return false;
  }
  return true;
}

bool IntegerFits(const FieldDescriptor& field, const Placeholder& placeholder) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Within<int32_t>(placeholder);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Within<uint32_t>(placeholder);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Within<uint64_t>(placeholder);
    case FieldDescriptor::CPPTYPE_BOOL:
      return !placeholder.is_index() && placeholder.min() >= 0 && placeholder.max() <= 1;
    case FieldDescriptor::CPPTYPE_ENUM:
      return EachIsKnown(*field.enum_type(), placeholder);
    default:
      return field.cpp_type() != FieldDescriptor::CPPTYPE_STRING;
  }
}

}  // namespace

absl::Status JsonMessageReader::Fit(const Field& field, const Placeholder& placeholder,
                                    DrawnValue* value) const {
  const bool text = field.type() == FieldDescriptor::TYPE_STRING;
  bool fits = false;
  switch (placeholder.kind()) {
    case Placeholder::Kind::kText:
      fits = text;
      break;
    case Placeholder::Kind::kBytes:
      fits = field.type() == FieldDescriptor::TYPE_BYTES;
      break;
    case Placeholder::Kind::kReal:
      fits = text || field.type() == FieldDescriptor::TYPE_DOUBLE ||
             (field.type() == FieldDescriptor::TYPE_FLOAT &&
              std::isfinite(static_cast<float>(placeholder.real_min())) &&
              std::isfinite(static_cast<float>(placeholder.real_max())));
      break;
    case Placeholder::Kind::kInteger:
      fits = text || IntegerFits(field, placeholder);
      break;
    case Placeholder::Kind::kPick:
      for (size_t i = 0; !text && i < placeholder.words().size(); ++i) {
        absl::Status status = ParseWord(field, placeholder.words()[i], &value->words.emplace_back());
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    case Placeholder::Kind::kReply:
      // Only the reply shows if its text is such a number or enum.
      fits = (field.type() == FieldDescriptor::TYPE_BYTES) == placeholder.bytes_of_reply();
      break;
  }
  if (fits) return absl::OkStatus();
  const std::string type = field.enum_type() != nullptr ? "the enum " + field.enum_type()->full_name()
                                                        : Join("a field of type ", field.type_name());
  const char* hint = field.type() == FieldDescriptor::TYPE_BYTES ? "; write {{bytes N}}"
                     : field.enum_type() != nullptr              ? "; write {{pick NAME NAME ...}}"
                                                                 : "";
  return absl::InvalidArgumentError(
      Join("the values of ", placeholder.text(), " do not all fit ", type, hint));
}

}  // namespace curtail::internal
