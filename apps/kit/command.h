// SPDX-License-Identifier: Apache-2.0
//
// command.h - commands of an application's program that serve nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "curtail/rpc/flags.h"
#include "curtail/rpc/host.h"

namespace curtail::apps {

// `flags` adds what sets the options, and `run` gets them. `example` is a command line, or several, a line each.
template <class Options>
HostCommand CommandOf(std::string name, std::string help, const std::string& example,
                      void (*flags)(Flags& flags, Options& options), absl::Status (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {.name = std::move(name),
          .help = std::move(help),
          .examples = "Examples:\n  " + example,
          .flags = [=](Flags& to) { flags(to, *options); },
          .run = [=] { return run(*options); }};
}

}  // namespace curtail::apps
