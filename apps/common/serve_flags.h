// SPDX-License-Identifier: Apache-2.0
//
// serve_flags.h - the flags that every service of the applications takes. For the file with main(), which parses flags
// anyway: the parser is a heavy header.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/common/serve.h"
#include "curtail/adapt/policy_kind.h"

namespace curtail::apps {

// Adds --service, which takes one of `services`, and --memory, --listen, --config, --admin, --policy, --profile,
// --any-machine, --slo, --drain and --quiet: by these `curtail up` and the measuring commands start a service.
inline void AddServeFlags(CLI::App& app, ServeOptions* options,
                          const std::vector<std::string>& services = {"leaf", "mid-tier"}) {
  app.add_option("--service", options->service, "What to be")->check(CLI::IsMember(services));
  app.add_flag("--memory", options->memory, "Print how many bytes this service will hold, and exit");
  app.add_option("--listen", options->listen, "HOST:PORT or unix:PATH; port 0 takes a free one")
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--config", options->config, "Threading model and pool sizes")->capture_default_str();
  app.add_option("--admin", options->admin,
                 "Where `curtail switch` may change the config (default: nowhere)");
  app.add_option("--policy", options->policy,
                 "Changes the config by the load: " + PolicyNames() + " (default: nothing does)");
  app.add_option("--profile", options->profile,
                 "What the policy goes by: a profile of this service and machine");
  app.add_flag("--any-machine", options->any_machine, "Take a profile of another machine, too");
  app.add_option("--slo", options->slo_ms,
                 "The p99 in ms that a policy must not endanger by trying other configs")
      ->check(CLI::Range(0.001, 3.6e6))
      ->capture_default_str();
  app.add_option("--drain", options->drain_s, "Seconds for requests in flight after SIGTERM")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_flag("--quiet", options->quiet, "No progress on stderr");
}

}  // namespace curtail::apps
