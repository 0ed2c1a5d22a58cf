// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/resolver/target.h"

#include <algorithm>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

struct Scheme {
  std::string_view name;
  absl::StatusOr<Target> (*parse)(std::string_view rest);
};

constexpr Scheme kSchemes[] = {
    {"dns", ParseDns},   {"file", ParseFile}, {"ipv4", ParseIpv4},
    {"ipv6", ParseIpv6}, {"unix", ParseUnix}, {"unix-abstract", ParseUnixAbstract},
};

class FixedResolver final : public Resolver {
 public:
  explicit FixedResolver(std::vector<Address> addresses) : addresses_(std::move(addresses)) {}
  absl::StatusOr<std::vector<Address>> Resolve() override { return addresses_; }
  bool Changes() const override { return false; }

 private:
  const std::vector<Address> addresses_;
};

// "dns:80" is a host with a name like that.
bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::unique_ptr<Resolver> FixedAddresses(std::vector<Address> addresses) {
  return std::make_unique<FixedResolver>(std::move(addresses));
}

std::string HostOfAuthority(std::string_view authority) {
  std::string_view host = authority.substr(0, authority.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.remove_suffix(1);
  return std::string(host);
}

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  if (text.size() > kMaxTargetBytes) {
    return absl::InvalidArgumentError(
        Join("a target has ", text.size(), " bytes; at most ", kMaxTargetBytes));
  }
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view rest = colon == text.npos ? "" : text.substr(colon + 1);
  for (const Scheme& scheme : kSchemes) {
    if (colon != text.npos && scheme.name == name && !IsPort(rest)) return scheme.parse(rest);
  }
  if (rest.starts_with("//")) {
    std::string known;
    for (const Scheme& scheme : kSchemes) known += Join(known.empty() ? "" : ", ", scheme.name);
    return absl::InvalidArgumentError(Join("target \"", text, "\" has the unknown scheme \"", name,
                                           "\"; there are ", known,
                                           ": write dns:///NAME:PORT, for example, or NAME:PORT"));
  }
  return ParseShort(text);
}

absl::StatusOr<Target> ParseShort(std::string_view text) {
  if (text.find(',') != text.npos) return ParseShortList(text);
  if (Address::NeedsLookup(text)) return ParseDns(text);
  absl::StatusOr<std::vector<Address>> addresses = Address::ResolveAll(text);
  if (!addresses.ok()) return addresses.status();
  return Target{std::string(text), FixedAddresses(*std::move(addresses))};
}

}  // namespace curtail::internal
