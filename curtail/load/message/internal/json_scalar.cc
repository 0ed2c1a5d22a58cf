// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/json_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using Kind = JsonReader::Kind;

absl::Status IsNo(const JsonToken& token, std::string_view type) {
  return absl::InvalidArgumentError(Join(Quoted(token), " is not a valid ", type));
}

template <class Number>
bool ParseWhole(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsNumber(std::string_view text) {
  JsonReader reader(text);
  std::string_view number;
  return reader.ReadNumber(&number) && number.size() == text.size();
}

// In a string as in a number.
bool ParseReal(const JsonToken& token, double* number) {
  return (token.kind == Kind::kNumber || IsNumber(token.text)) && absl::SimpleAtod(token.text, number);
}

// The token as an integer of type Integer, which is as wide as the field or wider.
template <class Integer>
absl::Status ParseInteger(const FieldDescriptor& field, const JsonToken& token, Integer min, Integer max,
                          Scalar* value) {
  if (token.kind != Kind::kNumber && token.kind != Kind::kString) return IsNo(token, field.type_name());
  const auto out_of_range = [&] {
    return absl::OutOfRangeError(
        Join(Quoted(token), " is out of the range of ", field.type_name(), ", ", min, " to ", max));
  };
  Integer integer = 0;
  if (!ParseWhole(token.text, &integer)) {
    double real = 0;
    if (!ParseReal(token, &real)) return IsNo(token, field.type_name());
    // 1e3 and 1.0 are integers; in a string the mapping wants digits only.
    const double end = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
    if (std::trunc(real) != real) return IsNo(token, field.type_name());
    if (real >= end || real < static_cast<double>(std::numeric_limits<Integer>::min())) return out_of_range();
    if (token.kind == Kind::kString) return IsNo(token, field.type_name());
    integer = static_cast<Integer>(real);
  }
  if (integer < min || integer > max) return out_of_range();
  value->bits = static_cast<uint64_t>(integer);
  return absl::OkStatus();
}

template <class Integer, class Wide>
absl::Status ParseIntegerOf(const FieldDescriptor& field, const JsonToken& token, Scalar* value) {
  return ParseInteger<Wide>(field, token, std::numeric_limits<Integer>::min(),
                            std::numeric_limits<Integer>::max(), value);
}

absl::Status ParseReal(const FieldDescriptor& field, const JsonToken& token, Scalar* value) {
  if (token.kind == Kind::kString &&
      (token.text == "NaN" || token.text == "Infinity" || token.text == "-Infinity")) {
    value->real = token.text == "NaN" ? std::numeric_limits<double>::quiet_NaN()
                                      : std::copysign(std::numeric_limits<double>::infinity(),
                                                      token.text[0] == '-' ? -1.0 : 1.0);
    return absl::OkStatus();
  }
  if ((token.kind != Kind::kNumber && token.kind != Kind::kString) || !ParseReal(token, &value->real)) {
    return IsNo(token, field.type_name());
  }
  const bool is_float = field.type() == FieldDescriptor::TYPE_FLOAT;
  if (std::isfinite(is_float ? static_cast<float>(value->real) : value->real)) return absl::OkStatus();
  return absl::OutOfRangeError(Join(Quoted(token), " is out of the range of ", field.type_name()));
}

absl::Status ParseBool(const JsonToken& token, Scalar* value) {
  if (token.text != "true" && token.text != "false") return IsNo(token, "bool: write true or false");
  value->bits = token.text == "true";
  return absl::OkStatus();
}

absl::Status ParseEnum(const FieldDescriptor& field, const JsonToken& token, Scalar* value) {
  const EnumDescriptor& type = *field.enum_type();
  if (token.kind == Kind::kString) {
    if (const auto* found = type.FindValueByName(token.text)) {
      value->bits = static_cast<uint64_t>(int64_t{found->number()});
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
    return absl::InvalidArgumentError(Join(Quoted(token), " is not a valid value of the enum ",
                                           type.full_name(), NamesHint(token.text, names)));
  }
  if (token.kind == Kind::kNull && type.full_name() == "google.protobuf.NullValue") return absl::OkStatus();
  if (token.kind != Kind::kNumber) return IsNo(token, Join("value of the enum ", type.full_name()));
  const absl::Status status = ParseIntegerOf<int32_t, int64_t>(field, token, value);
  const bool open = type.file()->syntax() == google::protobuf::FileDescriptor::SYNTAX_PROTO3;
  if (!status.ok() || open || type.FindValueByNumber(static_cast<int>(value->bits)) != nullptr) return status;
  return IsNo(token, Join("number of the enum ", type.full_name()));
}

// Both alphabets, with or without padding.
absl::Status ParseBytes(const JsonToken& token, Scalar* value) {
  if (token.kind != Kind::kString) return IsNo(token, "base64 string");
  std::string base64 = token.text;
  std::replace(base64.begin(), base64.end(), '-', '+');
  std::replace(base64.begin(), base64.end(), '_', '/');
  std::string again = absl::Base64Unescape(base64, &value->bytes) ? absl::Base64Escape(value->bytes) : "";
  if (!base64.ends_with('=')) again.erase(std::min(again.find('='), again.size()));
  // Spaces, and bits of a last letter that belong to no byte, do not come back.
  if (again == base64) return absl::OkStatus();
  return IsNo(token, "base64, as which a field of type bytes is written");
}

}  // namespace

const FieldDescriptor* FindField(const google::protobuf::Descriptor& type, const std::string& name) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->json_name() == name) return type.field(i);
  }
  return type.FindFieldByName(name);
}

