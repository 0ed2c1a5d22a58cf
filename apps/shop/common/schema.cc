// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "apps/shop/data.h"
#include "curtail/base/embedded_file.h"

namespace curtail::shop {

std::span<const EmbeddedFile> SchemaFiles();  // made by CMake

std::string SchemaOf(std::string_view name) {
  for (const EmbeddedFile& file : SchemaFiles()) {
    if (file.name == Join(name, ".sql")) return std::string(file.bytes);
  }
  return Join("there is no file services/", name, ".sql");  // which no database takes
}

}  // namespace curtail::shop
