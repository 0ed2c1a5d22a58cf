// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/main/deploy_commands.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/policy_kind.h"
#include "tools/curtail/create/new_command.h"
#include "tools/curtail/deploy/down_command.h"
#include "tools/curtail/deploy/failover_command.h"
#include "tools/curtail/deploy/logs_command.h"
#include "tools/curtail/deploy/ps_command.h"
#include "tools/curtail/deploy/relay_command.h"
#include "tools/curtail/deploy/scale_command.h"
#include "tools/curtail/deploy/status_command.h"
#include "tools/curtail/deploy/switch_command.h"
#include "tools/curtail/main/command_examples.h"
#include "tools/curtail/main/request_flags.h"
#include "tools/curtail/observe/dashboard_command.h"
#include "tools/curtail/observe/observe_command.h"
#include "tools/curtail/observe/top_command.h"
#include "tools/curtail/observe/top_table.h"
#include "tools/curtail/observe/traces_command.h"
#include "tools/curtail/provision/provision_command.h"
#include "tools/curtail/render/render_command.h"
#include "tools/curtail/up/up_command.h"

namespace curtail::tool {
namespace {

constexpr char kAdminTargetHelp[] =
    "APP, APP/SERVICE or APP/SERVICE.INSTANCE of what is up, or an admin address (the server's --admin)";

// How a topology is changed by a command line.
void AddTopologyFlags(CLI::App& command, deploy::TopologyChanges* changes) {
  command.add_option("--overlay", changes->overlay,
                     "A file with keys of its services, as curtail provision writes it");
  command.add_option("--set", changes->set, "NAME=VALUE: a variable of the topology, or SERVICE.KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--use", changes->use, "SERVICE=ADDRESS,...: instances that run already, not to be started")
      ->allow_extra_args(false);
  command
      .add_option(
          "--stores", changes->stores,
          "STORE,...: optional stores of the topology, such as postgresql, that services are to keep data in")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--scale", changes->scale,
                  "N: how many of each service that scales; without N as large as in the paper")
      ->expected(0, 1)
      ->default_str(deploy::kPaperScale);
  command.add_flag("--monolith", changes->monolith,
                   "All services in one process, which call each other there; stores stay processes");
}

}  // namespace

CLI::App* AddUp(CLI::App& app, UpFlags* f) {
  CLI::App* command = app.add_subcommand("up", "Start an application on this machine and look after it");
  command->add_option("APP", f->application, apps::ApplicationNames() + ", or a topology file")->required();
  command->add_flag("-d,--detach", f->detach, "Return once it is up; it goes on in the background");
  command->add_option("--config", f->config, "Threading model of the service that clients call");
  command->add_option("--policy", f->policy, "Changes it by the load: " + PolicyNames());
  command->add_option("--profile", f->profile, "What the policy goes by; see curtail train");
  command->add_option(
      "--fence", f->fence,
      "Fences of every service whose run line has no --fence: off, dry-run, strict or borrow");
  command->add_option(
      "--trace-to", f->trace_to,
      "Where spans of every service go: zipkin=http://HOST:PORT, otlp=http://HOST:PORT or memory");
  command
      ->add_option("--trace-sample", f->trace_sample,
                   "The share of requests that become spans, 0 to 1 [0.001]")
      ->check(CLI::Range(0.0, 1.0))
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
                   "SERVICE,SERVICE: be these services in one process, in which they call each other")
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
  command->add_flag("--force", f->force,
                    "Even if the memory will not do, or a first request of a kind fails");
  command
      ->add_option("--start-timeout", f->start_timeout,
                   "For a service to be ready [2m, with --scale alone 15m]")
      ->capture_default_str();
  command->add_flag("--dry-run", f->dry_run, "Print the commands and stop");
  command->footer(kUpExamples);
  return command;
}

CLI::App* AddRender(CLI::App& app, RenderFlags* f) {
  CLI::App* command =
      app.add_subcommand("render", "Write an application for Kubernetes, Helm or Docker Compose");
  command->add_option("APP", f->application, apps::ApplicationNames() + ", or a topology file")->required();
  command->add_option("--to", f->to, "kubernetes, helm or compose")
      ->required()
      ->check(CLI::IsMember({"kubernetes", "helm", "compose"}));
  command->add_option("-o,--output", f->output,
                      "A folder for the files [kubernetes, compose: the standard output]");
  command->add_option("--image", f->options.image, "The image of the application [APP:VERSION]");
  AddTopologyFlags(*command, &f->changes);
  command->footer(kRenderExamples);
  return command;
}

