// SPDX-License-Identifier: Apache-2.0
//
// The flags of curtail up.
#include "tools/curtail/up/up_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/shipped/application.h"
#include "curtail/adapt/policy_kind.h"
#include "tools/curtail/deploy/topology_flags.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

constexpr char kUpExamples[] =
    R"(Starts every process of an application in the order in which they need each other, waits until each answers its health
check, and starts again what ends by itself. Ctrl-C, closing the terminal or `curtail down` end all of them. Where this command
is killed, each process that it started is killed, too, but none that those started, as a shell does.

Applications: hdsearch (image search), router (key-value store over memcached), setalgebra (document search), recommend
(rating prediction), social (social network), bank (accounts and payments), media (movie reviews), shop
(orders, payments and shipments), fanout (a mid-tier over leaves that do nothing); or the path of a topology file of your own,
see docs/topology.md.

Examples:
  curtail up hdsearch                                            # in the foreground; Ctrl-C ends it
  curtail up router --detach --policy online                     # in the background, the mid-tier adapts
  curtail up hdsearch --set data=synthetic:N=200000,D=128 --set leaf.shards=2 --config SDB1-16
  curtail up router --use store=127.0.0.1:11211 --set store.shards=1 --set store.replicas=1 \
                    --set leaf.shards=1 --set leaf.replicas=1    # over a memcached that runs already
  curtail up social --scale 3 --stores postgresql                # three of each service that scales, and a server of SQL
  curtail up social --exec 'user=perf record -o /tmp/user.data'  # one service under a profiler
  curtail up social --group user,unique-id                       # two services in one process
  curtail up bank --tls                                          # TLS between its services
  curtail up ./shop.yaml --variant cart=java                     # another implementation of one service
  curtail up hdsearch --scale --dry-run                          # the paper's size: which commands?

Exit codes: 0 it went down as it was told to (or is up: --detach), 1 a process failed, 104 bad flags or topology, also in the
run line of a service, a missing program, or too little memory, 105 interrupted before it was up.)";

}  // namespace

Command AddUp(CLI::App& app) {
  const auto f = std::make_shared<UpFlags>();
  CLI::App* command = app.add_subcommand("up", "Start an application on this machine and look after it");
  command->add_option("APP", f->application, apps::ApplicationNames() + ", or a topology file")->required();
  command->add_flag("-d,--detach", f->detach, "Return once it is up; it goes on in the background");
  command->add_option("--config", f->config, "Threading model of the service that clients call");
  command->add_option("--policy", f->policy, "Changes it by the load: " + PolicyNames());
  command->add_option("--profile", f->profile, "What the policy goes by; see curtail train");
  command->add_option("--fence", f->fence,
                      "Fences of every service whose run line has no --fence: off, on, dry-run or strict");
  command->add_option(
      "--trace-to", f->trace_to,
      "Where spans of every service go: zipkin=http://HOST:PORT, otlp=http://HOST:PORT or memory");
  command
      ->add_option("--trace-sample", f->trace_sample,
                   "The share of requests that become spans, 0 to 1 [0.001]")
      ->check(Between(0, 1))
      ->needs("--trace-to");
  AddTopologyFlags(*command, &f->changes);
  command
      ->add_option(
          "--link", f->changes.links,
          "'CALLER>SERVICE=delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit': a slower network between them")
      ->allow_extra_args(false);
  command
      ->add_option("--exec", f->changes.exec,
                   "'SERVICE=PROGRAM FLAGS...': run its instances under a program, such as perf or valgrind")
      ->allow_extra_args(false);
  command
      ->add_option("--group", f->changes.groups,
                   "SERVICE,SERVICE: be these services in one process, in which they call each other; none: "
                   "each alone, whatever groups the topology has")
      ->allow_extra_args(false);
  command
      ->add_option("--variant", f->changes.variants,
                   "SERVICE=VARIANT: run another implementation of a service, which its topology names")
      ->allow_extra_args(false);
  command->add_flag(
      "--polyglot", f->changes.polyglot,
      "Run each service as its first variant whose tools are there, and name those that lack one");
  command
      ->add_option(
          "--dashboard", f->dashboard,
          "Show the whole application to a browser, at a PORT of this machine or HOST:PORT [a free port]")
      ->expected(0, 1)
      ->default_str("0");
  command->add_flag("--tls", f->tls,
                    "Have curtail services speak TLS with each other, each side by a certificate of its own; "
                    "what clients call stays plain text");
  command->add_flag("--force", f->force,
                    "Even if the memory will not do, or a first request of a kind fails");
  command
      ->add_option("--start-timeout", f->start_timeout,
                   "For a service to be ready [2m, with --scale alone 15m]")
      ->capture_default_str();
  command->add_flag("--dry-run", f->dry_run, "Print the commands and stop");
  command->footer(kUpExamples);
  return {command, [f](const Invocation& given) { return RunUp(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
