// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/reply_check.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "curtail/base/internal/closest.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/internal/reply_fields.h"
#include "google/protobuf/descriptor.h"

namespace curtail {
namespace {

using google::protobuf::FieldDescriptor;
using internal::Json;

// Larger bodies are not read: that would stop the generator.
constexpr size_t kMaxBody = 4u << 20;
constexpr size_t kMaxFound = 80;  // bytes of a value in a report

enum class CheckOp { kHasValue, kEqual, kNotEqual, kLessEqual, kGreaterEqual, kLess, kGreater, kContains };

struct CheckComparison {
  std::string_view text;
  CheckOp op;
};
// A longer one goes before its beginning.
constexpr CheckComparison kComparisons[] = {
    {"==", CheckOp::kEqual},          {"!=", CheckOp::kNotEqual}, {"<=", CheckOp::kLessEqual},
    {">=", CheckOp::kGreaterEqual},   {"<", CheckOp::kLess},      {">", CheckOp::kGreater},
    {"contains", CheckOp::kContains},
};

struct ParsedCheck {
  std::string path;  // without the dot at its begin; empty: the whole reply
  CheckOp op = CheckOp::kHasValue;
  Json expected;
};

std::string_view StripBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

absl::Status InvalidCheck(std::string_view check, std::string_view what) {
  return absl::InvalidArgumentError(Join("check '", check, "': ", what));
}

absl::Status ReadComparison(std::string_view text, ParsedCheck* check) {
  const auto* const found = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                         [&](const CheckComparison& c) { return text.starts_with(c.text); });
  if (found == std::end(kComparisons)) {
    return absl::InvalidArgumentError(
        Join("'", text, "' is not a comparison; write ==, !=, <, <=, >, >= or contains, and a value"));
  }
  check->op = found->op;
  const std::string_view value = StripBlanks(text.substr(found->text.size()));
  check->expected = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (check->expected.is_discarded()) {
    return absl::InvalidArgumentError(
        value.empty()
            ? Join("no value follows ", found->text)
            : Join("'", value, "' is not a value of JSON; write a string in quotes, as \"", value, "\""));
  }
  if (check->expected.is_structured())
    return absl::InvalidArgumentError("compare with a number, a string, true, false or null");
  const bool text_only = check->op == CheckOp::kContains;
  const bool ordered = check->op != CheckOp::kEqual && check->op != CheckOp::kNotEqual;
  if (ordered && !check->expected.is_string() && (text_only || !check->expected.is_number()))
    return absl::InvalidArgumentError(
        Join(found->text, text_only ? " needs a string in quotes" : " needs a number or a string"));
  return absl::OkStatus();
}

absl::StatusOr<ParsedCheck> ParseCheck(std::string_view text) {
  const std::string_view stripped = StripBlanks(text);
  if (!stripped.starts_with('.'))
    return InvalidCheck(text, "it must begin with the path of a field, as in .user.id == 7");
  ParsedCheck check;
  const size_t end = std::min(stripped.find_first_of(" \t=!<>"), stripped.size());
  check.path = stripped.substr(1, end - 1);
  const std::string_view rest = StripBlanks(stripped.substr(end));
  if (!rest.empty()) {
    if (absl::Status status = ReadComparison(rest, &check); !status.ok())
      return InvalidCheck(text, Message(status));
  }
  if (check.path.empty() && check.op != CheckOp::kContains)
    return InvalidCheck(text, "name a field, as in .user.id == 7, or write . contains \"TEXT\"");
  return check;
}

absl::StatusOr<std::vector<ParsedCheck>> ParseChecks(const std::vector<std::string>& texts) {
  if (texts.empty() || texts.size() > ReplyChecks::kMost)
    return absl::InvalidArgumentError(Join("there must be from 1 to ", ReplyChecks::kMost, " checks"));
  std::vector<ParsedCheck> checks;
  for (const std::string& text : texts) {
    absl::StatusOr<ParsedCheck> check = ParseCheck(text);
    if (!check.ok()) return check.status();
    checks.push_back(*std::move(check));
  }
  return checks;
}

bool HasCheckedValue(const Json& value) {
  if (value.is_number()) return value != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value != false && !value.empty();
}

// An absent value is null.
bool CheckHolds(const ParsedCheck& check, const Json& value) {
  const Json& expected = check.expected;
  if (check.op == CheckOp::kHasValue) return HasCheckedValue(value);
  if (check.op == CheckOp::kEqual) return value == expected;
  if (check.op == CheckOp::kNotEqual) return value != expected;
  if (!(value.is_string() && expected.is_string()) && !(value.is_number() && expected.is_number()))
    return false;
  switch (check.op) {
    case CheckOp::kLess:
      return value < expected;
    case CheckOp::kLessEqual:
      return value <= expected;
    case CheckOp::kGreater:
      return value > expected;
    case CheckOp::kGreaterEqual:
      return value >= expected;
    default:
      return value.get_ref<const std::string&>().find(expected.get_ref<const std::string&>()) !=
             std::string::npos;
  }
}

// The words for what a check found.
std::string FoundInReply(const Json* value) {
  if (value == nullptr) return "it is absent";
  const std::string text = internal::Compact(*value);
  return Join("it is ", std::string_view(text).substr(0, kMaxFound), text.size() > kMaxFound ? "..." : "");
}

// ----- bodies

// A field of an object, or an element of a list.
struct BodyHop {
  std::string name;
  std::optional<size_t> index;
};

absl::StatusOr<std::vector<BodyHop>> ParseBodyPath(std::string_view path) {
  std::vector<BodyHop> hops;
  while (!path.empty()) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    if (end > 0) hops.push_back({std::string(path.substr(0, end)), std::nullopt});
    path.remove_prefix(end);
    while (path.starts_with('[')) {
      size_t index = 0;
      const auto [stop, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
      if (error != std::errc() || stop == path.data() + path.size() || *stop != ']')
        return absl::InvalidArgumentError("an index is a number: write .items[0]");
      hops.push_back({"", index});
      path.remove_prefix(static_cast<size_t>(stop + 1 - path.data()));
    }
    if (path.empty()) break;
    if (path == "." || !path.starts_with('.') || path.starts_with(".."))
      return absl::InvalidArgumentError("fields stand behind dots, as in .items[0].name");
    path.remove_prefix(1);
  }
  return hops;
}

// Null if it is absent; `length` holds the length of a list.
const Json* FindInBody(const Json& root, const std::vector<BodyHop>& hops, Json* length) {
  const Json* at = &root;
  for (const BodyHop& hop : hops) {
    if (hop.index) {
      if (!at->is_array() || *hop.index >= at->size()) return nullptr;
      at = &(*at)[*hop.index];
    } else if (at->is_array() && hop.name == "length") {
      *length = at->size();
      at = length;
    } else {
      const auto member = at->find(hop.name);  // the end, if it is not an object
      if (member == at->end()) return nullptr;
      at = &*member;
    }
  }
  return at;
}

class BodyChecks final : public ReplyChecks {
 public:
  BodyChecks(std::vector<std::string> texts, std::vector<ParsedCheck> checks,
             std::vector<std::vector<BodyHop>> paths)
      : ReplyChecks(std::move(texts)), checks_(std::move(checks)), paths_(std::move(paths)) {}

