// SPDX-License-Identifier: Apache-2.0
//
// server_main.h - the main() of a service: flags, signals, graceful drain.
#pragma once

#include <memory>
#include <vector>

#include "curtail/rpc/server.h"

namespace curtail {

// Parses --listen ADDR (repeatable), --config CONFIG, --policy POLICY, --profile FILE, --admin ADDR,
// --drain SECONDS, --tls-cert FILE, --tls-key FILE and what else --help names; serves until SIGTERM or SIGINT;
// drains; returns the process's exit code (0, or 104 for a bad flag, a file that cannot be used or an address that
// cannot be bound).
int ServerMain(int argc, char** argv, std::unique_ptr<Service> service);

// Blocks SIGTERM and SIGINT for this thread and those it starts from now on: call first in main(), so that
// the two arrive only in ServeUntilSignal().
void BlockStopSignals();

// The part of ServerMain for programs with flags of their own: prints "listening on ADDR" lines, waits for
// SIGTERM or SIGINT, drains (`drain` bounds it; a second signal ends the wait). Returns the exit code.
int ServeUntilSignal(Server& server, Nanos drain);

}  // namespace curtail
