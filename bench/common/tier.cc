// SPDX-License-Identifier: Apache-2.0
#include "bench/common/tier.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/server_main.h"

namespace curtail::bench {
namespace {

constexpr Nanos kStartTimeout = std::chrono::seconds(20);
constexpr Nanos kDrain = std::chrono::seconds(1);

constexpr char kPartFlag[] = "--role";
constexpr char kVariantFlag[] = "--variant";
constexpr char kAddressFlag[] = "--peer";
constexpr char kServiceTimeFlag[] = "--service-time-ms";

}  // namespace

void AddRoleFlags(CLI::App& app, Role* role) {
  app.add_option(kPartFlag, role->part)->group("");
  app.add_option(kVariantFlag, role->variant)->group("");
  app.add_option(kAddressFlag, role->addresses)->group("");
  app.add_option(kServiceTimeFlag, role->service_time_ms)->group("");
}

int ServeRole(ServerOptions options, std::vector<std::unique_ptr<Service>> services) {
  const auto server = Server::Start(std::move(options), std::move(services));
  return server.ok() ? ServeUntilSignal(**server, kDrain) : RefuseRole(server.status());
}

int RefuseRole(const absl::Status& status) {
  std::cerr << Message(status) << "\n";
  return 1;
}

absl::StatusOr<std::unique_ptr<Tier>> Tier::Start(const Role& role, const std::string& log_folder,
                                                  const std::atomic<bool>& stop) {
  deploy::ProcessOptions options;
  options.name = absl::StrCat(role.part, " ", role.variant);
  options.log_path = absl::StrCat(log_folder, "/", role.part, "-", role.variant, ".log");
  options.argv = {"/proc/self/exe",
                  kPartFlag,
                  role.part,
                  kVariantFlag,
                  role.variant,
                  kServiceTimeFlag,
                  absl::StrCat(role.service_time_ms)};
  options.cpus = role.cpus;
  for (const std::string& address : role.addresses) {
    options.argv.insert(options.argv.end(), {kAddressFlag, address});
  }
  auto process = deploy::Process::Spawn(std::move(options));
  if (!process.ok()) return process.status();
  auto address = (*process)->AwaitLine("listening on ", Deadline::In(kStartTimeout), &stop);
  if (!address.ok()) return address.status();
  return std::unique_ptr<Tier>(new Tier(*std::move(process), *std::move(address)));
}

}  // namespace curtail::bench
