// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/json_document.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr double kMaxNanos = 9e18;
constexpr size_t kShownKey = 60;
constexpr std::string_view kNotJsonAt = "is not JSON at ";

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns "LINE:COLUMN" of byte `at` of `text`, counted from 1.
std::string Place(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, std::min(at == 0 ? 0 : at - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  return Join(line, ":", before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
}

absl::Status IsNo(const JsonKind& kind, std::string_view why) {
  return absl::InvalidArgumentError(Join("is not a ", kind.name, ": ", why));
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, const JsonKind& kind) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto bounded = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kind.max_depth) throw Refused(Join("it is nested more deeply than any ", kind.name));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw Refused(
            Join("it has the key \"", std::string_view(key).substr(0, kShownKey), "\" twice in one object"));
      }
      if (keys.back().size() > kind.max_keys) throw Refused("it has an object with too many keys");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), bounded);
  } catch (const Json::parse_error& error) {
    const bool cut = error.byte > text.size();
    return absl::InvalidArgumentError(
        Join(kNotJsonAt, Place(text, error.byte), cut ? ": it ends too early" : ""));
  } catch (const Json::exception&) {  // such as a number beyond all doubles
    return absl::InvalidArgumentError(Join("is not JSON: a value that no ", kind.name, " has"));
  } catch (const Refused& error) {
    return IsNo(kind, error.what());
  }
}

std::string JsonFileError(std::string_view file, const absl::Status& status) {
  std::string_view message = Message(status);
  if (!message.starts_with(kNotJsonAt)) return Join(file, " ", message);
  message.remove_prefix(kNotJsonAt.size());
  const std::string_view place = message.substr(0, message.find(": "));
  return Join(file, ":", place, ": ", place == message ? "this is not JSON" : "the JSON ends too early");
}

absl::Status CheckSchemaVersion(const Json& json, const JsonKind& kind, int known, std::string_view hint) {
  const auto version = json.is_object() ? json.find("schema_version") : json.end();
  if (!json.is_object() || version == json.end() || !version->is_number_integer()) {
    return IsNo(kind, "it has no schema_version");
  }
  if (*version == known) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("has schema_version ", version->dump(), ", and only ", known, " is understood", hint));
}

JsonNode JsonNode::operator[](const char* key) const {
  JsonNode child(this, key);
  if (!Has(Json::value_t::object, "an object")) return child;
  const auto found = value_->find(key);
  if (found == value_->end()) {
    child.Complain("is missing");
  } else {
    child.value_ = &*found;
  }
  return child;
}

void JsonNode::AllowOnly(std::initializer_list<std::string_view> keys) const {
  if (!Has(Json::value_t::object, "an object")) return;
  for (const auto& [key, member] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    return Complain(Join("has the unknown key \"", std::string_view(key).substr(0, kShownKey), "\""));
  }
}

std::string JsonNode::Text(size_t at_most) const {
  if (!Has(Json::value_t::string, "a string")) return {};
  if (value_->get_ref<const std::string&>().size() <= at_most) return value_->get<std::string>();
  Complain(Join("has more than ", at_most, " characters"));
  return {};
}

double JsonNode::Number(double low, double high) const {
  if (value_ == nullptr) return 0;
  const double number =
      value_->is_number() ? value_->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (number >= low && number <= high) return number;
  Complain(absl::StrCat("must be a number from ", low, " to ", high));
  return 0;
}

std::optional<double> JsonNode::NumberOrNull(double low, double high) const {
  if (IsNull()) return std::nullopt;
  return Number(low, high);
}

uint64_t JsonNode::Count(uint64_t high) const {
  if (value_ == nullptr) return 0;
  if (value_->is_number_unsigned() && value_->get<uint64_t>() <= high) return value_->get<uint64_t>();
  Complain(Join("must be a whole number from 0 to ", high));
  return 0;
}

std::string Compact(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Nanos JsonNode::Us() const { return Nanos(std::llround(Number(0, kMaxNanos / 1e3) * 1e3)); }
Nanos JsonNode::Sec() const { return Nanos(std::llround(Number(0, kMaxNanos / 1e9) * 1e9)); }

void JsonNode::Complain(std::string_view what) const {
  if (!problem_->empty()) return;
  const std::string path = Path();
  *problem_ = Join(path.empty() ? "it" : path, " ", what);
}

bool JsonNode::Has(Json::value_t type, std::string_view name) const {
  if (value_ == nullptr) return false;
  if (value_->type() != type) Complain(Join("must be ", name));
  return value_->type() == type;
}

bool JsonNode::CheckArray(size_t at_most) const {
  if (!Has(Json::value_t::array, "an array")) return false;
  if (value_->size() > at_most) Complain(Join("has more than ", at_most, " items"));
  return value_->size() <= at_most;
}

std::string JsonNode::Path() const {
  if (parent_ == nullptr) return {};
  const std::string above = parent_->Path();
  if (key_ == nullptr) return Join(above, "[", index_, "]");
  return above.empty() ? key_ : Join(above, ".", key_);
}

}  // namespace curtail::internal
