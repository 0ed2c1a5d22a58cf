// SPDX-License-Identifier: Apache-2.0
//
// hosted.h - services that any application may have. In its folder of services user.cc is
//
//   HostedService HostedUser() { return apps::HostedUser("shop"); }
#pragma once

#include <string>

#include "curtail/rpc/host.h"

namespace curtail::apps {

// `user`: names, passwords and sessions (User of accounts.proto). It calls `unique-id`.
HostedService HostedUser(const std::string& application);

// `unique-id`: ids in the form of id_source.h (UniqueId). They ascend at one instance, and across instances as far as the
// clocks agree.
HostedService HostedUniqueId(const std::string& application);

}  // namespace curtail::apps
