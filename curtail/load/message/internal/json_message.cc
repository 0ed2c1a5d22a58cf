// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/json_message.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"

namespace curtail::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Kind = JsonReader::Kind;

constexpr std::string_view kTypeMember = "@type";

enum class Mapping { kObject, kOwnForm, kWrapper };

// How the JSON mapping writes messages of this type.
Mapping MappingOf(const Descriptor& type) {
  constexpr std::string_view kPackage = "google.protobuf.";
  std::string_view name = type.full_name();
  if (!name.starts_with(kPackage)) return Mapping::kObject;
  name.remove_prefix(kPackage.size());
  for (const char* own : {"Any", "Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue"}) {
    if (name == own) return Mapping::kOwnForm;
  }
  for (const char* wrapper : {"DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value",
                              "UInt32Value", "BoolValue", "StringValue", "BytesValue"}) {
    const FieldDescriptor* value = type.field_count() == 1 ? type.field(0) : nullptr;
    const bool genuine = value != nullptr && !value->is_repeated() && value->message_type() == nullptr;
    if (name == wrapper && genuine) return Mapping::kWrapper;
  }
  return Mapping::kObject;
}

// Fields for which null is a value, and not the same as absence.
bool TakesNull(const FieldDescriptor& field) {
  if (field.is_map()) return false;
  if (field.enum_type() != nullptr) return field.enum_type()->full_name() == "google.protobuf.NullValue";
  return field.message_type() != nullptr && field.message_type()->full_name() == "google.protobuf.Value";
}

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kGroupBegin = 3,
  kGroupEnd = 4,
  kFixed32 = 5
};

WireType WireTypeOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return kFixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return kFixed32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return kLength;
    case FieldDescriptor::TYPE_GROUP:
      return kGroupBegin;
    default:
      return kVarint;
  }
}

std::string Tag(const FieldDescriptor& field, WireType wire_type) {
  std::string tag;
  AppendVarint(static_cast<uint64_t>(field.number()) << 3 | wire_type, &tag);
  return tag;
}

}  // namespace

JsonMessageReader::JsonMessageReader(const Descriptor& type, uint64_t seed, ReplyFields* replies)
    : type_(type), seed_(seed), replies_(replies), factory_(type.file()->pool()) {}
JsonMessageReader::~JsonMessageReader() = default;

absl::Status JsonMessageReader::Error(size_t offset, std::string_view what) const {
  if (!in_->ok()) return in_->status();
  return in_->Error(offset, path_.empty() ? std::string(what) : Join("field ", path_, ": ", what));
}

absl::StatusOr<MessageProgram> JsonMessageReader::Read(JsonReader* in) {
  in_ = in;
  path_.clear();
  placeholders_ = 0;
  drawn_bytes_ = 0;
  MessageProgram program;
  if (absl::Status status = ReadMessage(type_, &program); !status.ok()) return status;
  return program;
}

absl::Status JsonMessageReader::ReadMessage(const Descriptor& type, MessageProgram* out) {
  switch (MappingOf(type)) {
    case Mapping::kOwnForm:
      return ReadWellKnown(type, out);
    case Mapping::kWrapper:
      return ReadValue(*type.field(0), Tag(*type.field(0), WireTypeOf(*type.field(0))), true, out);
    case Mapping::kObject:
      break;
  }
  if (in_->Peek() != Kind::kObject) {
    return Error(in_->NextOffset(),
                 Join("expected an object (", type.full_name(), "), got ", KindName(in_->KindFound())));
  }
  return ReadMembers(type, out);
}

