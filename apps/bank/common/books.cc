// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/books.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail::bank {

std::string BooksOf(const Shard& shard) { return Join("posting-", shard.index, "-of-", shard.count); }

absl::StatusOr<uint32_t> ShardsIn(const std::string& folder) {
  constexpr std::string_view kFirst = "posting-0-of-";
  uint32_t shards = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    uint32_t count = 0;
    if (!name.starts_with(kFirst)) continue;
    const auto read = std::from_chars(name.data() + kFirst.size(), name.data() + name.size(), count);
    if (read.ec != std::errc() || count == 0) continue;
    if (shards != 0 && count != shards)
      return absl::FailedPreconditionError(Join(folder, " has books of ", shards, " and of ", count,
                                                " shards; move those away that are not in use"));
    shards = count;
  }
  if (shards != 0) return shards;
  return absl::NotFoundError(Join(folder, " has no books: --data names the folder of the services"));
}

}  // namespace curtail::bank
