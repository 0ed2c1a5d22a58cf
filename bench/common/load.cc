// SPDX-License-Identifier: Apache-2.0
#include "bench/common/load.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace curtail::bench {
namespace {

struct Kind {
  Load::Kind kind;
  const char* prefix;
  uint32_t LoadLimits::* most;
};
constexpr Kind kKinds[] = {{Load::Kind::kClosed, "closed-", &LoadLimits::closed},
                           {Load::Kind::kOpen, "open-", &LoadLimits::open}};

absl::StatusOr<Load> ParseLoad(absl::string_view name, const LoadLimits& limits) {
  std::vector<std::string> wanted;
  for (const Kind& kind : kKinds) {
    const uint32_t most = limits.*kind.most;
    if (most == 0) continue;
    absl::string_view number = name;
    Load load{kind.kind, 0};
    if (absl::ConsumePrefix(&number, kind.prefix) && absl::SimpleAtoi(number, &load.number) &&
        load.number >= 1 && load.number <= most) {
      return load;
    }
    wanted.push_back(absl::StrCat(kind.prefix, "N with N from 1 to ", most));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not a load; write ", absl::StrJoin(wanted, ", ")));
}

}  // namespace

std::string Load::Name() const { return absl::StrCat(kKinds[static_cast<size_t>(kind)].prefix, number); }

absl::StatusOr<std::vector<Load>> ParseLoads(const std::vector<std::string>& names,
                                             const LoadLimits& limits) {
  std::vector<Load> loads;
  for (const std::string& name : names) {
    absl::StatusOr<Load> load = ParseLoad(name, limits);
    if (!load.ok()) return load.status();
    loads.push_back(*load);
  }
  return loads;
}

}  // namespace curtail::bench
