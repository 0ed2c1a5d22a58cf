// SPDX-License-Identifier: Apache-2.0
//
// stacks.h - services of an application with other ways to be called than curtail's.
//
// The handlers are those of the application. A process calls within itself, and what stands there for a service of
// another process passes the call on.
#pragma once

#include <string>
#include <vector>

#include "curtail/rpc/host.h"

namespace curtail::bench {

// grpc++, by its callback API, with its health checks and reflection. Handlers suspend where they wait. What a process has
// from the library besides is no part of a call: flags, the admin address, the thread of a queue.

// A service of other processes, with the addresses of its instances. `proto` is its full name.
HostedService CalledByGrpc(std::string name, std::string proto, std::vector<std::string> addresses);
// The same service, which a grpc++ server at `listen` answers. It prints "ready ADDRESS" before the host does.
HostedService ServedByGrpc(HostedService service, std::string listen);

// curtail's server and client, with a new thread for each call of a fan-out but the last, which the handler's thread
// makes. For synchronous models.

HostedService CalledByThreads(std::string name, std::string proto, std::vector<std::string> addresses);
HostedService ServedByThreads(HostedService service);

}  // namespace curtail::bench
