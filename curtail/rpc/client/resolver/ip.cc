// SPDX-License-Identifier: Apache-2.0
//
// ipv4:A.B.C.D:PORT,... and ipv6:[A::B]:PORT,..., or both kinds without a scheme: a list of numeric addresses, which
// stays as it is.
#include <string>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

// `scheme` has its colon; `family` may be AF_UNSPEC.
absl::StatusOr<Target> ParseList(std::string_view scheme, std::string_view rest, int family,
                                 std::string_view example) {
  const auto wrong = [&](std::string_view part) {
    return absl::InvalidArgumentError(
        Join("target \"", scheme, rest, "\": \"", part, "\" is not a numeric address; write ", example));
  };
  Target target;
  std::vector<Address> addresses;
  std::string_view left = rest;
  if (left.starts_with("///")) left.remove_prefix(3);
  while (true) {
    const size_t comma = left.find(',');
    const std::string_view part = left.substr(0, comma);
    if (Address::NeedsLookup(part)) return wrong(part);
    const absl::StatusOr<Address> address = Address::Resolve(part);
    if (!address.ok() || (family != AF_UNSPEC && address->family() != family)) return wrong(part);
    if (addresses.size() == Resolver::kMaxAddresses) {
      return absl::InvalidArgumentError(Join("a target has more than ", addresses.size(), " addresses"));
    }
    if (addresses.empty()) target.authority = part;
    addresses.push_back(*address);
    if (comma == left.npos) break;
    left.remove_prefix(comma + 1);
  }
  target.resolver = FixedAddresses(std::move(addresses));
  return target;
}

}  // namespace

absl::StatusOr<Target> ParseIpv4(std::string_view rest) {
  return ParseList("ipv4:", rest, AF_INET, "ipv4:10.0.0.1:8080,10.0.0.2:8080");
}

absl::StatusOr<Target> ParseIpv6(std::string_view rest) {
  return ParseList("ipv6:", rest, AF_INET6, "ipv6:[fd00::1]:8080,[fd00::2]:8080");
}

absl::StatusOr<Target> ParseShortList(std::string_view text) {
  return ParseList("", text, AF_UNSPEC, "10.0.0.1:8080,10.0.0.2:8080");
}

}  // namespace curtail::internal