absl::Status JsonMessageReader::ReadMembers(const Descriptor& type, MessageProgram* out, bool of_any) {
  const size_t begin = in_->NextOffset();
  const size_t path_size = path_.size();
  std::vector<std::pair<int, MessageProgram>> fields;
  std::set<std::string> given;
  std::string name;
  in_->EnterObject();
  while (in_->NextMember(&name)) {
    if (std::string_view ignored; of_any && name == kTypeMember) {
      in_->Skip(&ignored);
      continue;
    }
    const FieldDescriptor* field = FindField(type, name);
    if (field == nullptr) return UnknownField(type, name);
    path_ += Join(path_.empty() ? "" : ".", field->name());
    MessageProgram bytes;
    if (absl::Status status = ReadMember(*field, &given, &bytes); !status.ok()) return status;
    path_.resize(path_size);
    if (!bytes.empty()) fields.emplace_back(field->number(), std::move(bytes));
  }
  if (!in_->ok()) return in_->status();
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->is_required() && !given.contains(type.field(i)->name())) {
      return Error(begin, Join("the field ", type.field(i)->name(), " of ", type.full_name(),
                               " is required and missing"));
    }
  }
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [number, bytes] : fields) out->Append(std::move(bytes));
  return absl::OkStatus();
}

absl::Status JsonMessageReader::UnknownField(const Descriptor& type, const std::string& name) const {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return in_->Error(in_->member_offset(),
                    Join(type.full_name(), " has no field \"", name, "\"", NamesHint(name, names)));
}

absl::Status JsonMessageReader::ReadMember(const Field& field, std::set<std::string>* given,
                                           MessageProgram* out) {
  if (in_->Peek() == Kind::kNull && !TakesNull(field)) {
    in_->ReadNull();
    return in_->status();
  }
  if (!given->insert(field.name()).second) return Error(in_->member_offset(), "is given twice");
  if (const auto* oneof = field.real_containing_oneof()) {
    for (int i = 0; i < oneof->field_count(); ++i) {
      if (oneof->field(i) == &field || !given->contains(oneof->field(i)->name())) continue;
      return Error(in_->member_offset(), Join("only one of the oneof ", oneof->name(), " can be given, and ",
                                              oneof->field(i)->name(), " is"));
    }
  }
  if (field.is_map()) return ReadMap(field, out);
  if (field.is_repeated()) return ReadList(field, out);
  return ReadValue(field, Tag(field, WireTypeOf(field)), !field.has_presence(), out);
}

absl::Status JsonMessageReader::ReadList(const Field& field, MessageProgram* out) {
  const Kind kind = in_->Peek();
  if (kind != Kind::kArray) {
    return Error(in_->NextOffset(), Join("expected a list, as the field is repeated, got ", KindName(kind)));
  }
  const bool packed = field.is_packed();
  const std::string tag = packed ? "" : Tag(field, WireTypeOf(field));
  const size_t path_size = path_.size();
  MessageProgram elements;
  in_->EnterArray();
  for (size_t i = 0; in_->NextElement(); ++i) {
    path_ += Join("[", i, "]");
    if (in_->Peek() == Kind::kNull && !TakesNull(field)) {
      return Error(in_->NextOffset(), "null cannot stand in a list");
    }
    if (absl::Status status = ReadValue(field, tag, false, &elements); !status.ok()) return status;
    path_.resize(path_size);
  }
  if (!in_->ok()) return in_->status();
  if (!packed) {
    out->Append(std::move(elements));
  } else if (!elements.empty()) {
    out->AddNested(Tag(field, kLength), std::move(elements));
  }
  return absl::OkStatus();
}

absl::Status JsonMessageReader::ReadMap(const Field& field, MessageProgram* out) {
  const FieldDescriptor& key_field = *field.message_type()->map_key();
  const FieldDescriptor& value_field = *field.message_type()->map_value();
  if (const Kind kind = in_->Peek(); kind != Kind::kObject) {
    return Error(in_->NextOffset(), Join("expected an object, as the field is a map, got ", KindName(kind)));
  }
  const size_t path_size = path_.size();
  std::set<std::string> keys;
  JsonToken key = {Kind::kString, ""};
  in_->EnterObject();
  while (in_->NextMember(&key.text)) {
    if (key.text.find("{{") != std::string::npos) {
      return Error(in_->member_offset(), "the key of a map cannot be a placeholder, as keys must differ");
    }
    Scalar parsed;
    if (absl::Status status = ParseScalar(key_field, key, &parsed); !status.ok()) {
      return Error(in_->member_offset(), Join("as a key of the map ", Message(status)));
    }
    MessageProgram entry;
    entry.AddBytes(Tag(key_field, WireTypeOf(key_field)));
    entry.AddScalar(key_field.type(), parsed);
    std::string bytes;
    AppendScalar(key_field.type(), parsed, &bytes);
    path_ += Join("[", Quoted(key), "]");
    if (!keys.insert(bytes).second) return Error(in_->member_offset(), "is given twice");
    if (in_->Peek() == Kind::kNull && !TakesNull(value_field)) {
      return Error(in_->NextOffset(), "null cannot stand in a map");
    }
    absl::Status status = ReadValue(value_field, Tag(value_field, WireTypeOf(value_field)), false, &entry);
    if (!status.ok()) return status;
    path_.resize(path_size);
    out->AddNested(Tag(field, kLength), std::move(entry));
  }
  return in_->status();
}

