// SPDX-License-Identifier: Apache-2.0
//
// target.h - the server that a command of an application calls, as its flags say.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/flags.h"

namespace curtail::apps {

struct Target {
  std::string address;
  bool tls = false;
  std::string ca_file;  // with `tls`: the authorities to trust; empty: the system's
};

// Adds --target, which `help` explains, and --tls and --ca-file, as curtail-gateway has them. A rendered chart gives these
// to what calls the entry.
void AddTargetFlags(Flags& flags, Target* target, const std::string& help);

// The options of channels to it. Errors: INVALID_ARGUMENT naming --tls, or the file that cannot be used.
[[nodiscard]] absl::StatusOr<ChannelOptions> ChannelOptionsOf(const Target& target);

// Of a call to a service that is not the entry: UNIMPLEMENTED says which address to give, and that a monolith serves `service` to
// nobody else. Other statuses stay as they are.
[[nodiscard]] absl::Status WithAddressHint(absl::Status status, const Target& target,
                                           std::string_view service);

}  // namespace curtail::apps
