// SPDX-License-Identifier: Apache-2.0
//
// servers.h - curtail servers for the interop tests: Echo, and Forward, which fans out to Echo.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/deploy/link/relay.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "echo.curtail.h"
#include "gate.h"

namespace curtail::interop {

// The threading models under test.
inline constexpr const char* kConfigs[] = {"SIB1", "SIP1", "SDB1-4", "SDP1-4"};

// A config of the same model in which one handler that does not return leaves a thread to serve others: the
// in-line models get a second one.
std::string WithSpareThread(std::string_view config);
// "SDB1-4" as a test's name.
std::string TestName(std::string_view config);

// Does what echo.proto says. `gate` outlives it.
std::unique_ptr<Service> MakeEchoService(Gate* gate);
// `leaves` outlive it.
std::unique_ptr<Service> MakeForwardService(std::vector<Channel*> leaves);

// Options with this config on a free port.
ServerOptions OptionsFor(std::string_view config);
// Starts a server of one service; ends the test program when that is not possible.
std::unique_ptr<Server> MustStart(ServerOptions options, std::unique_ptr<Service> service);

// A relay in front of a server, which the test can cut as if the server had died.
std::unique_ptr<deploy::Relay> RelayTo(const std::string& server);
// A blocking TCP connection to "127.0.0.1:port", or -1.
int ConnectTo(const std::string& address);

// A serialized google.rpc.Status whose one detail is a google.protobuf.BytesValue of `detail`.
std::string RpcStatus(int code, const std::string& message, const std::string& detail);

// A fresh path for a Unix socket, as "unix:/...".
std::string UnixAddress();

}  // namespace curtail::interop