absl::Status JsonMessageReader::ReadValue(const Field& field, const std::string& tag, bool omit_default,
                                          MessageProgram* out) {
  if (field.message_type() == nullptr) return ReadScalar(field, tag, omit_default, out);
  MessageProgram body;
  if (absl::Status status = ReadMessage(*field.message_type(), &body); !status.ok()) return status;
  if (field.type() != FieldDescriptor::TYPE_GROUP) {
    out->AddNested(tag, std::move(body));
    return absl::OkStatus();
  }
  out->AddBytes(tag);
  out->Append(std::move(body));
  out->AddBytes(Tag(field, kGroupEnd));
  return absl::OkStatus();
}

absl::Status JsonMessageReader::ReadScalar(const Field& field, const std::string& tag, bool omit_default,
                                           MessageProgram* out) {
  const size_t offset = in_->NextOffset();
  JsonToken token;
  if (!ReadToken(in_, &token)) {
    return Error(offset, Join("expected ", field.cpp_type_name(), ", got ", KindName(token.kind)));
  }
  if (token.kind == Kind::kString && token.text.find("{{") != std::string::npos) {
    const auto pieces = SplitTemplate(token.text);
    if (!pieces.ok()) return Error(offset, Message(pieces.status()));
    const bool drawn =
        std::any_of(pieces->begin(), pieces->end(), [](const auto& p) { return p.placeholder; });
    if (drawn) {
      const absl::Status status =
          AddDrawn(field, {.field = &field, .type = field.type(), .omit_default = omit_default, .tag = tag},
                   *pieces, out);
      return status.ok() ? status : Error(offset, Message(status));
    }
    token.text = (*pieces)[0].text;
  }
  Scalar value;
  if (absl::Status status = ParseScalar(field, token, &value); !status.ok()) {
    return Error(offset, Message(status));
  }
  if (omit_default && IsDefault(field.type(), value)) return absl::OkStatus();
  out->AddBytes(tag);
  out->AddScalar(field.type(), value);
  return absl::OkStatus();
}

absl::StatusOr<Placeholder> JsonMessageReader::ParsePlaceholder(const std::string& text) {
  return Placeholder::Parse(text, seed_ + ++placeholders_ * 0x9e3779b97f4a7c15, replies_);
}