  void Judge(std::string_view body, absl::FunctionRef<void(size_t, std::string_view)> failed) const override {
    const bool read = body.size() <= kMaxBody;
    Json json(Json::value_t::discarded);
    if (read) json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
    for (size_t i = 0; i < checks_.size(); ++i) {
      const ParsedCheck& check = checks_[i];
      if (paths_[i].empty()) {
        if (body.find(check.expected.get_ref<const std::string&>()) == body.npos)
          failed(i, Join("the body has no such text in ", body.size(), " bytes"));
        continue;
      }
      if (json.is_discarded()) {
        failed(i, read ? "the body is not JSON" : "the body is longer than 4 MiB");
        continue;
      }
      Json length;
      const Json* const value = FindInBody(json, paths_[i], &length);
      if (!CheckHolds(check, value == nullptr ? Json() : *value)) failed(i, FoundInReply(value));
    }
  }

 private:
  // Immutable after construction.
  const std::vector<ParsedCheck> checks_;
  const std::vector<std::vector<BodyHop>> paths_;
};

// ----- messages

bool IsTextField(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
}

// Makes the number of a value of an enum its name.
absl::Status FitCheckedEnum(const FieldDescriptor& field, Json* expected) {
  const google::protobuf::EnumDescriptor& type = *field.enum_type();
  if (expected->is_number_integer()) {
    const auto* const value = type.FindValueByNumber(expected->get<int>());
    if (value != nullptr) *expected = std::string(value->name());
    return absl::OkStatus();
  }
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.emplace_back(type.value(i)->name());
  const auto& name = expected->get_ref<const std::string&>();
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join(type.full_name(), " has no value \"", name, "\"", internal::NamesHint(name, names)));
}

