// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/serve.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/common/variant.h"
#include "bench/fences/front.h"
#include "bench/fences/services.h"
#include "curtail/rpc/server_main.h"

namespace curtail::fences {
namespace {

using bench::RefuseRole;
using bench::ServeRole;

int ServeLeaf(const Role& role, ServerOptions options) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakeLeaf(role.part == kLeafB, std::chrono::milliseconds(role.service_time_ms)));
  return ServeRole(std::move(options), std::move(services));
}

int ServeFront(const Role& role, ServerOptions options) {
  if (role.addresses.size() != kApplications.size()) {
    return RefuseRole(absl::InvalidArgumentError("the front has four applications"));
  }
  Client client;
  std::vector<std::unique_ptr<Channel>> channels;
  ApplicationChannels all{};
  for (size_t i = 0; i < all.size(); ++i) {
    channels.push_back(std::make_unique<Channel>(&client, role.addresses[i]));
    all[i] = channels.back().get();
  }
  return ServeRole(std::move(options), MakeFront(all));
}

int ServeShared(const Role& role, ServerOptions options) {
  const bool upper = role.part == kUpper;
  if (role.addresses.size() != (upper ? 1u : 2u)) {
    return RefuseRole(absl::InvalidArgumentError("a shared service has two leaves, or one service below it"));
  }
  Client client;
  Channel a(&client, role.addresses.front()), b(&client, role.addresses.back());
  return ServeRole(std::move(options), MakeShared({.a = &a, .b = &b, .upper = upper}));
}

}  // namespace

int Serve(const Role& role) {
  BlockStopSignals();
  const absl::StatusOr<bench::Variant> variant = bench::Variant::Parse(role.variant);
  if (!variant.ok()) return RefuseRole(variant.status());
  if (role.part == kLeafA || role.part == kLeafB) return ServeLeaf(role, variant->Options());
  if (role.part == kShared || role.part == kUpper) return ServeShared(role, variant->Options());
  if (role.part == kFront) return ServeFront(role, variant->Options());
  return RefuseRole(absl::InvalidArgumentError(absl::StrCat("there is no role ", role.part)));
}

}  // namespace curtail::fences