absl::Status JsonMessageReader::AddDrawn(const Field& field, DrawnValue value,
                                         const std::vector<TemplatePiece>& pieces, MessageProgram* out) {
  if (field.type() != FieldDescriptor::TYPE_STRING && pieces.size() > 1) {
    return absl::InvalidArgumentError(
        Join("in a field of type ", field.type_name(), " a placeholder must be the whole string"));
  }
  for (const TemplatePiece& piece : pieces) {
    if (!piece.placeholder) {
      value.parts.push_back({.literal = piece.text});
      continue;
    }
    absl::StatusOr<Placeholder> placeholder = ParsePlaceholder(piece.text);
    if (!placeholder.ok()) return placeholder.status();
    if (absl::Status status = Fit(field, *placeholder, &value); !status.ok()) return status;
    drawn_bytes_ += placeholder->max_bytes();
    value.parts.push_back({.placeholder = *std::move(placeholder)});
  }
  if (drawn_bytes_ > kMaxDrawnBytes) {
    return absl::InvalidArgumentError("the placeholders of this message give more than 64 MiB");
  }
  out->AddDrawn(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonMessageReader::Encode(const Descriptor& type, std::string_view text) {
  if (resolver_ == nullptr) {
    resolver_.reset(
        google::protobuf::util::NewTypeResolverForDescriptorPool("type.googleapis.com", type.file()->pool()));
  }
  google::protobuf::io::ArrayInputStream json(text.data(), static_cast<int>(text.size()));
  std::string binary;
  google::protobuf::io::StringOutputStream sink(&binary);
  const auto status = google::protobuf::util::JsonToBinaryStream(
      resolver_.get(), "type.googleapis.com/" + type.full_name(), &json, &sink);
  const std::unique_ptr<google::protobuf::Message> message(factory_.GetPrototype(&type)->New());
  if (!status.ok() || !message->ParseFromString(binary)) {
    std::string_view why(status.message().data(), status.message().size());
    why.remove_prefix(std::min(why.find_first_not_of(": "), why.size()));
    return absl::InvalidArgumentError(Join(text.size() > 80 ? "this" : text, " is not a valid ",
                                           type.full_name(), why.empty() ? "" : Join(" (", why, ")")));
  }
  // Maps inside (Struct) in one order every time.
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message->SerializePartialToCodedStream(&coded);
  }
  return bytes;
}

absl::Status JsonMessageReader::ReadWellKnown(const Descriptor& type, MessageProgram* out) {
  const size_t offset = in_->NextOffset();
  std::string_view raw;
  if (!in_->PeekText(&raw)) return in_->status();
  if (raw.find("{{") != std::string_view::npos) {
    const std::string_view name = type.name();
    if (name == "Any") return ReadAny(type, out);
    if (name == "Timestamp" || name == "Duration") return ReadDrawnTime(type, out);
    return Error(offset, Join("placeholders cannot stand in a ", type.full_name(),
                              "; for two braces as such write \\u007b\\u007b"));
  }
  in_->Skip(&raw);
  const absl::StatusOr<std::string> bytes = Encode(type, raw);
  if (!bytes.ok()) return Error(offset, Message(bytes.status()));
  if (!bytes->empty()) out->AddBytes(*bytes);
  return absl::OkStatus();
}

absl::Status JsonMessageReader::FindAnyType(const Descriptor** type, std::string* url) {
  const size_t begin = in_->NextOffset(), mark = in_->Mark();
  if (in_->Peek() != Kind::kObject)
    return Error(begin, Join("expected an object, got ", KindName(in_->Peek())));
  std::string name;
  std::string_view ignored;
  in_->EnterObject();
  while (in_->NextMember(&name) && name != kTypeMember) in_->Skip(&ignored);
  const size_t offset = in_->NextOffset();
  const bool found = name == kTypeMember && in_->Peek() == Kind::kString && in_->ReadString(url);
  in_->Return(mark);
  if (!found)
    return Error(begin, "an Any needs its type: \"@type\": \"type.googleapis.com/package.Message\"");
  const std::string full_name = url->substr(url->rfind('/') + 1);
  *type = type_.file()->pool()->FindMessageTypeByName(full_name);
  if (*type != nullptr) return absl::OkStatus();
  return Error(offset, Join("no file that describes this method has the type \"", full_name,
                            "\": add the file that has it with --proto"));
}

absl::Status JsonMessageReader::ReadAny(const Descriptor& type, MessageProgram* out) {
  const Descriptor* inner = nullptr;
  std::string url;
  if (absl::Status status = FindAnyType(&inner, &url); !status.ok()) return status;
  MessageProgram body;
  if (MappingOf(*inner) == Mapping::kObject) {
    if (absl::Status status = ReadMembers(*inner, &body, /*of_any=*/true); !status.ok()) return status;
  } else {
    std::string name;
    std::string_view ignored;
    in_->EnterObject();
    while (in_->NextMember(&name)) {
      if (name == kTypeMember) {
        in_->Skip(&ignored);
        continue;
      }
      if (name != "value")
        return in_->Error(in_->member_offset(),
                          Join("an Any of ", inner->full_name(), " has it as \"value\""));
      if (absl::Status status = ReadMessage(*inner, &body); !status.ok()) return status;
    }
  }
  if (!in_->ok()) return in_->status();
  std::string head = Tag(*type.FindFieldByNumber(1), kLength);
  AppendVarint(url.size(), &head);
  out->AddBytes(head + url);
  if (!body.empty()) out->AddNested(Tag(*type.FindFieldByNumber(2), kLength), std::move(body));
  return absl::OkStatus();
}

absl::Status JsonMessageReader::ReadDrawnTime(const Descriptor& type, MessageProgram* out) {
  const size_t offset = in_->NextOffset();
  const bool duration = type.name() == "Duration";
  std::string text;
  if (!in_->ReadString(&text)) return in_->status();
  const auto pieces = SplitTemplate(text);
  if (!pieces.ok()) return Error(offset, Message(pieces.status()));
  const bool alone = pieces->size() == 1 && pieces->front().placeholder;
  const bool seconds =
      duration && pieces->size() == 2 && pieces->front().placeholder && pieces->back().text == "s";
  if (alone || seconds) {
    const absl::StatusOr<Placeholder> drawn = ParsePlaceholder(pieces->front().text);
    if (!drawn.ok()) return Error(offset, Message(drawn.status()));
    // The words of a pick have their unit.
    if ((drawn->kind() == Placeholder::Kind::kPick ? alone : alone != duration)) {
      const absl::Status added = AddDrawnTime(type, *drawn, out);
      return added.ok() ? added : Error(offset, Message(added));
    }
  }
  return Error(offset,
               duration ? "write a Duration with placeholders as \"{{uniform 1 60}}s\", \"{{real 0 2.5}}s\" "
                          "or \"{{pick 1s 0.25s}}\""
                        : "write a Timestamp with placeholders as seconds since 1970, \"{{uniform "
                          "1700000000 1800000000}}\", or \"{{pick 2026-01-31T12:00:00Z ...}}\"");
}

absl::Status JsonMessageReader::AddDrawnTime(const Descriptor& type, const Placeholder& drawn,
                                             MessageProgram* out) {
  using Kind = Placeholder::Kind;
  const bool duration = type.name() == "Duration";
  const int64_t low = duration ? -315'576'000'000 : -62'135'596'800;
  const int64_t high = duration ? 315'576'000'000 : 253'402'300'799;
  const FieldDescriptor* const seconds = type.FindFieldByNumber(1);
  const FieldDescriptor* const nanos = type.FindFieldByNumber(2);
  DrawnValue value = {
      .field = seconds, .type = seconds->type(), .omit_default = true, .tag = Tag(*seconds, kVarint)};
  value.parts.push_back({.placeholder = drawn});
  const bool real = drawn.kind() == Kind::kReal;
  if (drawn.kind() == Kind::kPick) {
    value.take = DrawnValue::Take::kMessage;
    value.omit_default = false;
    for (const std::string& word : drawn.words()) {
      absl::StatusOr<std::string> bytes = Encode(type, Join("\"", word, "\""));
      if (!bytes.ok()) return bytes.status();
      value.words.push_back({.bytes = *std::move(bytes)});
    }
  } else if (real || drawn.kind() == Kind::kInteger) {
    const bool within = real ? drawn.real_min() >= 0 && drawn.real_max() <= static_cast<double>(high)
                             : drawn.is_index() || (drawn.min() >= low && drawn.max() <= high);
    if (!within)
      return absl::InvalidArgumentError(Join("the values of ", drawn.text(), " are not all seconds of a ",
                                             type.full_name(),
                                             real ? ", and fractions must not be negative" : ""));
    if (real) value.take = DrawnValue::Take::kSeconds;
  } else if (drawn.kind() != Kind::kReply || drawn.bytes_of_reply()) {
    return absl::InvalidArgumentError(Join("the values of ", drawn.text(), " are not seconds"));
  }
  DrawnValue rest = value;
  out->AddDrawn(std::move(value));
  if (!real) return absl::OkStatus();
  rest.field = nanos;
  rest.type = nanos->type();
  rest.tag = Tag(*nanos, kVarint);
  rest.take = DrawnValue::Take::kNanos;
  out->AddDrawn(std::move(rest));
  return absl::OkStatus();
}

}  // namespace curtail::internal
