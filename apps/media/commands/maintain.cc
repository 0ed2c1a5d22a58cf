// SPDX-License-Identifier: Apache-2.0
#include "apps/media/commands/maintain.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "apps/kit/load/requests.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"
#include "maintenance.curtail.h"

namespace curtail::media {

absl::Status Maintain(const MaintainOptions& options) {
  std::string name = options.job;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  MaintenanceJob job;
  MaintenanceJob::Kind kind = MaintenanceJob::UNSAID;
  if (!MaintenanceJob::Kind_Parse(name, &kind) || kind == MaintenanceJob::UNSAID)
    return apps::NoSuchValue("job", options.job, {"sums", "index", "books"});
  job.set_kind(kind);
  const absl::StatusOr<ChannelOptions> channel_options = apps::ChannelOptionsOf(options.target);
  if (!channel_options.ok()) return channel_options.status();
  Client client;
  Channel channel(&client, options.target.address, *channel_options);
  Context ctx(FromSeconds(options.timeout_s));
  MaintenanceReport report;
  absl::Status status = apps::WithAddressHint(Maintenance::Stub(&channel).Run(ctx, job, &report),
                                              options.target, "maintenance");
  if (status.ok())
    std::printf("%s: %llu changed\n", options.job.c_str(), static_cast<unsigned long long>(report.changed()));
  return status;
}

}  // namespace curtail::media