// Makes the expected value one of the field's type. `field` is null for the length of a list.
absl::Status FitCheck(const FieldDescriptor* field, ParsedCheck* check) {
  Json& expected = check->expected;
  if (check->op == CheckOp::kHasValue || expected.is_null()) return absl::OkStatus();
  if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
      (expected.is_number_integer() || (expected.is_string() && check->op != CheckOp::kContains)))
    return FitCheckedEnum(*field, &expected);
  if (field != nullptr && IsTextField(*field)) {
    if (expected.is_string()) return absl::OkStatus();
    return absl::InvalidArgumentError(Join(field->name(), " is a string: write the value in quotes, as \"",
                                           internal::Compact(expected), "\""));
  }
  if (check->op == CheckOp::kContains)
    return absl::InvalidArgumentError("contains is for strings: compare with ==, <, ...");
  if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    if (expected.is_boolean()) return absl::OkStatus();
    return absl::InvalidArgumentError(Join(field->name(), " is true or false"));
  }
  // JSON has numbers of 64 bits in quotes.
  if (expected.is_string()) {
    Json number = Json::parse(expected.get_ref<const std::string&>(), nullptr, false);
    if (number.is_number()) expected = std::move(number);
  }
  if (expected.is_number()) return absl::OkStatus();
  return absl::InvalidArgumentError(Join(field == nullptr ? "length" : field->name(), " is a number"));
}

// The kept text as a value of its field.
Json CheckedValueOf(const FieldDescriptor* field, const std::string& text) {
  if (field != nullptr && IsTextField(*field)) return text;
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;  // JSON has no infinities
}

class MessageChecks final : public ReplyChecks {
 public:
  MessageChecks(std::vector<std::string> texts, Catalog catalog)
      : ReplyChecks(std::move(texts)), catalog_(std::move(catalog)) {}

  absl::Status Add(const google::protobuf::Descriptor& reply) {
    fields_.AddStep("", reply);
    absl::StatusOr<std::vector<ParsedCheck>> checks = ParseChecks(texts());
    if (!checks.ok()) return checks.status();
    for (size_t i = 0; i < checks->size(); ++i) {
      ParsedCheck& check = (*checks)[i];
      if (check.path.empty())
        return InvalidCheck(texts()[i], "name a field: the reply is a message, not text");
      const absl::StatusOr<internal::ReplyField> field = fields_.FindIn(0, check.path);
      if (!field.ok()) return InvalidCheck(texts()[i], Message(field.status()));
      if (absl::Status status = FitCheck(field->field, &check); !status.ok())
        return InvalidCheck(texts()[i], Message(status));
      places_.push_back(*field);
    }
    checks_ = *std::move(checks);
    return absl::OkStatus();
  }

  void Judge(std::string_view reply,
             absl::FunctionRef<void(size_t, std::string_view)> failed) const override {
    KeptValues kept;
    const absl::Status parsed = fields_.Keep(0, reply, &kept);
    for (size_t i = 0; i < checks_.size(); ++i) {
      if (!parsed.ok()) {
        failed(i, Message(parsed));
        continue;
      }
      const std::optional<std::string>& text = kept[places_[i].slot];
      const Json value = text ? CheckedValueOf(places_[i].field, *text) : Json();
      if (!CheckHolds(checks_[i], value)) failed(i, FoundInReply(text ? &value : nullptr));
    }
  }

 private:
  // Immutable after Add().
  const Catalog catalog_;  // has the types that fields_ refers to
  internal::ReplyFields fields_;
  std::vector<ParsedCheck> checks_;
  std::vector<internal::ReplyField> places_;  // of each check
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ReplyChecks>> ReplyChecks::OfMessages(std::vector<std::string> texts,
                                                                           Catalog catalog,
                                                                           const CatalogMethod& method) {
  auto checks = std::make_shared<MessageChecks>(std::move(texts), std::move(catalog));
  if (absl::Status status = checks->Add(*method.descriptor->output_type()); !status.ok()) return status;
  return checks;
}

absl::StatusOr<std::shared_ptr<const ReplyChecks>> ReplyChecks::OfBodies(std::vector<std::string> texts) {
  absl::StatusOr<std::vector<ParsedCheck>> checks = ParseChecks(texts);
  if (!checks.ok()) return checks.status();
  std::vector<std::vector<BodyHop>> paths;
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StatusOr<std::vector<BodyHop>> path = ParseBodyPath((*checks)[i].path);
    if (!path.ok()) return InvalidCheck(texts[i], Message(path.status()));
    paths.push_back(*std::move(path));
  }
  return std::make_shared<BodyChecks>(std::move(texts), *std::move(checks), std::move(paths));
}

std::vector<std::string> ChecksOfLines(std::string_view text) {
  std::vector<std::string> checks;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = StripBlanks(line);
    if (!line.empty() && !line.starts_with('#')) checks.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return checks;
}

}  // namespace curtail
