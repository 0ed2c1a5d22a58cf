// SPDX-License-Identifier: Apache-2.0
#include "command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "exit_code.h"

namespace curtail::tool {
namespace {

constexpr char kExamples[] = R"(Examples:
  curtail demo                     # under 3 minutes: learns which threading model suits which load, and adapts
  curtail train hdsearch --quick --out profile.json              # which config is best at which load?
  curtail compare hdsearch --profile profile.json --html compare.html
  curtail switch 127.0.0.1:9090 SDB1-16                          # at once, while it serves
  curtail status 127.0.0.1:9090                                  # pools, queue, threads
  curtail load hdsearch 127.0.0.1:7000 --rps 500                 # about 12 s

Exit codes: 0 ok, 1 failed, 98 a load run is void, 99 a threshold does not hold, 104 bad configuration, 105 interrupted.)";

constexpr char kLoadExamples[] =
    R"(Open loop is the default: requests leave on a schedule fixed beforehand, whatever the server does, and
latency counts from the intended send time. --closed N keeps N requests in flight instead: only to find the
peak throughput.

Examples:
  curtail load 127.0.0.1:7000 --rps 500 --method grpc.health.v1.Health/Check
  curtail load api:443 --tls --rps 200 --method shop.Cart/Add --data '{"user": "{{zipf 100000 0.99}}", "n": 1}'
  curtail load api:8080 --rps 200 --method shop.Cart/Add --data @requests.jsonl --proto shop.proto
  curtail load hdsearch 127.0.0.1:7000 --schedule flash-crowd:100..8000 --duration 30s --html run.html
  curtail load api:8080 --schedule trace.csv --rate-scale 0.1 --method shop.Cart/Get
  curtail load api:8080 --rps 1000 --repeat 5 --json run.json --fail-if 'p99<5ms,errors<0.1%' --method ...
  curtail load api:8080 --find-max 'p99<5ms' --rps 100 --duration 5s --method ...
  curtail load api:8080 --list

Schedules: constant:500, steps:100,500,2000, ramp:100..5000, flash-crowd:100..8000, diurnal:100..2000,
  bursts:200..2000, a CSV file of time_s,rate_per_s, or a shipped shape at its peak rate: large-variation:2000,
  quick-variation:2000, slow-variation:2000, world-cup-98:2000.
JSON fields may be drawn for each request: {{index}}, {{uniform 1 100}}, {{real 0 1}}, {{zipf 1000000 0.99}},
  {{skew 1000 80}}, {{string 16}}, {{bytes 64}}, {{uuid}}, {{pick red green}}.
Durations are written 10s, 1m30s, 500us.  --fail-if: pN, mean, max, errors, rate, good, score; all must hold.
Exit codes: 0 ok, 1 no server or no disk space, 98 the run is void (the generator was the limit), 99 a --fail-if
condition does not hold, 104 bad flags, 105 interrupted.)";

constexpr char kDemoExamples[] =
    R"(Starts HDSearch (4 leaves and a mid-tier) on this machine, measures some configs of the mid-tier at rising loads, and
then serves a ramp and a flash crowd: under the adaptive policy with that profile, under its best config for the lowest
and for the highest load, and under the policies of others. Every process it starts ends with it.

Examples:
  curtail demo                                    # under 3 minutes; writes curtail-demo.html
  curtail demo --quick --json demo.json           # about 30 s
  curtail demo --configs SIP1,SDB1-50 --loads 50,500,2k

Exit codes: 0 ok, 1 a process failed, 104 bad flags, a missing program or data set, 105 interrupted.)";

constexpr char kTrainExamples[] =
    R"(Measures p50 and p99 of each config at each load, several times in turns, and writes a profile, by which a server chooses its
config: `hdsearch --policy mutune --profile profile.json`. A config that gives up at a load is spared higher ones. The
application is started and ended by this; a server that runs already is switched through its admin interface, and gets its
config back at the end. Train on the machine that serves: a profile is of one machine.

Examples:
  curtail train hdsearch --out profile.json              # about 30 minutes
  curtail train hdsearch --quick --out profile.json      # under 3 minutes
  curtail train hdsearch --dry-run                       # says what it would measure, and how long that takes
  curtail train hdsearch --out profile.json --resume     # goes on after Ctrl-C or a power cut
  curtail train 127.0.0.1:7000 --admin 127.0.0.1:9090 --method shop.Cart/Add --data @requests.jsonl --out cart.json

