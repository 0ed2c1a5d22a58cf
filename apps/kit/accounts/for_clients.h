// SPDX-License-Identifier: Apache-2.0
//
// for_clients.h - checks the calls of clients, forwards some, and rewords errors, before a service handles the rest.
//
//   auto sessions = apps::Sessions::Load(data, env.Stub<User>("user"));  // HostedService::make
//   ...
//   return apps::ForClients(std::make_unique<FrontEndService>(...), sessions, PeersOf(env));
//
// The options of each method (access.proto) name the callers that it admits, and the service that answers it, if another one
// does.
//
// The words of an error that is not the client's name files, addresses and statements; they are for operators.
// UNKNOWN, INTERNAL, DATA_LOSS, UNAVAILABLE and DEADLINE_EXCEEDED keep their code and get general words. The process
// logs the original words with the method, one failure a second, and counts the failures that it leaves out.
// Errors with other codes are meant for clients and stay as they are. Errors that the service marks stay, too:
//
//   return apps::ForClients(absl::UnavailableError("the account is closed; call again to delete the rest"));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/kit/accounts/sessions.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/service.h"

namespace curtail::apps {

// Returns the channel to a service by its name; null if the command line has no address of it.
using Peers = std::function<Channel*(std::string_view service)>;
// `env` outlives it.
Peers PeersOf(Env& env);

// Returns `service` as the options of its methods describe it. service->Paths() may leave out `user`, and forwarded methods.
// `sessions` outlives the result.
// Errors: INVALID_ARGUMENT, which names the method: its option `access` is missing, its option `forward` is wrong, or its
// handler is not a coroutine.
MadeService ForClients(std::unique_ptr<Service> service, const Sessions& sessions, const Peers& peers);

// The metadata that says where a client is, for calls that check its password.
inline constexpr std::string_view kClientAddress = "x-forwarded-for";

// Lets the calls of a client's request say where the client is, by kClientAddress. Those of methods that are PUBLIC do.
void HandAddressOn(Context& ctx);

// Marks the error as one for clients. The other ForClients() removes the mark, and calls do not carry it.
absl::Status ForClients(absl::Status error);

}  // namespace curtail::apps
