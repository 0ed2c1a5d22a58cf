// SPDX-License-Identifier: Apache-2.0
//
// registry.h - a registry of where services are: the service, the instances that register, and channels that follow it.
//
// Within a topology, callers know each other's addresses (--peer). A registry is for clients outside of it, which know one address.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/resolver.h"
#include "registry.curtail.h"

namespace curtail::apps {

// `service-discovery`: a Registry of instances that have the secret of the application (TokenSecret()). It keeps them in memory. After a
// restart it lists each again once that has renewed.
HostedService HostedRegistry(const std::string& application);

// Returns what an instance sends.
Registration RegistrationOf(std::string_view secret, const std::string& service, const std::string& address);

// Registers this process as an instance of `service` at the peer `service-discovery`, while it serves.
void RegisterWhileServing(Env& env, const std::string& service, std::string secret);

// For ChannelOptions::resolver: the instances of `service`, which it asks for again every 0.2 s. `registry` outlives it. Errors: those of
// the call; UNAVAILABLE while there are none.
std::shared_ptr<Resolver> FollowRegistry(Channel* registry, std::string service);

}  // namespace curtail::apps
