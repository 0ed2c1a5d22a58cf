// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/internal/bounded_log.h"

#include <filesystem>
#include <system_error>

namespace curtail::deploy {

void BoundLog(const std::string& path, uint64_t most) {
  std::error_code error;
  if (path.empty() || std::filesystem::file_size(path, error) <= most || error) return;
  std::filesystem::copy_file(path, path + ".1", std::filesystem::copy_options::overwrite_existing, error);
  if (!error) std::filesystem::resize_file(path, 0, error);
}

}  // namespace curtail::deploy
