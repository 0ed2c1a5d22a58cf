// SPDX-License-Identifier: Apache-2.0
//
// unix:PATH, unix:///PATH and unix-abstract:NAME: a socket of this machine.
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

absl::StatusOr<Target> ParseSocket(std::string_view scheme, std::string_view rest) {
  absl::StatusOr<std::vector<Address>> addresses = Address::ResolveAll(Join(scheme, rest));
  if (!addresses.ok()) return addresses.status();
  return Target{"localhost", FixedAddresses(*std::move(addresses))};
}

}  // namespace

absl::StatusOr<Target> ParseUnix(std::string_view rest) {
  if (rest.starts_with("///")) rest.remove_prefix(2);
  return ParseSocket("unix:", rest);
}

absl::StatusOr<Target> ParseUnixAbstract(std::string_view rest) {
  return ParseSocket("unix-abstract:", rest);
}

}  // namespace curtail::internal
