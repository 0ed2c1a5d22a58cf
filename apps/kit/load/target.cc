// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/load/target.h"

#include "curtail/base/strings.h"

namespace curtail::apps {

void AddTargetFlags(Flags& flags, Target* target, const std::string& help) {
  flags.Add("--target", &target->address, help).Required();
  flags.Add("--tls", &target->tls, "Speak TLS to the target");
  flags.Add("--ca-file", &target->ca_file, "With --tls: the authorities to trust [the system's]");
}

absl::StatusOr<ChannelOptions> ChannelOptionsOf(const Target& target) {
  ChannelOptions options;
  if (!target.tls) {
    if (!target.ca_file.empty()) return absl::InvalidArgumentError("--ca-file needs --tls");
    return options;
  }
  absl::StatusOr<std::shared_ptr<const ClientTls>> tls = ClientTls::Load({.ca_file = target.ca_file});
  if (!tls.ok()) return tls.status();
  options.tls = *std::move(tls);
  return options;
}

absl::Status WithAddressHint(absl::Status status, const Target& target, std::string_view service) {
  if (!absl::IsUnimplemented(status)) return status;
  return absl::UnimplementedError(Join(
      "--target ", target.address, " does not serve ", service,
      ": give the address that `curtail ps` shows for that service; an application that was started with "
      "--monolith or --group serves it to nobody else, so start it without"));
}

}  // namespace curtail::apps