Exit codes: 0 ok, 1 a process failed or no disk space, 104 bad flags, a missing program or data set, 105 interrupted.)";

constexpr char kVerifyExamples[] =
    R"(Measures the configs that the profile says keep up at loads that it was not trained at, finds the best one, and measures that against the one
that the profile chooses, in turns. The first measurement only finds the best, the second one judges: so luck is not
mistaken for merit.

Examples:
  curtail verify hdsearch profile.json                   # some 15 minutes
  curtail verify hdsearch profile.json --quick
  curtail verify 127.0.0.1:7000 cart.json --admin 127.0.0.1:9090 --method shop.Cart/Add --data @requests.jsonl

Exit codes: 0 ok, 1 a process failed, 99 the chosen config loses more than 10 % (--max-loss) at some load, 104 bad flags
or profile, 105 interrupted.)";

constexpr char kCompareExamples[] =
    R"(Serves the same loads under one policy after the other, each in processes started for it, in turns: steady loads up and
down, a flash crowd (a low load, 1 s beyond what the best config for it sustains, the low load again), a ramp, a day.

Policies: mutune, mutune:paper, fm, tbd, ipi[:CONFIG], online, online+profile, static:CONFIG.

Examples:
  curtail compare hdsearch --profile profile.json --html compare.html           # about half an hour
  curtail compare hdsearch --profile profile.json --quick                       # a few minutes
  curtail compare hdsearch --profile profile.json --policies mutune,static:SIP1,static:SDB1-50 \
                  --scenarios flash-crowd --flash-crowd 100..3k --rounds 5
  curtail compare hdsearch --policies online,static:SIB1 --scenarios steady --loads 100,1k --flash-crowd 100..1k

Exit codes: 0 ok, 1 a process failed or no disk space, 104 bad flags or profile, 105 interrupted.)";

void AddTargetFlags(CLI::App& load, LoadFlags* f, const char* targets) {
  const char* const group = "Target";
  load.add_option("TARGET", f->targets, targets);
  load.add_option("--connections", f->connections, "To each target, used in turn")
      ->capture_default_str()
      ->group(group);
  load.add_flag("--tls", f->tls, "Speak TLS")->group(group);
  load.add_option("--ca", f->ca, "Trust the certificates of this PEM file instead of the system's")
      ->group(group);
  load.add_option("--cert", f->cert, "Show this certificate (PEM)")->group(group);
  load.add_option("--key", f->key, "Its private key (PEM)")->group(group);
  load.add_option("--server-name", f->server_name, "The name that the certificate must have")->group(group);
  load.add_flag("--insecure", f->insecure, "Do not verify the certificate")->group(group);
  load.add_option("-H,--metadata", f->metadata, "Send 'KEY: VALUE' with every request; repeat it for more")
      ->allow_extra_args(false)
      ->group(group);
}

// A number between these. CLI::Range alone lets "nan" pass.
CLI::Validator Between(double low, double high) {
  const CLI::Validator finite(
      [](std::string& text) {
        double number = 0;
        const bool good = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
        return good ? std::string() : text + " is no number";
      },
      "");
  return CLI::Range(low, high) & finite;
}

// What is sent.
void AddMessageFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Requests";
  load.add_option("--method", f->method, "package.Service/Method")->group(group);
  CLI::Option* data =
      load.add_option("--data", f->data,
                      "The message as JSON, or @FILE with JSON or JSON lines; empty by default")
          ->group(group);
  CLI::Option* hex =
      load.add_option("--data-hex", f->data_hex, "The message as bytes in hexadecimal")->group(group);
  CLI::Option* binary =
      load.add_option("--data-binary", f->data_binary, "The message from a file")->group(group);
  data->excludes(hex)->excludes(binary);
  hex->excludes(binary);
  load.add_option("--proto", f->protos, "Describes the messages; by default the server is asked (reflection)")
      ->allow_extra_args(false)
      ->group(group);
  load.add_option("--import-path", f->import_paths, "Where the imports of --proto lie")
      ->allow_extra_args(false)
      ->group(group);
  load.add_option("--pick", f->pick, "Which line or query is next: in-turn, uniform, zipf:S, skew:S")
      ->capture_default_str()
      ->group(group);
}

void AddRequestFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Requests";
  AddMessageFlags(load, f);
  load.add_option("--corpus", f->corpus, "hdsearch: the server's data, for recall")
      ->capture_default_str()
      ->group(group);
  load.add_option("--queries", f->queries, "hdsearch: the queries; those of the corpus by default")
      ->group(group);
  load.add_option("-k", f->k, "hdsearch: neighbours asked for")->capture_default_str()->group(group);
  load.add_flag("--list", f->list, "List the methods of the server, or of --proto, and stop")->group(group);
  load.add_flag("--debug", f->debug, "Make one call, print its reply and stop")->group(group);
}

void AddArrivalFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Arrivals";
  CLI::Option* rps = load.add_option("--rps", f->rps, "Requests a second, open loop")->group(group);
  CLI::Option* schedule =
      load.add_option("--schedule", f->schedule, "A rate that changes; see below")->group(group);
  CLI::Option* closed =
      load.add_option("--closed", f->closed, "Closed loop: requests kept in flight")->group(group);
  rps->excludes(schedule)->excludes(closed);
  schedule->excludes(closed);
  load.add_option("--arrivals", f->arrivals, "Gaps between requests: poisson or constant")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str()
      ->group(group);
  load.add_option("--rate-scale", f->rate_scale, "Multiply the rates of the schedule")
      ->capture_default_str()
      ->group(group);
  load.add_option("--time-scale", f->time_scale, "Stretch the times of a trace")
      ->capture_default_str()
      ->group(group);
  load.add_option("--duration", f->duration, "Length of the measured part [10s, or that of the trace]")
      ->group(group);
  load.add_option("--warmup", f->warmup, "Sent before, not measured")->capture_default_str()->group(group);
  load.add_option("--timeout", f->timeout, "A call that takes longer has failed")
      ->capture_default_str()
      ->group(group);
  load.add_option("--seed", f->seed, "Of the schedule and of random fields")
      ->capture_default_str()
      ->group(group);
  load.add_option("--repeat", f->repeat, "Runs, each over fresh connections and with the next seed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group(group);
  load.add_option("--find-max", f->find_max,
                  "Search the highest rate at which this holds: 'p99<5ms'; starts at --rps")
      ->group(group);
  load.add_option("--spin", f->spin,
                  "Watch the clock so long before a send, as timers are late; auto learns by how much")
      ->capture_default_str()
      ->group(group);
  load.add_flag("--realtime,!--no-realtime", f->realtime,
                "Send at real-time priority where permitted (default)")
      ->group(group);
}

void AddOutputFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Results";
  load.add_option("--json", f->json, "Write the result here as JSON")->group(group);
  load.add_option("--html", f->html, "Write a report with charts, one self-contained file")->group(group);
  load.add_option("--hgrm", f->hgrm, "Write the percentile spectrum, as HdrHistogram's tools read it")
      ->group(group);
  load.add_option("--fail-if", f->fail_if, "Conditions that must hold: 'p99<5ms,errors<0.1%'")->group(group);
  load.add_option("--admin", f->admin, "Admin address of the server: shows its threading config and switches")
      ->group(group);
  load.add_flag("--dry-run", f->dry_run, "Print the plan and stop")->group(group);
}

CLI::App* AddLoad(CLI::App& app, LoadFlags* f) {
  CLI::App* load = app.add_subcommand("load", "Send load to a gRPC server and measure its latency");
  load->footer(kLoadExamples);
  AddTargetFlags(*load, f, "HOST:PORT or unix:PATH, several in turn; before them perhaps hdsearch");
  AddRequestFlags(*load, f);
  AddArrivalFlags(*load, f);
  AddOutputFlags(*load, f);
  return load;
}

void AddApplicationFlags(CLI::App& app, ApplicationOptions* o) {
  const char* const group = "Application";
  app.add_option("--corpus", o->data, "hdsearch: the data; see hdsearch --help")
      ->capture_default_str()
      ->group(group);
  app.add_option("--queries", o->queries, "hdsearch: the queries; those of the corpus by default")
      ->group(group);
  app.add_option("-k", o->k, "hdsearch: neighbours asked for")->capture_default_str()->group(group);
  app.add_option("--leaves", o->leaves, "Leaves")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(group);
  app.add_option("--leaf-config", o->leaf_config, "Threading model of the leaves")
      ->capture_default_str()
      ->group(group);
  app.add_option("--program", o->program, "The program of the tiers; found beside this one by default")
      ->group(group);
}