CLI::App* AddProvision(CLI::App& app, ProvisionFlags* f) {
  CLI::App* command = app.add_subcommand(
      "provision", "Find how services should share this machine: more for the one that saturates first");
  command->add_option("APP", f->application, apps::ApplicationNames() + ", or a topology file")->required();
  command->add_option("--qos", f->qos, "What must hold, with a bound of a percentile: 'p99<50ms,errors<1%'")
      ->capture_default_str();
  command->add_option("--rps", f->load.rps, "Requests a second at which it begins")
      ->transform(Number())
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
  command->add_option("--bound", f->bound_percent, "Loads are told apart by so many percent")
      ->check(Between(1, 100))
      ->capture_default_str();
  command->add_option("--seconds", f->seconds, "Length of a turn; up to 5 times that at low loads")
      ->check(Between(0.1, 3600))
      ->capture_default_str();
  command->add_option("--time", f->time, "No round begins later; the last searches come after it")
      ->capture_default_str();
  command->add_option("--seed", f->load.seed, "Of the arrivals")->capture_default_str();
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
  return command;
}

CLI::App* AddNew(CLI::App& app, NewFlags* f) {
  CLI::App* command = app.add_subcommand("new", "Write an application to begin your own with");
  command->add_option("NAME", f->application, "Its name, and the folder that is made")->required();
  command
      ->add_option("--services", f->services,
                   "Its services; the first is what clients call, and asks the others")
      ->capture_default_str();
  command->footer("Example: curtail new shop --services front,catalogue,stock");
  return command;
}

CLI::App* AddDown(CLI::App& app, DownFlags* f) {
  CLI::App* command = app.add_subcommand("down", "End an application that is up");
  command->add_option("APP", f->application, "Its name")->required();
  command->add_option("--timeout", f->timeout, "For requests in flight; what is left then is killed")
      ->capture_default_str();
  command->footer("Example: curtail down hdsearch");
  return command;
}

CLI::App* AddScale(CLI::App& app, ScaleFlags* f) {
  CLI::App* command = app.add_subcommand("scale", "More or fewer instances of a service while it serves");
  command->add_option("APP/SERVICE", f->target, "A service of an application that is up")->required();
  command->add_option("N", f->count, "How many of it there shall be")->required()->check(CLI::Range(1, 256));
  command->add_option("--timeout", f->timeout, "For new ones to serve, and old ones to end")
      ->capture_default_str();
  command->footer(
      "Services with scales: true in the topology scale. Callers learn of new instances within 0.2 s. One "
      "that\n"
      "leaves gets no new calls, and finishes those that it has.\n"
      "Examples:\n"
      "  curtail scale social/read-post 3\n"
      "  curtail scale social/read-post 1");
  return command;
}

CLI::App* AddFailover(CLI::App& app, FailoverFlags* f) {
  CLI::App* command =
      app.add_subcommand("failover", "Make the standby of a store its primary while the application serves");
  command->add_option("APP/STORE", f->target, "A store of two replicas, of an application that is up")
      ->required();
  command->footer(
      "The primary is ended, or killed if it does not answer. The standby becomes the primary, and the "
      "former\n"
      "primary its standby. Nothing that was acknowledged is lost. If the standby may lack some of it, "
      "nothing\n"
      "changes, and the command exits with 104.\n"
      "Examples:\n"
      "  curtail up bank --stores postgresql --set postgresql.replicas=2 --detach\n"
      "  curtail failover bank/postgresql");
  return command;
}

CLI::App* AddRelay(CLI::App& app, RelayFlags* f) {
  CLI::App* command = app.add_subcommand("relay", "Show a server through a slower network");
  command->add_option("--to", f->to, "The server: HOST:PORT or unix:PATH")->required();
  command->add_option("--listen", f->listen, "Where callers connect: HOST:PORT or unix:PATH")
      ->capture_default_str();
  command->add_option(
      "--link", f->link,
      "delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit, of each direction; parts may be left out");
  command->add_option("--seed", f->seed, "Of jitter and loss")->capture_default_str();
  command->footer(
      "It carries streams: a packet that is lost comes 200 ms later, and what is behind it too.\n"
      "Example:\n"
      "  curtail relay --listen 127.0.0.1:7001 --to 127.0.0.1:7000 --link delay=20ms,rate=10mbit");
  return command;
}

CLI::App* AddPs(CLI::App& app, PsFlags* f) {
  CLI::App* command = app.add_subcommand("ps", "The processes of the applications that are up");
  command->add_option("APP", f->application, "Of this one only");
  command->add_flag("--json", f->json, "As JSON");
  command->footer("Example: curtail ps --json");
  return command;
}

CLI::App* AddLogs(CLI::App& app, LogsFlags* f) {
  CLI::App* command = app.add_subcommand("logs", "What the processes of an application wrote");
  command->add_option("APP", f->application, "Its name, or APP/PROCESS")->required();
  command->add_option("PROCESS", f->process, "A process (leaf-0), or a service (leaf); all by default");
  command->add_flag("-f,--follow", f->follow, "Wait for more, until it is down or Ctrl-C");
  command->add_option("-n,--tail", f->tail, "Lines of each process at most")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->footer("Example: curtail logs router leaf -f");
  return command;
}

