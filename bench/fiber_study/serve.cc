// SPDX-License-Identifier: Apache-2.0
#include "serve.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compose_service.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server_main.h"
#include "parts.h"

namespace curtail::study {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(20);
constexpr Nanos kDrain = std::chrono::seconds(1);

int Refuse(const absl::Status& status) {
  std::cerr << "fiber_study: " << Message(status) << "\n";
  return 1;
}

int ServeOne(ServerOptions options, std::unique_ptr<Service> service) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  const auto server = Server::Start(std::move(options), std::move(services));
  return server.ok() ? ServeUntilSignal(**server, kDrain) : Refuse(server.status());
}

int ServePart(const Role& role) {
  const absl::StatusOr<Config> config = Config::Parse(role.variant);
  if (!config.ok()) return Refuse(config.status());
  ServerOptions options;
  options.config = *config;
  options.max_threads = 1;
  return ServeOne(std::move(options), MakePart(role.part));
}

int ServeComposer(const Role& role) {
  const absl::StatusOr<Variant> variant = Variant::Parse(role.variant);
  if (!variant.ok()) return Refuse(variant.status());
  if (role.addresses.size() != kParts.size()) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat("compose needs ", kParts.size(), " parts")));
  }
  ServerOptions options;
  options.config = variant->config;
  options.max_threads = variant->MaxThreads();
  Client client;
  return ServeOne(std::move(options), MakeComposer(variant->async, &client, role.addresses));
}

}  // namespace

int Serve(const Role& role) {
  BlockStopSignals();
  return role.part == kComposer ? ServeComposer(role) : ServePart(role);
}

absl::StatusOr<std::unique_ptr<Tier>> Tier::Start(const Role& role, const std::string& log_folder,
                                                  const std::atomic<bool>& stop) {
  deploy::ProcessOptions options;
  options.name = absl::StrCat(role.part, " ", role.variant);
  options.log_path = absl::StrCat(log_folder, "/", role.part, "-", role.variant, ".log");
  options.argv = {"/proc/self/exe", kRoleFlag, role.part, kVariantFlag, role.variant};
  for (const std::string& address : role.addresses)
    options.argv.insert(options.argv.end(), {kPartFlag, address});
  auto process = deploy::Process::Spawn(std::move(options));
  if (!process.ok()) return process.status();
  auto address = (*process)->AwaitLine("listening on ", Deadline::In(kStartTimeout), &stop);
  if (!address.ok()) return address.status();
  return std::unique_ptr<Tier>(new Tier(*std::move(process), *std::move(address)));
}

}  // namespace curtail::study
