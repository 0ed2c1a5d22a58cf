// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/parts/method_table.h"

#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {

absl::Status MethodTable::Add(std::unique_ptr<Service> service) {
  for (MethodHandler& method : service->Handlers()) {
    std::string path = Join("/", service->FullName(), "/", method.name);
    const auto [place, added] = methods_.try_emplace(path);
    MethodHandler& served = place->second.handler;
    place->second.path = place->second.kind.name = place->first;
    if (added) {
      place->second.index = static_cast<uint32_t>(methods_.size() - 1);
      served = std::move(method);
      place->second.in_line = place->first.starts_with("/grpc.health.v1.Health/") && served.never_waits;
    } else if (served.kind == MethodHandler::Kind::kStream || method.kind == MethodHandler::Kind::kStream) {
      return absl::InvalidArgumentError(Join("method ", path, " is served twice"));
    } else if (!served.handler && method.handler) {
      served.handler = std::move(method.handler);
    } else if (!served.continuation && method.continuation) {
      served.continuation = std::move(method.continuation);  // its straight-line form, if any, is not needed
    } else {
      return absl::InvalidArgumentError(Join("method ", path, " is served twice"));
    }
  }
  if (absl::Status added = AddPaths(*service); !added.ok()) return added;
  services_.push_back(std::move(service));
  return absl::OkStatus();
}

absl::Status MethodTable::AddPaths(const Service& service) {
  for (DeclaredPath& path : service.Paths()) {
    ServedMethod* const method = Find(Join("/", service.FullName(), "/", path.method));
    if (method == nullptr) {
      return absl::InvalidArgumentError(
          Join(service.FullName(), " declares the calls of a method that it has not: ", path.method));
    }
    std::vector<std::string>& names = method->calls.emplace();
    for (PathCall& call : path.calls) names.push_back(std::move(call.name));
  }
  return absl::OkStatus();
}

std::vector<ServedMethod*> MethodTable::InOrder() {
  std::vector<ServedMethod*> methods(methods_.size());
  for (auto& [path, method] : methods_) methods[method.index] = &method;
  return methods;
}

absl::Status MethodTable::CheckModel(const Config& config) const {
  const bool async = config.model.waiting == Waiting::kAsync;
  for (const auto& [path, method] : methods_) {
    const MethodHandler& handler = method.handler;
    if (handler.kind == MethodHandler::Kind::kStream) continue;
    if (async && !handler.continuation && !handler.never_waits) {
      return absl::InvalidArgumentError(Join(
          "config ", config.ToString(), ": ", path,
          " has a straight-line handler; asynchronous models need a coroutine or a continuation handler"));
    }
    if (!async && !handler.handler) {
      return absl::InvalidArgumentError(
          Join("config ", config.ToString(), ": ", path,
               " has a continuation handler only, which runs under asynchronous models (A...)"));
    }
  }
  return absl::OkStatus();
}

std::vector<HeldUpMethod> MethodTable::HeldUp() const {
  std::vector<HeldUpMethod> held_up;
  for (const auto& [path, method] : methods_) {
    const TaskKind& kind = method.kind;
    if (kind.held_up() > 0 || kind.blocks()) held_up.push_back({path, kind.held_up(), kind.blocks()});
  }
  return held_up;
}

std::vector<std::string> MethodTable::ServiceNames() const {
  std::vector<std::string> names;
  for (const auto& service : services_) names.emplace_back(service->FullName());
  return names;
}

}  // namespace curtail::internal