CLI::App* AddSwitch(CLI::App& app, SwitchFlags* f) {
  CLI::App* command = app.add_subcommand("switch", "Put another config in force on a running server");
  command->add_option("TARGET", f->target, kAdminTargetHelp)->required();
  command->add_option("CONFIG", f->config, "For example SIP1 or SDB1-16; left out: print the one in force");
  command->footer(
      "The server goes on serving: requests under way finish as they began.\n"
      "Examples:\n"
      "  curtail switch hdsearch SDB1-16            # the service that clients call\n"
      "  curtail switch hdsearch/leaf FIB1          # all leaves; hdsearch/leaf.0 is one\n"
      "  curtail switch 127.0.0.1:9090 SDB1-16");
  return command;
}

CLI::App* AddStatus(CLI::App& app, StatusFlags* f) {
  CLI::App* command = app.add_subcommand("status", "What a running server does: pools, queue, threads");
  command->add_option("TARGET", f->target, kAdminTargetHelp)->required();
  command->add_flag("--json", f->json, "As JSON");
  command->footer("Examples:\n  curtail status hdsearch\n  curtail status 127.0.0.1:9090 --json");
  return command;
}

CLI::App* AddObserve(CLI::App& app, ObserveFlags* f) {
  CLI::App* command = app.add_subcommand(
      "observe", "The operating system's share: switches, wake-ups, system calls, a second and a request");
  command->add_option("TARGET", f->target, "APP, APP/SERVICE or APP/SERVICE.INSTANCE of what is up")
      ->required();
  command->add_option("--seconds", f->seconds, "For so long")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command->add_option("--json", f->json, "Write the result here as JSON; - is the standard output");
  command->footer(
      "Examples:\n  curtail observe hdsearch\n  curtail observe hdsearch/leaf --seconds 5 --json -");
  return command;
}

CLI::App* AddTop(CLI::App& app, TopFlags* f) {
  CLI::App* command =
      app.add_subcommand("top", "Load, latency, errors and resources of each service, once a second");
  command->add_option("APP", f->application, "Its name")->required();
  command->add_option("--seconds", f->seconds, "For so long [until Ctrl-C, or the key q]")
      ->check(CLI::Range(0.1, 1e7));
  command->add_option("--sort", f->sort, "The largest first: calls, p99, errors, cpu or memory; or name")
      ->check(CLI::IsMember(TopOrders()))
      ->capture_default_str();
  command->add_flag("--json", f->json, "A line of JSON a second");
  command->footer(
      "Fills the terminal; into a file or a pipe it prints a block a second. Services with a process that is "
      "not\n"
      "ready come first. Quantiles are of the calls of the last second, interpolated within the servers' "
      "buckets.\n"
      "Examples:\n"
      "  curtail top hdsearch\n"
      "  curtail top hdsearch --seconds 60 --sort p99 > top.txt\n"
      "  curtail top hdsearch --json | jq -c '.services[] | [.service, .calls_per_s, .p99_us]'");
  return command;
}

CLI::App* AddDashboard(CLI::App& app, DashboardFlags* f) {
  CLI::App* command = app.add_subcommand(
      "dashboard", "Show an application to a browser that others started, such as a cluster");
  command->add_option("APP", f->application, "Its name")->required();
  command->add_option("--listen", f->listen, "A port of this machine, or HOST:PORT")->capture_default_str();
  command
      ->add_option(
          "--service", f->services,
          "NAME=HOST:PORT,...: a service and its HTTP admin ports; a name may have several addresses")
      ->required()
      ->allow_extra_args(false);
  command
      ->add_option("--calls", f->calls,
                   "NAME=NAME,...: the services that a service calls; those without --service are not read")
      ->allow_extra_args(false);
  command->add_option("--entry", f->entry, "The service that clients call");
  command->footer(
      "Names are looked up every 5 s, so processes come and go. What curtail up starts has its own: "
      "--dashboard.\n"
      "curtail render starts it on a cluster.\n"
      "Example:\n"
      "  curtail dashboard shop --service front=shop-front:9464 --service "
      "leaf=shop-leaf-0:9464,shop-leaf-1:9464 "
      "\\\n"
      "                         --calls front=leaf --entry front");
  return command;
}

CLI::App* AddTraces(CLI::App& app, TracesFlags* f) {
  CLI::App* command = app.add_subcommand(
      "traces",
      "Where the time goes: network, queues, handlers; critical paths; which service makes requests slow");
  command->add_option("TARGET", f->source, "APP that is up, or a FILE.json of spans")->required();
  command->add_option("--seconds", f->seconds, "Collect spans for so long")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command->add_option("--slow", f->slow, "Requests that take longer are slow: 10ms [the slowest tenth]");
  command->add_option("--json", f->json, "Write the result here as JSON; - is the standard output");
  command->footer(
      "The services must be traced: curtail up APP --trace-to memory --trace-sample 1. A file has what their "
      "/traces says, or\n"
      "that of the dashboard.\n"
      "Examples:\n"
      "  curtail traces hdsearch\n"
      "  curtail traces hdsearch --seconds 30 --slow 10ms --json slow.json\n"
      "  curl localhost:9460/traces > spans.json && curtail traces spans.json");
  return command;
}

}  // namespace curtail::tool
