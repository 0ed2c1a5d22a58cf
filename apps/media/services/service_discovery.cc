// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/registry/registry.h"

namespace curtail::media {

HostedService HostedServiceDiscovery() { return apps::HostedRegistry(); }

}  // namespace curtail::media
