// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/serve.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/fences/front.h"
#include "bench/fences/services.h"
#include "bench/fences/variant.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server_main.h"

namespace curtail::fences {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(20);
constexpr Nanos kDrain = std::chrono::seconds(1);

int Refuse(const absl::Status& status) {
  std::cerr << "fences: " << Message(status) << "\n";
  return 1;
}

int ServeAll(ServerOptions options, std::vector<std::unique_ptr<Service>> services) {
  const auto server = Server::Start(std::move(options), std::move(services));
  return server.ok() ? ServeUntilSignal(**server, kDrain) : Refuse(server.status());
}

int ServeLeaf(const Role& role, ServerOptions options) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakeLeaf(role.part == kLeafB, std::chrono::milliseconds(role.service_time_ms)));
  return ServeAll(std::move(options), std::move(services));
}

int ServeFront(const Role& role, ServerOptions options) {
  if (role.addresses.size() != kApplications.size()) {
    return Refuse(absl::InvalidArgumentError("the front has four applications"));
  }
  Client client;
  std::vector<std::unique_ptr<Channel>> channels;
  ApplicationChannels all{};
  for (size_t i = 0; i < all.size(); ++i) {
    channels.push_back(std::make_unique<Channel>(&client, role.addresses[i]));
    all[i] = channels.back().get();
  }
  return ServeAll(std::move(options), MakeFront(all));
}

int ServeShared(const Role& role, ServerOptions options) {
  const bool upper = role.part == kUpper;
  if (role.addresses.size() != (upper ? 1u : 2u)) {
    return Refuse(absl::InvalidArgumentError("a shared service has two leaves, or one service below it"));
  }
  Client client;
  Channel a(&client, role.addresses.front()), b(&client, role.addresses.back());
  return ServeAll(std::move(options), MakeShared({.a = &a, .b = &b, .upper = upper}));
}

}  // namespace

int Serve(const Role& role) {
  BlockStopSignals();
  const absl::StatusOr<Variant> variant = Variant::Parse(role.variant);
  if (!variant.ok()) return Refuse(variant.status());
  if (role.part == kLeafA || role.part == kLeafB) return ServeLeaf(role, variant->Options());
  if (role.part == kShared || role.part == kUpper) return ServeShared(role, variant->Options());
  if (role.part == kFront) return ServeFront(role, variant->Options());
  return Refuse(absl::InvalidArgumentError(absl::StrCat("there is no role ", role.part)));
}

absl::StatusOr<std::unique_ptr<Tier>> Tier::Start(const Role& role, const std::string& log_folder,
                                                  const std::atomic<bool>& stop) {
  deploy::ProcessOptions options;
  options.name = absl::StrCat(role.part, " ", role.variant);
  options.log_path = absl::StrCat(log_folder, "/", role.part, "-", role.variant, ".log");
  options.argv = {"/proc/self/exe",
                  kRoleFlag,
                  role.part,
                  kVariantFlag,
                  role.variant,
                  kServiceTimeFlag,
                  absl::StrCat(role.service_time_ms)};
  options.cpus = role.cpus;
  for (const std::string& address : role.addresses) {
    options.argv.insert(options.argv.end(), {kPeerFlag, address});
  }
  auto process = deploy::Process::Spawn(std::move(options));
  if (!process.ok()) return process.status();
  auto address = (*process)->AwaitLine("listening on ", Deadline::In(kStartTimeout), &stop);
  if (!address.ok()) return address.status();
  return std::unique_ptr<Tier>(new Tier(*std::move(process), *std::move(address)));
}

}  // namespace curtail::fences
