// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/reply_fields.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/internal/json_scalar.h"
#include "google/protobuf/message.h"

namespace curtail::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

constexpr std::string_view kPrefix = "reply.";
constexpr size_t kMaxNamed = 1000;

template <class Number>
std::string InText(Number number) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

std::string EnumText(const FieldDescriptor& field, int number) {
  const auto* value = field.enum_type()->FindValueByNumber(number);
  return value != nullptr ? std::string(value->name()) : InText(number);
}

// The value of a field that is not a message; of a list the one at `index`.
std::string TextOf(const google::protobuf::Message& message, const FieldDescriptor* field, int index) {
  const Reflection& r = *message.GetReflection();
  const bool list = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return InText(list ? r.GetRepeatedInt32(message, field, index) : r.GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return InText(list ? r.GetRepeatedInt64(message, field, index) : r.GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return InText(list ? r.GetRepeatedUInt32(message, field, index) : r.GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return InText(list ? r.GetRepeatedUInt64(message, field, index) : r.GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return InText(list ? r.GetRepeatedFloat(message, field, index) : r.GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return InText(list ? r.GetRepeatedDouble(message, field, index) : r.GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (list ? r.GetRepeatedBool(message, field, index) : r.GetBool(message, field)) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*field,
                      list ? r.GetRepeatedEnumValue(message, field, index) : r.GetEnumValue(message, field));
    default:
      return list ? r.GetRepeatedString(message, field, index) : r.GetString(message, field);
  }
}

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.emplace_back(type.field(i)->name());
  return names;
}

// How to write a list or a map that stands without an index.
std::string AsList(const FieldDescriptor& field) {
  if (field.is_map())
    return Join(field.name(), " is a map, whose values have no place: write ", field.name(), ".length");
  return Join(field.name(), " is a list: write ", field.name(), "[0] or ", field.name(), ".length");
}

// The name and the index of "accounts[0]"; the index is -1 if there is none. False: it is written otherwise.
bool SplitIndex(std::string_view part, std::string* name, int* index) {
  const size_t open = part.find('[');
  *name = part.substr(0, open);
  *index = -1;
  if (open == std::string_view::npos) return true;
  if (!part.ends_with(']')) return false;
  const char* const end = part.data() + part.size() - 1;
  const auto [stop, error] = std::from_chars(part.data() + open + 1, end, *index);
  return error == std::errc() && stop == end && *index >= 0;
}

}  // namespace

void ReplyFields::AddStep(std::string name, const Descriptor& reply) {
  steps_.push_back({std::move(name), &reply, {}});
}

absl::StatusOr<ReplyField> ReplyFields::Find(std::string_view path) {
  std::string_view rest = path;
  rest.remove_prefix(std::min(kPrefix.size(), rest.size()));
  const size_t dot = rest.find('.');
  const std::string_view step_name = rest.substr(0, dot);
  const auto step =
      std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.name == step_name; });
  if (step == steps_.end()) {
    std::vector<std::string> names;
    for (const Step& s : steps_) names.push_back(s.name);
    return absl::InvalidArgumentError(
        Join("{{", path, "}}: no earlier step is called \"", step_name, "\"", NamesHint(step_name, names)));
  }
  if (dot == std::string_view::npos) {
    return absl::InvalidArgumentError(
        Join("{{", path, "}}: name a field of the reply", NamesHint("", FieldNames(*step->reply))));
  }
  absl::StatusOr<ReplyField> field = FindIn(static_cast<size_t>(step - steps_.begin()), rest.substr(dot + 1));
  if (!field.ok()) return absl::InvalidArgumentError(Join("{{", path, "}}: ", Message(field.status())));
  return field;
}

