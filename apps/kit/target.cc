// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/target.h"

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

}  // namespace curtail::apps
