// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/main/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/strings.h"
#include "curtail/base/terminal.h"
#include "curtail/rpc/retries.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/compare/compare_plan.h"
#include "tools/curtail/main/command_docs.h"
#include "tools/curtail/main/command_examples.h"
#include "tools/curtail/main/deploy_commands.h"
#include "tools/curtail/main/request_flags.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

constexpr char kCorpusHelp[] = "The data of the application, its --data [as in its topology]";

void AddTargetFlags(CLI::App& load, LoadFlags* f, const char* targets) {
  const char* const group = "Target";
  load.add_option("TARGET", f->targets, targets);
  load.add_option("--connections", f->connections,
                  "To each target, used in turn [1; over HTTP/1.1 64, or as many as --closed]")
      ->group(group);
  load.add_option("--balancer", f->balancer,
                  "How requests spread over the servers of a name, dns:///NAME:PORT, such as round_robin")
      ->capture_default_str()
      ->group(group);
  load.add_flag("--tls", f->tls, "Speak TLS")->group(group);
  load.add_option("--ca", f->ca, "Trust the certificates of this PEM file instead of the system's")
      ->group(group);
  load.add_option("--cert", f->cert, "Show this certificate (PEM)")->group(group);
  load.add_option("--key", f->key, "Its private key (PEM)")->group(group);
  load.add_option("--server-name", f->server_name, "The name that the certificate must have")->group(group);
  load.add_flag("--insecure", f->insecure, "Do not verify the certificate")->group(group);
  load.add_option(
          "-H,--metadata", f->metadata,
          "Send 'KEY: VALUE' with every request, a header field over HTTP; repeat it for more. Values may be "
          "drawn as in --data")
      ->allow_extra_args(false)
      ->group(group);
}

void AddRequestFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Requests";
  AddMessageFlags(load, f);
  load.add_option("-X,--verb", f->verb, "Over HTTP: GET, PUT, ... [GET; POST with a body]")->group(group);
  load.add_flag("--http2", f->http2, "Over HTTP: speak HTTP/2, without TLS with prior knowledge [HTTP/1.1]")
      ->group(group);
  load.add_option("--corpus", f->corpus, kCorpusHelp)->group(group);
  AddOwnOptions(load, group,
                [f](const std::string& name, const std::string& value) { f->own[name] = value; });
  load.add_option("--leaves", f->leaves, "How many leaves the servers have [as in its topology]")
      ->check(CLI::Range(1, 64))
      ->group(group);
  load.add_option("--judged", f->judged,
                  "Replies to so many different requests are compared with what is right, 0: none; with "
                  "large data finding that takes minutes")
      ->capture_default_str()
      ->group(group);
  load.add_flag("--list", f->list, "List the methods of the server, or of --proto, and stop")->group(group);
  load.add_flag("--debug", f->debug, "Make one call, print its reply and stop")->group(group);
}

void AddArrivalFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Arrivals";
  CLI::Option* rps = load.add_option("--rps", f->rps, "Requests a second, open loop; 500, 2.5k")
                         ->transform(Number())
                         ->group(group);
  CLI::Option* schedule =
      load.add_option("--schedule", f->schedule, "A rate that changes; see below")->group(group);
  CLI::Option* closed =
      load.add_option("-c,--closed", f->closed, "Closed loop: requests kept in flight")->group(group);
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
  load.add_option("-z,--duration", f->duration, "Length of the measured part [10s, or that of the trace]")
      ->group(group);
  load.add_option("-n,--requests", f->requests,
                  "Ends the measured part after so many requests; the whole of it without --duration")
      ->transform(Number())
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 53))
      ->group(group);
  load.add_option("--warmup", f->warmup, "Sent before, not measured [2s; none with -n]")->group(group);
  load.add_option("--timeout", f->timeout, "A call that takes longer has failed")
      ->capture_default_str()
      ->group(group);
  load.add_option(
          "--retries", f->retries,
          "How often a call that ends with UNAVAILABLE is made again at most, if its method is declared "
          "idempotent; its latency counts from the first time")
      ->check(CLI::Range(0, kMaxRetries))
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
  load.add_option("--json", f->json, "Write the result here as JSON; - is the standard output, as below")
      ->group(group);
  load.add_option("--html", f->html, "Write a report with charts, one self-contained file")->group(group);
  load.add_option("--hgrm", f->hgrm, "Write the percentile spectrum, as HdrHistogram's tools read it")
      ->group(group);
  load.add_option("--csv", f->csv, "Write the course of the run, a line a second")->group(group);
  load.add_option("--junit", f->junit,
                  "Write what --fail-if found, and whether to believe it, as test cases of JUnit")
      ->group(group)
      ->excludes("--find-max");
  load.add_option("--raw", f->raw,
                  "Write each request: run, when it was due, latency, ok; a comma-separated line each")
      ->group(group)
      ->excludes("--find-max");
  CLI::Option* const trace_to = load.add_option("--trace-to", f->trace_to,
                                                "Begin traces with requests, and send their root spans to "
                                                "zipkin=http://HOST:PORT, otlp=http://HOST:PORT, or "
                                                "nowhere: memory");
  trace_to->group(group)->excludes("--find-max");
  load.add_option("--trace-sample", f->trace_sample,
                  "The share of requests that begin a trace; 1 if not given")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group)
      ->needs(trace_to);
  load.add_option("--fail-if", f->fail_if, "Conditions that must hold: 'p99<5ms,errors<0.1%'")->group(group);
  load.add_option("--admin", f->admin, "Admin address of the server: shows its threading config and switches")
      ->group(group);
  load.add_flag("--dry-run", f->dry_run, "Print the plan and stop")->group(group);
}

CLI::App* AddLoad(CLI::App& app, LoadFlags* f) {
  CLI::App* load =
      app.add_subcommand("load", "Send load to a server of gRPC or HTTP and measure its latency");
  load->footer(kLoadExamples);
  AddTargetFlags(
      *load, f,
      "HOST:PORT, unix:PATH or APP/SERVICE of what is up, or a URL, http:// or https://; several in turn; "
      "before them perhaps an "
      "application's name, whose address need not be given when it is up");
  const char* const group = "Target";
  load->add_flag("--kubernetes", f->kubernetes,
                 "Run in the cluster that kubectl knows, beside the application")
      ->group(group);
  load->add_option("--namespace", f->cluster_namespace,
                   "With --kubernetes: where the application is [kubectl's]")
      ->group(group);
  AddRequestFlags(*load, f);
  AddArrivalFlags(*load, f);
  AddOutputFlags(*load, f);
  return load;
}

void AddApplicationFlags(CLI::App& app, apps::ApplicationOptions* o) {
  const char* const group = "Application";
  app.add_option("--corpus", o->data, kCorpusHelp)->group(group);
  AddOwnOptions(app, group, [o](const std::string& name, const std::string& value) { o->own[name] = value; });
  app.add_option("--leaves", o->leaves, "Leaves, or shards of them [as in its topology]")
      ->check(CLI::Range(1, 64))
      ->group(group);
  app.add_option("--leaf-config", o->leaf_config, "Threading model of the leaves [as in its topology]")
      ->group(group);
  app.add_option("--program", o->program, "The program of the tiers; found beside this one by default")
      ->group(group);
}

void AddCpuWeight(CLI::App& command, double* weight) {
  command
      .add_option("--cpu-weight", *weight,
                  "The share by which policies may leave the p99 higher to save CPU; 0: never")
      ->check(Between(0, 100))
      ->capture_default_str();
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
  demo->add_flag("--quick", f->quick, "Three loads, the first three policies, one round");
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
                  "An application to start, or HOST:PORT or unix:PATH of a server that runs");
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
  command->add_flag("--fences", f->fences,
                    "Find how many requests of each path class should run at once, in place of configs");
  return command;
}

