// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/drive/methods.h"

#include <algorithm>
#include <map>
#include <set>

namespace curtail {
namespace {

constexpr uint64_t kLookedAt = 10'000;
constexpr size_t kMost = 1000;

}  // namespace

std::vector<WorkloadMethod> MethodsOf(const Workload& workload) {
  std::set<std::string_view> seen;
  std::vector<WorkloadMethod> methods;
  const uint64_t end = workload.distinct() > 0 ? std::min(workload.distinct(), kLookedAt) : kLookedAt;
  for (uint64_t i = 0; i < end && methods.size() < kMost; ++i) {
    const std::string_view path = workload.MethodOf(i);
    if (seen.insert(path).second) methods.push_back({.path = path, .name = {}, .first = i});
  }
  std::map<std::string_view, int> named;
  const auto last = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  for (const WorkloadMethod& method : methods) ++named[last(method.path)];
  for (WorkloadMethod& method : methods)
    method.name = named[last(method.path)] == 1 ? last(method.path) : method.path.substr(1);
  return methods;
}

}  // namespace curtail
