// SPDX-License-Identifier: Apache-2.0
#include "serve.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/common/variant.h"
#include "compose_service.h"
#include "curtail/rpc/server_main.h"
#include "parts.h"

namespace curtail::study {
namespace {

int ServeOne(ServerOptions options, std::unique_ptr<Service> service) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  return bench::ServeRole(std::move(options), std::move(services));
}

int ServeComposer(const Role& role, const bench::Variant& variant) {
  if (role.addresses.size() != kParts.size()) {
    return bench::RefuseRole(
        absl::InvalidArgumentError(absl::StrCat("compose needs ", kParts.size(), " parts")));
  }
  Client client;
  return ServeOne(variant.Options(kParallelCalls), MakeComposer(variant.async, &client, role.addresses));
}

}  // namespace

int Serve(const Role& role) {
  BlockStopSignals();
  const absl::StatusOr<bench::Variant> variant = bench::Variant::Parse(role.variant);
  if (!variant.ok()) return bench::RefuseRole(variant.status());
  return role.part == kComposer ? ServeComposer(role, *variant)
                                : ServeOne(variant->Options(), MakePart(role.part));
}

}  // namespace curtail::study