absl::StatusOr<ReplyField> ReplyFields::FindIn(size_t step, std::string_view path) {
  absl::StatusOr<std::vector<Hop>> hops = FindHops(*steps_[step].reply, path);
  if (!hops.ok()) return hops.status();
  const FieldDescriptor* const last = hops->back().index == kLength ? nullptr : hops->back().field;
  const bool bytes = last != nullptr && last->type() == FieldDescriptor::TYPE_BYTES;
  for (const size_t slot : steps_[step].slots) {
    if (named_[slot].path == path) return ReplyField{slot, bytes, last};
  }
  if (named_.size() == kMaxNamed)
    return absl::InvalidArgumentError(Join("there may be ", kMaxNamed, " fields of replies at most"));
  steps_[step].slots.push_back(named_.size());
  named_.push_back({std::string(path), *std::move(hops)});
  return ReplyField{named_.size() - 1, bytes, last};
}

absl::StatusOr<std::vector<ReplyFields::Hop>> ReplyFields::FindHops(const Descriptor& reply,
                                                                    std::string_view path) const {
  std::vector<Hop> hops;
  const Descriptor* type = &reply;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(path.data(), path.size()), '.')) {
    if (!hops.empty() && hops.back().index == kNoIndex && hops.back().field->is_repeated()) {
      if (part != "length" || path.substr(static_cast<size_t>(part.data() - path.data())) != "length")
        return absl::InvalidArgumentError(AsList(*hops.back().field));
      hops.back().index = kLength;
      return hops;
    }
    if (type == nullptr) return absl::InvalidArgumentError(Join(hops.back().field->name(), " has no fields"));
    std::string name;
    int index = -1;
    if (!SplitIndex({part.data(), part.size()}, &name, &index)) {
      return absl::InvalidArgumentError("an index is a number: write accounts[0]");
    }
    const FieldDescriptor* field = FindField(*type, name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          Join(type->full_name(), " has no field \"", name, "\"", NamesHint(name, FieldNames(*type))));
    }
    if (index >= 0 && (field->is_map() || !field->is_repeated())) {
      return absl::InvalidArgumentError(
          field->is_map() ? AsList(*field) : Join(name, " is not a list: write it without an index"));
    }
    hops.push_back({field, index});
    type = field->message_type();
  }
  const FieldDescriptor& last = *hops.back().field;
  if (last.is_repeated() && hops.back().index == kNoIndex) return absl::InvalidArgumentError(AsList(last));
  if (type == nullptr) return hops;
  return absl::InvalidArgumentError(Join(hops.back().field->name(), " is a message: name one of its fields",
                                         NamesHint("", FieldNames(*type))));
}

absl::Status ReplyFields::Keep(size_t step, std::string_view reply, KeptValues* kept) const {
  kept->resize(named_.size());
  if (steps_[step].slots.empty()) return absl::OkStatus();
  const std::unique_ptr<google::protobuf::Message> root(factory_->GetPrototype(steps_[step].reply)->New());
  if (!root->ParsePartialFromArray(reply.data(), static_cast<int>(reply.size()))) {
    return absl::InternalError(Join("the reply is not a message of type ", steps_[step].reply->full_name()));
  }
  for (const size_t slot : steps_[step].slots) {
    const google::protobuf::Message* at = root.get();
    std::optional<std::string>& value = (*kept)[slot];
    for (const auto& [field, index] : named_[slot].hops) {
      const Reflection& r = *at->GetReflection();
      if (index == kLength) {
        value = InText(r.FieldSize(*at, field));
        break;
      }
      const bool there = field->is_repeated() ? index < r.FieldSize(*at, field)
                                              : !field->has_presence() || r.HasField(*at, field);
      if (!there) break;
      if (field->message_type() == nullptr) value = TextOf(*at, field, index);
      else at = index < 0 ? &r.GetMessage(*at, field) : &r.GetRepeatedMessage(*at, field, index);
    }
  }
  return absl::OkStatus();
}

bool AppendKept(const ReplyField& field, std::string_view text, const Draw& draw, std::string* out) {
  const bool there = draw.kept != nullptr && field.slot < draw.kept->size() && (*draw.kept)[field.slot];
  if (there) *out += *(*draw.kept)[field.slot];
  else if (draw.error != nullptr)
    *draw.error = absl::InvalidArgumentError(Join(text, " has no value in this reply"));
  return there;
}

}  // namespace curtail::internal
