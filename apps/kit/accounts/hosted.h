// SPDX-License-Identifier: Apache-2.0
//
// hosted.h - services that any application may have. In its folder of services user.cc is
//
//   HostedService HostedUser() { return apps::HostedUser("shop"); }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "accounts.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

// Makes a service of the application's own, which the same process serves beside `service` (Env::AlsoServe()), and which may
// call the handlers of `service`. Both end together.
template <class Rpc>
using Beside = std::function<std::unique_ptr<Service>(Env& env, typename Rpc::CoroutineService& service)>;

// Names, passwords and sessions (User of accounts.proto), as the service `name`, which calls the service `ids`. They are kept
// in the store `user-postgresql`, if there is one.
HostedService HostedUser(const std::string& application, Beside<User> beside = nullptr,
                         const std::string& name = "user", const std::string& ids = "unique-id");

// `unique-id`: ids in the form of id_source.h (UniqueId). They ascend at one instance, and across instances as far as the
// clocks agree.
HostedService HostedUniqueId(const std::string& application, Beside<UniqueId> beside = nullptr);
// The same for a service that serves them beside its own. `db` has kIdSchema, and outlives it.
std::unique_ptr<UniqueId::CoroutineService> MakeUniqueId(SqlDatabase* db, uint64_t machine);

}  // namespace curtail::apps
