// SPDX-License-Identifier: Apache-2.0
#include "apps/media/commands/instances.h"

#include <chrono>
#include <cstdio>

#include "curtail/base/strings.h"
#include "curtail/rpc/context.h"
#include "registry.curtail.h"

namespace curtail::media {

absl::Status PrintInstances(const InstancesOptions& options) {
  const absl::StatusOr<ChannelOptions> channel_options = apps::ChannelOptionsOf(options.target);
  if (!channel_options.ok()) return channel_options.status();
  Client client;
  Channel channel(&client, options.target.address, *channel_options);
  apps::RegistryQuery query;
  query.set_service(options.service);
  apps::RegisteredServices found;
  Context ctx(std::chrono::seconds(5));
  absl::Status listed = apps::WithAddressHint(apps::Registry::Stub(&channel).List(ctx, query, &found),
                                              options.target, "service-discovery");
  if (!listed.ok()) return listed;
  if (found.services().empty())
    return absl::NotFoundError(
        Join("no instance is registered", options.service.empty() ? "" : " of ", options.service));
  for (const apps::RegisteredService& one : found.services())
    for (const std::string& address : one.addresses())
      std::printf("%s %s\n", one.service().c_str(), address.c_str());
  return absl::OkStatus();
}

}  // namespace curtail::media
