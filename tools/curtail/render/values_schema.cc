// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/values_schema.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace curtail::tool {
namespace {

using Json = nlohmann::ordered_json;

// Maps whose keys are Kubernetes's, or the user's.
bool IsFree(std::string_view key) { return key == "resources" || key == "labels"; }

Json OneOf(std::initializer_list<const char*> values) { return {{"type", "string"}, {"enum", values}}; }

Json SchemaOf(std::string_view key, const Yaml& value) {
  if (key == "logFormat") return OneOf({"json", "text"});
  if (key == "imagePullPolicy") return OneOf({"Always", "IfNotPresent", "Never"});
  if (key == "fence") return OneOf({"", "off", "on", "dry-run", "strict"});
  if (key == "imagePullSecrets")
    return {{"type", "array"}, {"items", {{"type", "object"}, {"required", {"name"}}}}};
  if (key == "sample") return {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
  switch (value.kind()) {
    case Yaml::Kind::kText:
      return {{"type", "string"}};
    case Yaml::Kind::kPlain:
      if (value.text() == "true" || value.text() == "false") return {{"type", "boolean"}};
      return {{"type", "integer"}, {"minimum", key == "replicas" || key == "maxReplicas" ? 1 : 0}};
    case Yaml::Kind::kList:
      return {{"type", "array"},
              {"items", {{"type", "string"}}},
              {"minItems", value.items().size()},
              {"maxItems", value.items().size()}};
    case Yaml::Kind::kMap:
      break;
  }
  Json schema = {{"type", "object"}};
  if (IsFree(key)) return schema;
  Json properties = Json::object();
  for (const Yaml::Entry& entry : value.entries()) properties[entry.key] = SchemaOf(entry.key, entry.value);
  schema["properties"] = std::move(properties);
  schema["additionalProperties"] = false;
  return schema;
}

}  // namespace

std::string ValuesSchema(const Yaml& values) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}};
  schema.update(SchemaOf("", values));
  schema["properties"]["global"] = {{"type", "object"}};  // Helm's own, for charts within others
  return schema.dump(2) + "\n";
}

}  // namespace curtail::tool