CLI::App* AddDemo(CLI::App& app, DemoFlags* f) {
  CLI::App* demo = app.add_subcommand("demo", "See image search on this machine choose its own threading");
  demo->footer(kDemoExamples);
  demo->add_option("--configs", f->configs, "Threading models of the mid-tier, with pool sizes")
      ->capture_default_str();
  demo->add_option("--loads", f->loads, "Requests a second at which they are measured")
      ->capture_default_str();
  demo->add_option("--policies", f->policies, "What is compared; see curtail compare --help");
  demo->add_option("--seed", f->seed, "Of the arrivals")->capture_default_str();
  demo->add_option("--html", f->html, "Write the report here")->capture_default_str()->take_last();
  demo->add_option("--json", f->json, "Write the results here as JSON");
  demo->add_option("--profile", f->profile, "Keep the profile here");
  demo->add_flag("--quick", f->quick, "A flash crowd only, three policies, short");
  AddApplicationFlags(*demo, &f->application);
  return demo;
}

// The target and what is sent to it, of commands that measure a server under several configs.
void AddSubjectFlags(CLI::App& app, SubjectFlags* f, const char* targets) {
  AddTargetFlags(app, &f->load, targets);
  AddMessageFlags(app, &f->load);
  app.add_option("--timeout", f->load.timeout, "A call that takes longer has failed")->capture_default_str();
  app.add_option("--admin", f->admin, "Admin address of a server that runs already")->group("Target");
  AddApplicationFlags(app, &f->application);
}

CLI::App* AddTrain(CLI::App& app, TrainFlags* f) {
  CLI::App* command =
      app.add_subcommand("train", "Measure which config is best at which load; write a profile");
  command->footer(kTrainExamples);
  AddSubjectFlags(*command, &f->subject,
                  "An application to start (hdsearch), or HOST:PORT or unix:PATH of a server that runs");
  command->add_option("--out", f->out, "The profile")->capture_default_str();
  command->add_option("--configs", f->configs, "Configs to measure [some that suit the CPUs]");
  command->add_option("--loads", f->loads, "Requests a second [a ladder until all give up]");
  command->add_option("--repeats", f->repeats, "Times that each cell is measured, at least 3")
      ->check(CLI::Range(3, 1000));
  command->add_option("--seconds", f->seconds, "Length of a cell; low loads take longer")
      ->check(Between(0.05, 3600));
  command->add_option("--seed", f->seed, "Of the arrivals")->capture_default_str();
  command->add_flag("--quick", f->quick, "Fewer configs and loads, shorter cells");
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  command->add_flag("--resume", f->resume, "Go on with an interrupted training");
  return command;
}

CLI::App* AddVerify(CLI::App& app, VerifyFlags* f) {
  CLI::App* command =
      app.add_subcommand("verify", "Whether a profile chooses well at loads it was not trained at");
  command->footer(kVerifyExamples);
  AddSubjectFlags(*command, &f->subject,
                  "An application to start (hdsearch), or HOST:PORT or unix:PATH of a server that runs; then "
                  "the profile");
  command->add_option("--profile", f->profile, "The profile; may also be the last argument");
  command->add_flag("--any-machine", f->any_machine, "Take a profile of another machine, too");
  command->add_option("--loads", f->loads, "Requests a second [between the trained ones]");
  command->add_option("--count", f->count, "Of such loads")->check(CLI::Range(1, 100))->capture_default_str();
  command->add_option("--search", f->search, "Times that every config is measured")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--duels", f->duels, "Times that the chosen and the best one are, an odd number")
      ->check(CLI::Range(1, 101))
      ->capture_default_str();
  command->add_option("--seconds", f->seconds, "Length of a cell; low loads take longer")
      ->check(Between(0.05, 3600))
      ->capture_default_str();
  command->add_option("--max-loss", f->max_loss, "What it may lose, in percent")
      ->check(Between(0, 1000))
      ->capture_default_str();
  command->add_flag("--quick", f->quick, "Three loads, short cells");
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  return command;
}