CLI::App* AddVerify(CLI::App& app, VerifyFlags* f) {
  CLI::App* command =
      app.add_subcommand("verify", "Whether a profile chooses well at loads it was not trained at");
  command->footer(kVerifyExamples);
  AddSubjectFlags(*command, &f->subject,
                  "An application to start, or HOST:PORT or unix:PATH of a server that runs; then "
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

std::string PoliciesHelp() {
  const std::vector<std::string> fixed = {FixedPolicy(Config::Auto()), "the best fixed ones at both ends"};
  return absl::StrCat("Policies [", absl::StrJoin(UsualPolicies(fixed), ", "),
                      "]; between ';' if arguments have a ','");
}

CLI::App* AddCompare(CLI::App& app, CompareFlags* f) {
  CLI::App* command =
      app.add_subcommand("compare", "Compare policies: steady loads, a flash crowd, a ramp, a day");
  command->footer(absl::StrCat(kCompareAbout, "\n\nPolicies:\n", PolicyHelp("  "), "\n", kCompareExamples));
  command->add_option("APP", f->application, "The application: " + apps::ApplicationNames())->required();
  command->add_option("--profile", f->profile, "Written by curtail train; most policies go by it");
  command->add_flag("--any-machine", f->any_machine, "Take a profile of another machine, too");
  command->add_option("--policies", f->policies, PoliciesHelp());
  command->add_option("--scenarios", f->scenarios, "Loads")->capture_default_str();
  command->add_option("--loads", f->loads, "steady: requests a second [between the trained ones]");
  command->add_option("--flash-crowd", f->flash_crowd, "LOW..HIGH, of all but steady [by the profile]");
  command->add_option("--seconds", f->seconds, "Length of a steady load; low ones take longer")
      ->check(Between(0.1, 3600))
      ->capture_default_str();
  command->add_option("--rounds", f->rounds, "Times that each policy has its turn; a verdict takes 5")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--max-rounds", f->max_rounds,
                   "Rounds are added up to here while the first policy cannot be told from the others [12; "
                   "with --quick none]")
      ->check(CLI::Range(1, 100));
  command->add_option("--max-minutes", f->max_minutes, "None is added that would end later")
      ->check(Between(0, 1e5))
      ->capture_default_str();
  command->add_option("--seed", f->seed, "Of the arrivals")->capture_default_str();
  command
      ->add_option("--slo", f->slo_ms,
                   "The p99 in ms that a policy must not endanger by trying other configs")
      ->check(Between(0.001, 3.6e6))
      ->capture_default_str();
  AddCpuWeight(*command, &f->cpu_weight);
  command->add_option("--json", f->json, "Write the results here as JSON");
  command->add_option("--html", f->html, "Write a report with charts here");
  command->add_flag("--quick", f->quick, "One round, shorter");
  command->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  AddApplicationFlags(*command, &f->options);
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

// Commands about the commands: they are done when they are parsed.
struct DocCommands {
  CLI::App* man = nullptr;
  CLI::App* completion = nullptr;
  std::string shell;
};

void AddDocs(CLI::App& app, DocCommands* docs) {
  app.set_version_flag("--version", "curtail " CURTAIL_VERSION, "Print the version");
  app.add_subcommand("help", "Print this, or the help of a command: curtail help load");
  docs->man = app.add_subcommand("man", "Print the man page: curtail man | man -l -");
  docs->completion = app.add_subcommand(
      "completion", "Print what completes command lines: source <(curtail completion bash)");
  docs->completion->add_option("SHELL", docs->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

// The flags that were given, each "--flag=value", as another process takes them.
std::vector<std::string> GivenFlags(const CLI::App& command) {
  std::vector<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!name.starts_with('-')) continue;
    const char* const separator = name.starts_with("--") ? "=" : "";
    for (const std::string& value : option->results()) given.push_back(absl::StrCat(name, separator, value));
  }
  return given;
}

// A flag whose value may be left out does not take the application for it: `up --scale social` starts social. Where no word
// is an application, the one behind the flag is meant as one, misspelt, unless it may be the value.
void LeaveApplications(std::vector<std::string>* words) {
  constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"--scale", deploy::kPaperScale},
                                                                         {"--dashboard", "0"}};
  const std::vector<std::string> names = absl::StrSplit(apps::ApplicationNames(), ", ");
  const auto application = [&](const std::string& word) {
    return std::find(names.begin(), names.end(), word) != names.end() || absl::EndsWith(word, ".yaml");
  };
  const bool named = std::any_of(words->begin(), words->end(), application);
  for (size_t i = 0; i + 1 < words->size(); ++i) {
    const std::string& next = (*words)[i + 1];
    const bool meant = !named && !next.starts_with('-') && next != deploy::kPaperScale &&
                       next.find_first_of("0123456789:") == std::string::npos;
    for (const auto& [flag, value] : kDefaults) {
      if ((meant || application(next)) && (*words)[i] == flag) (*words)[i] = Join(flag, "=", value);
    }
  }
}

