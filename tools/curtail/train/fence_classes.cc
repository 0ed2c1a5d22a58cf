// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/fence_classes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "curtail/rpc/admin/admin.pb.h"

namespace curtail::tool {
namespace {

constexpr uint64_t kMostRequests = 2000;  // of a workload that are looked at

RequestGroup& GroupWith(std::vector<RequestGroup>& groups, std::string RequestGroup::* field,
                        const std::string& value) {
  for (RequestGroup& group : groups) {
    if (group.*field == value) return group;
  }
  groups.emplace_back().*field = value;
  return groups.back();
}

}  // namespace

std::vector<RequestGroup> GroupByMethod(const Workload& workload) {
  const uint64_t count =
      workload.distinct() == 0 ? kMostRequests : std::min(workload.distinct(), kMostRequests);
  std::vector<RequestGroup> groups;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string method(workload.MethodOf(i));
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const RequestGroup& group) { return group.methods.front() == method; });
    if (at == groups.end()) at = groups.insert(at, {.path_class = {}, .methods = {method}, .requests = {}});
    at->requests.push_back(i);
  }
  return groups;
}

std::string ClassOfMethod(const admin::v1::GetStatusReply& status, std::string_view method) {
  for (const admin::v1::FenceClass& of : status.fences().classes()) {
    if (std::find(of.methods().begin(), of.methods().end(), method) != of.methods().end()) return of.name();
  }
  return {};
}

absl::StatusOr<std::vector<RequestGroup>> GroupByClass(const std::vector<RequestGroup>& methods,
                                                       const admin::v1::GetStatusReply& status) {
  if (status.fences().mode() != "dry-run") {
    return absl::FailedPreconditionError(
        absl::StrCat("the server runs with --fence ", status.has_fences() ? status.fences().mode() : "off",
                     ": start it with --fence dry-run, which knows path classes and holds no request back"));
  }
  std::vector<RequestGroup> groups;
  for (const RequestGroup& of : methods) {
    const std::string& method = of.methods.front();
    const std::string path_class = ClassOfMethod(status, method);
    if (path_class.empty() || path_class == "unknown" || path_class == "other") {
      return absl::FailedPreconditionError(
          absl::StrCat("the path class of ", method, " is ", path_class.empty() ? "not told" : path_class,
                       " after its first requests: declare the services that it calls (Paths())"));
    }
    RequestGroup& group = GroupWith(groups, &RequestGroup::path_class, path_class);
    group.methods.push_back(method);
    group.requests.insert(group.requests.end(), of.requests.begin(), of.requests.end());
  }
  for (RequestGroup& group : groups) std::sort(group.requests.begin(), group.requests.end());
  return groups;
}

std::vector<std::string> ServicesOf(std::string_view path_class) {
  std::vector<std::string> services = absl::StrSplit(std::string(path_class), '+');
  std::sort(services.begin(), services.end());
  return services;
}

}  // namespace curtail::tool
