// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/registry/registry.h"
#include "apps/media/data.h"

namespace curtail::media {

HostedService HostedServiceDiscovery() { return apps::HostedRegistry(kApplication); }

}  // namespace curtail::media