// The exit code when the words end with what they print: an error, help, the man page, a completion.
std::optional<int> Parse(CLI::App& app, const DocCommands& docs, std::vector<std::string> words,
                         Console& console) {
  if (const std::string wrong = ResolveHelp(app, &words); !wrong.empty()) {
    console.Error(wrong, "curtail help lists the commands");
    return kBadConfig;
  }
  LeaveApplications(&words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      std::ostringstream help, nothing;
      app.exit(error, help, nothing);
      console.Print(HelpForTerminal(help.str()));
      return kOk;
    }
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    console.Error(absl::StrCat(error.what(), unknown ? FlagMeant(app) : ""), HelpHint(app));
    return kBadConfig;
  }
  if (!*docs.man && !*docs.completion) return std::nullopt;
  console.Print(*docs.man
                    ? ManPage(app, CURTAIL_VERSION)
                    : CompletionScript(app, docs.shell, absl::StrSplit(apps::ApplicationNames(), ", ")));
  return kOk;
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
      {AddUp(app, &line->up), Command::kUp},
      {AddNew(app, &line->create), Command::kNew},
      {AddDown(app, &line->down), Command::kDown},
      {AddScale(app, &line->scale), Command::kScale},
      {AddFailover(app, &line->failover), Command::kFailover},
      {AddRelay(app, &line->relay), Command::kRelay},
      {AddPs(app, &line->ps), Command::kPs},
      {AddLogs(app, &line->logs), Command::kLogs},
      {AddLoad(app, &line->load), Command::kLoad},
      {AddDemo(app, &line->demo), Command::kDemo},
      {AddTrain(app, &line->train), Command::kTrain},
      {AddVerify(app, &line->verify), Command::kVerify},
      {AddCompare(app, &line->compare), Command::kCompare},
      {AddProvision(app, &line->provision), Command::kProvision},
      {AddSwitch(app, &line->switch_to), Command::kSwitch},
      {AddStatus(app, &line->status), Command::kStatus},
      {AddObserve(app, &line->observe), Command::kObserve},
      {AddTop(app, &line->top), Command::kTop},
      {AddDashboard(app, &line->dashboard), Command::kDashboard},
      {AddTraces(app, &line->traces), Command::kTraces},
      {AddRender(app, &line->render), Command::kRender},
      {AddReport(app, &line->report), Command::kReport},
      {AddCompareResults(app, &line->compare_results), Command::kCompareResults},
      {app.add_subcommand("version", "Print the version"), Command::kVersion},
  };
  DocCommands docs;
  AddDocs(app, &docs);
  if (const auto code = Parse(app, docs, {argv + std::min(argc, 1), argv + argc}, console)) return code;
  console.set_quiet(quiet);
  line->load.command = line->provision.command = CommandText({argv, argv + argc});
  if (line->load.kubernetes) line->load.given = GivenFlags(*app.get_subcommand("load"));
  for (const auto& [command, which] : commands) {
    if (*command) line->command = which;
  }
  return std::nullopt;
}

}  // namespace curtail::tool
