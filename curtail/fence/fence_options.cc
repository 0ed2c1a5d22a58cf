// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "curtail/base/strings.h"
#include "curtail/fence/fence.h"
#include "curtail/fence/limiter/limiter.h"

namespace curtail {
namespace {

static_assert(FenceOptions::kMaxLimits == Fence::kMaxClasses - Fence::kFirst);

absl::Status CheckLimits(const std::vector<ClassLimit>& limits) {
  if (limits.size() > FenceOptions::kMaxLimits) {
    return absl::InvalidArgumentError(Join("a fence has limits of at most ", FenceOptions::kMaxLimits,
                                           " path classes, not ", limits.size()));
  }
  std::set<std::string> seen;
  for (const ClassLimit& of : limits) {
    const bool unnamed = std::any_of(of.services.begin(), of.services.end(),
                                     [](const std::string& service) { return service.empty(); });
    if (of.services.empty() || unnamed) {
      return absl::InvalidArgumentError("a limit is of the services that a path class calls: name them");
    }
    const std::string text = ServicesText(of.services);
    if (of.limit == 0) {
      return absl::InvalidArgumentError(Join("the limit of ", text, " is at least 1"));
    }
    if (!seen.insert(text).second) {
      return absl::InvalidArgumentError(Join("the path class ", text, " has two limits"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ServicesText(std::vector<std::string> services) {
  std::sort(services.begin(), services.end());
  std::string text;
  for (const std::string& service : services) {
    if (!text.empty()) text += '+';
    text += service;
  }
  return text;
}

absl::StatusOr<ClassLimit> ParseClassLimit(std::string_view text) {
  const size_t equals = text.rfind('=');
  const std::optional<double> limit =
      equals == std::string_view::npos ? std::nullopt : ParseNumber(text.substr(equals + 1));
  if (!limit || *limit < 1 || *limit > UINT32_MAX || *limit != std::floor(*limit)) {
    return absl::InvalidArgumentError(Join(text, ": write SERVICE+SERVICE=LIMIT, from 1"));
  }
  ClassLimit read{.services = {}, .limit = static_cast<uint32_t>(*limit)};
  for (std::string_view left = text.substr(0, equals);;) {
    const size_t plus = std::min(left.find('+'), left.size());
    read.services.emplace_back(left.substr(0, plus));
    if (plus == left.size()) break;
    left.remove_prefix(plus + 1);
  }
  if (absl::Status checked = CheckLimits({read}); !checked.ok()) return checked;
  return read;
}

absl::Status FenceOptions::Check() const {
  if (!IsLimiter(limit)) {
    return absl::InvalidArgumentError(Join("a fence's limit is one of ", LimiterNames(), ", not ", limit));
  }
  if (absl::Status checked = CheckLimits(limits); !checked.ok()) return checked;
  if (!limits.empty() && mode == FenceMode::kOff) {
    return absl::InvalidArgumentError(Join("the limit of ", ServicesText(limits.front().services),
                                           " needs a fence: on, strict or dry-run, not off"));
  }
  if (!follows()) return absl::OkStatus();
  if (mode != FenceMode::kStrict && mode != FenceMode::kOn) {
    return absl::InvalidArgumentError(Join("the limit ", limit,
                                           " needs a fence that gives permits out: on or strict, not ",
                                           FenceModeName(mode)));
  }
  if (permits < kMaxFollowed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("the limit ", limit, " follows fewer than ", kMaxFollowed, " permits, not ", permits));
}

}  // namespace curtail
