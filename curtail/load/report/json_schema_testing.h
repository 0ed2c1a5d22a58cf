// SPDX-License-Identifier: Apache-2.0
//
// json_schema_testing.h - whether JSON is what a schema says, for tests of what is written.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace curtail {

// A SchemaValidator knows the part of JSON Schema that the schemas in this tree use, and complains about
// any other. Thread-compatible.
class SchemaValidator {
 public:
  explicit SchemaValidator(nlohmann::json root);

  // What is wrong with `value`, as "path: problem"; empty when nothing is. By the whole schema, or by what
  // `ref` names in it, as in "/$defs/result".
  std::vector<std::string> Check(const nlohmann::json& value, const std::string& ref = "");

 private:
  void Check(const nlohmann::json& value, const nlohmann::json& schema, const std::string& path);
  void CheckObject(const nlohmann::json& value, const nlohmann::json& schema, const std::string& path);
  void CheckArray(const nlohmann::json& value, const nlohmann::json& schema, const std::string& path);

  const nlohmann::json root_;
  std::vector<std::string> problems_;
};

}  // namespace curtail
