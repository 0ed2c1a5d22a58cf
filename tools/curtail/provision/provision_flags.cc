// SPDX-License-Identifier: Apache-2.0
//
// The flags of curtail provision.
#include "tools/curtail/provision/provision_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/shipped/application.h"
#include "tools/curtail/deploy/topology_flags.h"
#include "tools/curtail/load/request_flags.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

constexpr char kProvisionExamples[] =
    R"(Starts the application with equal shares, raises the load until the QoS fails, gives the service that saturates first a step more,
and so on. A step is kept if turns with and without it can be told apart; else it says "cannot tell". It ends when no step helps,
when all services that work saturate at about the same load, or when the CPUs or the time are spent; then it compares the same CPUs in equal
shares.

Levers: cpu, the time that each process may use, by a cgroup, which takes root or a delegated one; threads, the sizes of the
services' pools, FIB1 to FIB2 or SDB1-4 to SDB1-8. Replicas are not a lever: callers take the first instance, or shards.

The overlay is written after every step that is kept, so Ctrl-C leaves what was found until then.

Examples:
  curtail provision social                                   # writes social-provisioned.yaml
  curtail up social --overlay social-provisioned.yaml
  curtail provision social --time 3m --json social.json --html social.html
  curtail provision hdsearch --levers threads --config SDB1-1 --qos 'p99<20ms'
  curtail provision ./shop.yaml --method shop.Front/Read --data '{"user": "ann"}'

Exit codes: 0 ok, 1 a process failed, 98 the load generator was the limit, 99 no load was within the QoS, 104 bad flags or
topology, or a lever that this machine lacks, 105 interrupted.)";

}  // namespace

Command AddProvision(CLI::App& app) {
  const auto f = std::make_shared<ProvisionFlags>();
  CLI::App* command = app.add_subcommand(
      "provision", "Find how services should share this machine: more for the one that saturates first");
  command->add_option("APP", f->application, apps::ApplicationNames() + ", or a topology file")->required();
  command->add_option("--qos", f->qos, "What must hold, with a bound of a percentile: 'p99<50ms,errors<1%'")
      ->capture_default_str();
  command->add_option("--rps", f->load.rps, "Requests a second at which it begins")
      ->transform(Number())
      ->check(Positive())
      ->capture_default_str();
  command->add_option("--levers", f->levers, "cpu, threads or cpu,threads [what this machine has of them]");
  command->add_option("--cpus", f->cpus, "CPUs that all processes may have together [this machine's]")
      ->check(Between(0.01, 1024));
  command
      ->add_option("--cpu", f->cpu, "CPUs of each process at the start [a quarter of --cpus, in equal parts]")
      ->check(Between(0.01, 1024));
  command->add_option("--config", f->config, "Of every curtail service at the start [as in the topology]");
  command->add_option("--threads", f->threads, "That a pool may have")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--step", f->step, "The factor by which a step multiplies a share")
      ->check(Between(1.1, 16))
      ->capture_default_str();
  command->add_option("--bound", f->bound_percent, "How far apart two loads must be, in percent")
      ->check(Between(1, 100))
      ->capture_default_str();
  command->add_option("--seconds", f->seconds, "Length of a turn; up to 5 times that at low loads")
      ->check(Between(0.1, 3600))
      ->capture_default_str();
  command->add_option("--time", f->time, "No round begins later; the last searches come after it")
      ->capture_default_str();
  command->add_option("--seed", f->load.seed, "Of the arrivals")->check(NotNegative())->capture_default_str();
  command->add_option("-o,--out", f->out, "The overlay [APP-provisioned.yaml]");
  command->add_option("--json", f->json, "Write the result here as JSON; - is the standard output");
  command->add_option("--html", f->html, "Write a report with charts here");
  AddTopologyFlags(*command, &f->changes);
  command->add_option("--start-timeout", f->start_timeout, "For a service to be ready")
      ->capture_default_str();
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  AddMessageFlags(*command, &f->load);
  AddOwnOptions(*command, "Requests",
                [f](const std::string& name, const std::string& value) { f->load.own[name] = value; });
  command->add_option("--timeout", f->load.timeout, "A call that takes longer has failed")
      ->capture_default_str();
  command->footer(kProvisionExamples);
  return {command, [f](const Invocation& given) {
            f->command = given.command;
            return RunProvision(*f, given.console, given.stop);
          }};
}

}  // namespace curtail::tool