bool ReadToken(JsonReader* in, JsonToken* token) {
  token->kind = in->Peek();
  std::string_view raw;
  switch (token->kind) {
    case Kind::kString:
      return in->ReadString(&token->text);
    case Kind::kObject:
    case Kind::kArray:
      return false;
    default:
      if (!in->Skip(&raw)) return false;
      token->text = raw;
      return true;
  }
}

std::string Quoted(const JsonToken& token) {
  constexpr size_t kMost = 40;
  std::string text = token.text;
  if (text.size() > kMost) {
    size_t cut = kMost;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
    text = text.substr(0, cut) + "...";
  }
  return token.kind == Kind::kString ? Join("\"", text, "\"") : text;
}

absl::Status ParseScalar(const FieldDescriptor& field, const JsonToken& token, Scalar* value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return ParseIntegerOf<int32_t, int64_t>(field, token, value);
    case FieldDescriptor::CPPTYPE_INT64:
      return ParseIntegerOf<int64_t, int64_t>(field, token, value);
    case FieldDescriptor::CPPTYPE_UINT32:
      return ParseIntegerOf<uint32_t, uint64_t>(field, token, value);
    case FieldDescriptor::CPPTYPE_UINT64:
      return ParseIntegerOf<uint64_t, uint64_t>(field, token, value);
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ParseReal(field, token, value);
    case FieldDescriptor::CPPTYPE_BOOL:
      return ParseBool(token, value);
    case FieldDescriptor::CPPTYPE_ENUM:
      return ParseEnum(field, token, value);
    default:
      break;
  }
  if (field.type() == FieldDescriptor::TYPE_BYTES) return ParseBytes(token, value);
  if (token.kind != Kind::kString) return IsNo(token, "string");
  value->bytes = token.text;
  return absl::OkStatus();
}

absl::Status ParseWord(const FieldDescriptor& field, const std::string& word, Scalar* value) {
  const JsonToken quoted = {Kind::kString, word};
  const absl::Status status = ParseScalar(field, quoted, value);
  if (status.ok() || !IsNumber(word)) return status;
  *value = {};
  return ParseScalar(field, {Kind::kNumber, word}, value);
}

}  // namespace curtail::internal
