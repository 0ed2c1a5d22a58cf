// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/field_setter.h"

#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"
#include "curtail/gateway/internal/utf8.h"
#include "curtail/wire/metadata.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"

namespace curtail::gateway::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 32;

template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> BoolOf(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

// Web-safe base64 as the other kind.
std::optional<std::string> BytesOf(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) c = c == '-' ? '+' : c == '_' ? '/' : c;
  return wire::Base64Decode(plain);
}

// One field of one message.
class Setter {
 public:
  Setter(Message& message, const FieldDescriptor& field)
      : message_(message), reflection_(*message.GetReflection()), field_(field) {}

  // False: `text` is no value of the field's type.
  bool Set(std::string_view text) {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Put(NumberOf<int32_t>(text), &Reflection::SetInt32, &Reflection::AddInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return Put(NumberOf<int64_t>(text), &Reflection::SetInt64, &Reflection::AddInt64);
      case FieldDescriptor::CPPTYPE_UINT32:
        return Put(NumberOf<uint32_t>(text), &Reflection::SetUInt32, &Reflection::AddUInt32);
      case FieldDescriptor::CPPTYPE_UINT64:
        return Put(NumberOf<uint64_t>(text), &Reflection::SetUInt64, &Reflection::AddUInt64);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Put(NumberOf<double>(text), &Reflection::SetDouble, &Reflection::AddDouble);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Put(NumberOf<float>(text), &Reflection::SetFloat, &Reflection::AddFloat);
      case FieldDescriptor::CPPTYPE_BOOL:
        return Put(BoolOf(text), &Reflection::SetBool, &Reflection::AddBool);
      case FieldDescriptor::CPPTYPE_ENUM:
        return SetEnum(text);
      case FieldDescriptor::CPPTYPE_STRING:
        return SetString(text);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return SetMessage(text);
    }
    return false;
  }

 private:
  template <class Value, class Set, class Add>
  bool Put(std::optional<Value> value, Set set, Add add) {
    if (!value) return false;
    if (field_.is_repeated()) {
      (reflection_.*add)(&message_, &field_, *value);
    } else {
      (reflection_.*set)(&message_, &field_, *value);
    }
    return true;
  }

  bool SetEnum(std::string_view text) {
    std::optional<int> number = NumberOf<int>(text);
    if (const auto* named = field_.enum_type()->FindValueByName(std::string(text)); named != nullptr) {
      number = named->number();
    }
    return Put(number, &Reflection::SetEnumValue, &Reflection::AddEnumValue);
  }

  bool SetString(std::string_view text) {
    std::optional<std::string> value(text);
    if (field_.type() == FieldDescriptor::TYPE_BYTES) {
      value = BytesOf(text);
    } else if (!IsUtf8(text)) {
      return false;
    }
    if (!value) return false;
    if (field_.is_repeated()) {
      reflection_.AddString(&message_, &field_, *std::move(value));
    } else {
      reflection_.SetString(&message_, &field_, *std::move(value));
    }
    return true;
  }

  // google.protobuf.Timestamp, Int32Value, FieldMask and so on.
  bool SetMessage(std::string_view text) {
    const Descriptor& type = *field_.message_type();
    if (type.file()->package() != "google.protobuf" || !IsUtf8(text)) return false;
    Message* const value = field_.is_repeated() ? reflection_.AddMessage(&message_, &field_)
                                                : reflection_.MutableMessage(&message_, &field_);
    return google::protobuf::util::JsonStringToMessage(curtail::internal::Compact(std::string(text)), value)
               .ok() ||
           google::protobuf::util::JsonStringToMessage(std::string(text), value).ok();
  }

  Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor& field_;
};

const FieldDescriptor* FindField(const Descriptor& type, std::string_view name) {
  const std::string text(name);
  const FieldDescriptor* const field = type.FindFieldByName(text);
  return field != nullptr ? field : type.FindFieldByCamelcaseName(text);
}

}  // namespace

absl::Status SetField(Message& root, std::string_view path, std::string_view value) {
  Message* message = &root;
  std::string_view left = path;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const size_t dot = left.find('.');
    const FieldDescriptor* const field = FindField(*message->GetDescriptor(), left.substr(0, dot));
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          Join("there is no field \"", path, "\" in ", std::string_view(root.GetDescriptor()->full_name())));
    }
    if (dot == std::string_view::npos) {
      if (Setter(*message, *field).Set(value)) return absl::OkStatus();
      return absl::InvalidArgumentError(Join("field ", path, ": \"", value.substr(0, 100),
                                             "\" is not a valid ", std::string_view(field->type_name())));
    }
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return absl::InvalidArgumentError(Join("field ", path, ": ", left.substr(0, dot), " is not a message"));
    }
    message = message->GetReflection()->MutableMessage(message, field);
    left.remove_prefix(dot + 1);
  }
  return absl::InvalidArgumentError(Join("field ", path.substr(0, 100), ": too deep"));
}

}  // namespace curtail::gateway::internal