CLI::App* AddCompare(CLI::App& app, CompareFlags* f) {
  CLI::App* command =
      app.add_subcommand("compare", "Compare policies: steady loads, a flash crowd, a ramp, a day");
  command->footer(kCompareExamples);
  command->add_option("APP", f->application, "The application: hdsearch")->required();
  command->add_option("--profile", f->profile, "Written by curtail train; most policies go by it");
  command->add_flag("--any-machine", f->any_machine, "Take a profile of another machine, too");
  command->add_option("--policies", f->policies, "Policies [mutune, two static ones, fm, ipi, tbd, online]");
  command->add_option("--scenarios", f->scenarios, "Loads")->capture_default_str();
  command->add_option("--loads", f->loads, "steady: requests a second [between the trained ones]");
  command->add_option("--flash-crowd", f->flash_crowd, "LOW..HIGH, of all but steady [by the profile]");
  command->add_option("--seconds", f->seconds, "Length of a steady load; low ones take longer")
      ->check(Between(0.1, 3600))
      ->capture_default_str();
  command->add_option("--rounds", f->rounds, "Times that each policy has its turn")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--seed", f->seed, "Of the arrivals")->capture_default_str();
  command
      ->add_option("--slo", f->slo_ms,
                   "For online: the p99 in ms that trying other configs must not endanger")
      ->check(Between(0.001, 3.6e6))
      ->capture_default_str();
  command->add_option("--json", f->json, "Write the results here as JSON");
  command->add_option("--html", f->html, "Write a report with charts here");
  command->add_flag("--quick", f->quick, "One round, shorter");
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  AddApplicationFlags(*command, &f->options);
  return command;
}

CLI::App* AddSwitch(CLI::App& app, SwitchFlags* f) {
  CLI::App* command = app.add_subcommand("switch", "Put another config in force on a running server");
  command->add_option("target", f->target, "Its admin address (the server's --admin)")->required();
  command->add_option("config", f->config, "For example SIP1 or SDB1-16; left out: print the one in force");
  command->footer(
      "The server goes on serving: requests under way finish as they began.\n"
      "Example: curtail switch 127.0.0.1:9090 SDB1-16");
  return command;
}

CLI::App* AddStatus(CLI::App& app, StatusFlags* f) {
  CLI::App* command = app.add_subcommand("status", "What a running server does: pools, queue, threads");
  command->add_option("target", f->target, "Its admin address (the server's --admin)")->required();
  command->add_flag("--json", f->json, "As JSON");
  command->footer("Example: curtail status 127.0.0.1:9090 --json");
  return command;
}

CLI::App* AddReport(CLI::App& app, ReportFlags* f) {
  CLI::App* command = app.add_subcommand("report", "Show the result of a load test once more");
  command->add_option("file", f->file, "Written by curtail load --json")->required();
  command->add_option("--html", f->html, "Write a page with charts here");
  command->add_option("--hgrm", f->hgrm, "Write the percentile spectrum here, for HdrHistogram's plotters");
  command->footer(
      "Without --html and --hgrm it prints the summary.\nExample: curtail report run.json --html run.html");
  return command;
}

CLI::App* AddCompareResults(CLI::App& app, CompareResultsFlags* f) {
  CLI::App* command =
      app.add_subcommand("compare-results", "Whether two load tests differ, or only by noise");
  command->add_option("A", f->a, "Written by curtail load --repeat 5 --json")->required();
  command->add_option("B", f->b, "The same, to be judged against A")->required();
  command->add_option("--json", f->json, "Write the comparison here as JSON");
  command->add_flag("--fail-if-worse", f->fail_if_worse, "Exit with 99 when some number is worse");
  command->footer("Example: curtail compare-results before.json after.json --fail-if-worse");
  return command;
}

}  // namespace

std::optional<int> ParseCommandLine(int argc, char** argv, Console& console, CommandLine* line) {
  CLI::App app("curtail: microservices that choose their own threading, and the tools to measure them.",
               "curtail");
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough();
  bool quiet = false;
  app.add_flag("--quiet", quiet, "Results only, no progress");
  const std::pair<CLI::App*, Command> commands[] = {
      {AddLoad(app, &line->load), Command::kLoad},
      {AddDemo(app, &line->demo), Command::kDemo},
      {AddTrain(app, &line->train), Command::kTrain},
      {AddVerify(app, &line->verify), Command::kVerify},
      {AddCompare(app, &line->compare), Command::kCompare},
      {AddSwitch(app, &line->switch_to), Command::kSwitch},
      {AddStatus(app, &line->status), Command::kStatus},
      {AddReport(app, &line->report), Command::kReport},
      {AddCompareResults(app, &line->compare_results), Command::kCompareResults},
      {app.add_subcommand("version", "Print the version"), Command::kVersion},
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    console.Error(error.what(), "see curtail --help, or curtail COMMAND --help");
    return kBadConfig;
  }
  console.set_quiet(quiet);
  for (const auto& [command, which] : commands) {
    if (*command) line->command = which;
  }
  return std::nullopt;
}

}  // namespace curtail::tool
