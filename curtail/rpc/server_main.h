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

// Parses --listen ADDR (repeatable), --config CONFIG, --policy POLICY, --profile FILE, --admin
// ADDR, --drain SECONDS, --tls-cert FILE, --tls-key FILE and the other flags of --help. Serves
// until SIGTERM or SIGINT, then drains. Returns the process's exit code: 0, or 104 for a bad flag,
// an unusable file or an address that cannot be bound.
int ServerMain(int argc, char** argv, std::unique_ptr<Service> service);

// The arguments of a command line for the service itself, beside the flags above. Not thread-safe.
struct ServiceArgs {
  // One channel for each --leaf ADDR, in their order: the servers that this one calls. They outlive
  // the service.
  std::vector<Channel*> leaves;
  // The words that are neither a flag nor the value of one, in order.
  std::vector<std::string> words;
};

// A service, or the reason why there is none.
using MadeService = absl::StatusOr<std::unique_ptr<Service>>;

// The same for a service that calls others or takes arguments of its own. It also takes --leaf ADDR
// (repeatable) and words that are not flags, and calls `make` once with them. If `make` fails, its
// message is printed and the exit code is 104; it never returns null. A malformed leaf address is a
// bad flag. A leaf that does not listen is none: calls to it fail with UNAVAILABLE until it does.
//
//   return curtail::ServerMain(argc, argv, [](const curtail::ServiceArgs& args) {
//     return std::make_unique<MyService>(args.leaves);
//   });
int ServerMain(int argc, char** argv, const std::function<MadeService(const ServiceArgs&)>& make);

// Blocks SIGTERM and SIGINT for this thread and those it starts from now on. Call first in main(),
// so that the two arrive only in ServeUntilSignal().
void BlockStopSignals();

// The part of ServerMain for programs with flags of their own. Prints "listening on ADDR" lines,
// waits for SIGTERM or SIGINT, drains (`drain` bounds it; a second signal ends the wait). Returns
// the exit code.
int ServeUntilSignal(Server& server, Nanos drain);

}  // namespace curtail
