// SPDX-License-Identifier: Apache-2.0
//
// schema_testing.h - documents that a unit test leaves for tests/schema, which checks them by their schema.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

namespace curtail {

// Writes `text` to the file `name`.json of the folder that CURTAIL_SCHEMA_DOCUMENTS names, as ctest sets it
// (curtail_schema_test() in cmake/CurtailHelpers.cmake); without it, nowhere.
inline void KeepForSchemaTest(const std::string& name, const std::string& text) {
  const char* const folder = std::getenv("CURTAIL_SCHEMA_DOCUMENTS");
  if (folder != nullptr) std::ofstream(std::string(folder) + "/" + name + ".json", std::ios::binary) << text;
}

}  // namespace curtail
