// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/shard.h"

#include <charconv>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

bool ReadNumber(std::string_view text, uint32_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

absl::StatusOr<Shard> Shard::Parse(std::string_view text) {
  Shard shard;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !ReadNumber(text.substr(0, slash), &shard.index) ||
      !ReadNumber(text.substr(slash + 1), &shard.count) || shard.count > kMaxShards ||
      shard.index >= shard.count) {
    return absl::InvalidArgumentError(
        Join("shard \"", text, "\": write INDEX/COUNT, as in 0/4, with INDEX below COUNT and COUNT at most ",
             kMaxShards));
  }
  return shard;
}

std::string Shard::ToString() const { return Join(index, "/", count); }

}  // namespace curtail
