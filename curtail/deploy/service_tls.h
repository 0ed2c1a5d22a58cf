// SPDX-License-Identifier: Apache-2.0
//
// service_tls.h - TLS among the services of an application on this machine, by an authority that
// each start makes.
//
// A curtail service speaks TLS if curtail services alone call it, and takes calls only from holders
// of a certificate. Its certificate is for the name by which they call it. What clients and other
// programs call speaks plain text: the entry, and what a gateway or a tool calls.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/deploy/topology.h"
#include "curtail/rpc/tls.h"

namespace curtail::deploy {

// Thread-compatible.
class ServiceTls {
 public:
  // Writes the certificates of the topology's services, and their keys, into `folder`/tls, which
  // the user alone may read. The authority's own key is kept nowhere. `topology` outlives the
  // object. Errors: INTERNAL.
  static absl::StatusOr<std::unique_ptr<ServiceTls>> Make(const Topology& topology,
                                                          const std::string& folder);
  // Removes the files.
  ~ServiceTls();
  ServiceTls(const ServiceTls&) = delete;
  ServiceTls& operator=(const ServiceTls&) = delete;

  // The flags with which the service's processes speak TLS.
  std::vector<std::string> FlagsOf(const ServiceSpec& service) const;

 private:
  ServiceTls(const Topology& topology, std::string folder)
      : topology_(topology), folder_(std::move(folder)) {}

  const Topology& topology_;
  const std::string folder_;
  std::set<std::string> secure_;  // the services that speak TLS
};

// The services of the topology that speak TLS: the names by which they are called.
std::map<std::string, std::set<std::string>> SecureServices(const Topology& topology);

// How this user's tools call a service of an application that is up in `folder`; null: by plain
// text. Errors: as ClientTls::Load().
absl::StatusOr<std::shared_ptr<const ClientTls>> TlsToCall(const std::string& folder,
                                                           const std::string& service);

}  // namespace curtail::deploy
