// SPDX-License-Identifier: Apache-2.0
//
// server_main.h - the main() of a program with one service. host.h is for programs with more.
//
// Code: host/server_main.cc.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "curtail/rpc/host.h"
#include "curtail/rpc/server.h"

namespace curtail {

// Serves until SIGTERM or SIGINT and drains, by the flags that --help lists: --listen, --config,
// --policy, --profile, --admin, --drain, TLS and more. --policy takes `policies`, the program's
// own, beside the library's (policy_kind.h). Each call passes `interceptors`. Returns the process's
// exit code: 0, or 104 for a bad flag, a file that cannot be used or an address that cannot be
// bound.
int ServerMain(int argc, char** argv, std::unique_ptr<Service> service,
               std::vector<const PolicyKind*> policies = {},
               std::vector<ServerInterceptor*> interceptors = {});

// The same for a service that calls others, or to which the command line says more: --peer
// NAME=ADDR,ADDR (--leaf ADDR stands for --peer leaf=ADDR), --store NAME=ADDR and words that are
// not flags reach `make` in its Env. It is called once. If it fails, its message is printed and the
// exit code is 104; it never returns null. An address of a peer that cannot be understood is a bad
// flag. One where no server listens is not: calls to it fail with UNAVAILABLE until one does.
//
//   return curtail::ServerMain(argc, argv, [](curtail::Env& env) {
//     return std::make_unique<MyService>(env.Channels("leaf"));
//   });
int ServerMain(int argc, char** argv, const std::function<MadeService(Env&)>& make,
               std::vector<const PolicyKind*> policies = {},
               std::vector<ServerInterceptor*> interceptors = {});

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and those it starts from now on. Call first in
// main(), so that they arrive only in ServeUntilSignal().
void BlockStopSignals();
// Undoes that for this thread: for programs that do not serve after all.
void UnblockStopSignals();

// The part of ServerMain for programs with flags of their own. Prints "listening on ADDR" lines,
// waits for SIGTERM or SIGINT, drains (`drain` bounds it; a second signal ends the wait). SIGHUP
// reads TLS keys again (Server::ReloadTls()); without TLS it drains, too. Returns the exit code.
int ServeUntilSignal(Server& server, Nanos drain);

namespace internal {
// ServeUntilSignal() for a program that has said where it listens. `program` begins its log lines.
int ServeAs(std::string_view program, Server& server, Nanos drain);
}  // namespace internal

}  // namespace curtail
