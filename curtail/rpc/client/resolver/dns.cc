// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. dns:///NAME:PORT, by the system's own resolver (getaddrinfo), which knows /etc/hosts and search lists and
// asks the name servers of this machine. Another name server cannot be named: dns://SERVER/NAME is refused.
#include <string>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

class DnsResolver final : public Resolver {
 public:
  explicit DnsResolver(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<std::vector<Address>> Resolve() override { return Address::ResolveAll(name_); }
  bool Changes() const override { return Address::NeedsLookup(name_); }

 private:
  const std::string name_;
};

// That `text` reads HOST:PORT, without looking it up.
absl::Status CheckHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool name = !host.empty() && host.find_first_of(" /[]") == host.npos && host.find('\0') == host.npos;
  if (name && colon != text.npos) {
    // With a host that needs no lookup, the rest is checked as for any address.
    absl::StatusOr<std::vector<Address>> numeric = Address::ResolveAll(Join("0.0.0.0", text.substr(colon)));
    const bool bare = host.size() == colon && host.find(':') != host.npos;
    if (numeric.ok() && !bare) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      Join("target \"", text,
           "\" is not NAME:PORT; write dns:///NAME:PORT, HOST:PORT, [IPV6]:PORT or unix:PATH, "
           "for example 127.0.0.1:8080"));
}

}  // namespace

absl::StatusOr<Target> ParseDns(std::string_view rest) {
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    if (!rest.starts_with('/')) {
      return absl::InvalidArgumentError(Join(
          "target \"dns://", rest, "\" names a name server; write dns:///NAME:PORT, with three slashes"));
    }
    rest.remove_prefix(1);
  }
  if (absl::Status status = CheckHostAndPort(rest); !status.ok()) return status;
  return Target{std::string(rest), std::make_unique<DnsResolver>(std::string(rest))};
}

}  // namespace curtail::internal
