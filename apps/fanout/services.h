// SPDX-License-Identifier: Apache-2.0
//
// services.h - the null fan-out: what a runtime costs where the handlers do nothing.
#pragma once

#include <memory>
#include <vector>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::fanout {

// Answers what it is asked. Stateless: any number of requests at once.
[[nodiscard]] std::unique_ptr<Service> MakeLeaf();

// Fanout over these leaves, for any number of requests at once. The channels outlive it.
// Errors of Query: the first of its leaves'.
[[nodiscard]] std::unique_ptr<Service> MakeMidTier(std::vector<Channel*> leaves);

// Both as a program serves them; the mid-tier calls "leaf".
HostedService HostedLeaf();
HostedService HostedMidTier();

}  // namespace curtail::fanout
