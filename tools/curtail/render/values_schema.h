// SPDX-License-Identifier: Apache-2.0
//
// values_schema.h - the values.schema.json of a chart, by which Helm refuses values that the chart does not have.
#pragma once

#include <string>

#include "tools/curtail/render/yaml.h"

namespace curtail::tool {

// The schema, in JSON, of all values that agree with `values` in their keys and types. A pure function.
std::string ValuesSchema(const Yaml& values);

}  // namespace curtail::tool
