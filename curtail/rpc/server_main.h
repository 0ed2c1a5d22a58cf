// SPDX-License-Identifier: Apache-2.0
//
// server_main.h - the main() of a service: flags, signals, graceful drain.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"

namespace curtail {

// Parses --listen ADDR (repeatable), --config CONFIG, --policy POLICY, --profile FILE, --admin ADDR,
// --drain SECONDS, --tls-cert FILE, --tls-key FILE and what else --help names; serves until SIGTERM or SIGINT;
// drains; returns the process's exit code (0, or 104 for a bad flag, a file that cannot be used or an address that
// cannot be bound).
int ServerMain(int argc, char** argv, std::unique_ptr<Service> service);

// What a command line says to the service itself, beside the flags above. Not thread-safe.
struct ServiceArgs {
  // One for each --leaf ADDR, in their order: the servers that this one calls. They outlive the service.
  std::vector<Channel*> leaves;
  // What is neither a flag nor the value of one, in order.
  std::vector<std::string> words;
};

// A service, or why there is none.
using MadeService = absl::StatusOr<std::unique_ptr<Service>>;

// The same for a service that calls others or that the command line has more to say to: --leaf ADDR (repeatable) and
// words that are not flags are taken, too, and `make` is called once with them. If it fails, its message is printed
// and the exit code is 104; it never returns null. An address of a leaf that cannot be understood is a bad flag; one where
// nobody listens is not: calls to it fail with UNAVAILABLE until somebody does.
//
//   return curtail::ServerMain(argc, argv, [](const curtail::ServiceArgs& args) {
//     return std::make_unique<MyService>(args.leaves);
//   });
int ServerMain(int argc, char** argv, const std::function<MadeService(const ServiceArgs&)>& make);

// Blocks SIGTERM and SIGINT for this thread and those it starts from now on: call first in main(), so that
// the two arrive only in ServeUntilSignal().
void BlockStopSignals();

// The part of ServerMain for programs with flags of their own: prints "listening on ADDR" lines, waits for
// SIGTERM or SIGINT, drains (`drain` bounds it; a second signal ends the wait). Returns the exit code.
int ServeUntilSignal(Server& server, Nanos drain);

}  // namespace curtail
