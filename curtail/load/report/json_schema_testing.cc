// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/json_schema_testing.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace curtail {
namespace {

using nlohmann::json;

bool HasType(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

bool Contains(const json& list, const json& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool TypeFits(const json& value, const json& type) {
  if (type.is_string()) return HasType(value, type);
  return std::any_of(type.begin(), type.end(), [&](const json& t) { return HasType(value, t); });
}

bool IsKnown(const std::string& keyword) {
  static const std::set<std::string> kKnown = {
      "$schema", "title", "description", "type", "required", "$defs",    "properties", "additionalProperties",
      "items",   "$ref",  "const",       "enum", "minimum",  "minItems", "maxItems"};
  return kKnown.contains(keyword);
}

}  // namespace

SchemaValidator::SchemaValidator(json root) : root_(std::move(root)) {}

std::vector<std::string> SchemaValidator::Check(const json& value, const std::string& ref) {
  problems_.clear();
  Check(value, root_.at(json::json_pointer(ref)), "$");
  return problems_;
}

void SchemaValidator::Check(const json& value, const json& schema, const std::string& path) {
  for (const auto& [key, unused] : schema.items()) {
    if (!IsKnown(key)) problems_.push_back(absl::StrCat(path, ": unknown keyword ", key));
  }
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    return Check(value, root_.at(json::json_pointer(ref.substr(1))), path);
  }
  if (schema.contains("const") && schema["const"] != value) problems_.push_back(path + ": not the constant");
  if (schema.contains("enum") && !Contains(schema["enum"], value))
    problems_.push_back(path + ": not in enum");
  if (schema.contains("type") && !TypeFits(value, schema["type"])) problems_.push_back(path + ": wrong type");
  if (value.is_number() && value < schema.value("minimum", -1e300)) problems_.push_back(path + ": too small");
  if (value.is_object()) CheckObject(value, schema, path);
  if (value.is_array()) CheckArray(value, schema, path);
}

void SchemaValidator::CheckObject(const json& value, const json& schema, const std::string& path) {
  for (const std::string key : schema.value("required", json::array())) {
    if (!value.contains(key)) problems_.push_back(absl::StrCat(path, ": lacks ", key));
  }
  const json properties = schema.value("properties", json::object());
  const json others = schema.value("additionalProperties", json(true));
  for (const auto& [key, member] : value.items()) {
    const std::string inner = absl::StrCat(path, ".", key);
    if (properties.contains(key)) {
      Check(member, properties[key], inner);
    } else if (others.is_object()) {
      Check(member, others, inner);
    } else if (others == false) {
      problems_.push_back(inner + ": not declared");
    }
  }
}

void SchemaValidator::CheckArray(const json& value, const json& schema, const std::string& path) {
  if (value.size() < schema.value("minItems", 0u) || value.size() > schema.value("maxItems", ~0u)) {
    problems_.push_back(path + ": wrong length");
  }
  if (!schema.contains("items")) return;
  for (const json& item : value) Check(item, schema["items"], path + "[]");
}

}  // namespace curtail
