// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/strings.h"
#include "curtail/fence/limiter/limiter.h"

namespace curtail {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Limiter> (*make)(uint32_t first);
};

constexpr Entry kLimiters[] = {
    {"sct", MakeSct}, {"aimd", MakeAimd}, {"vegas", MakeVegas}, {"gradient2", MakeGradient2}};

}  // namespace

bool IsLimiter(std::string_view name) {
  if (name == kFixedLimit) return true;
  for (const Entry& entry : kLimiters) {
    if (entry.name == name) return true;
  }
  return false;
}

std::string LimiterNames() {
  std::string names(kFixedLimit);
  for (const Entry& entry : kLimiters) names += Join(", ", entry.name);
  return names;
}

std::unique_ptr<Limiter> MakeLimiter(std::string_view name, uint32_t first) {
  for (const Entry& entry : kLimiters) {
    if (entry.name == name) return entry.make(first);
  }
  return nullptr;
}

}  // namespace curtail
