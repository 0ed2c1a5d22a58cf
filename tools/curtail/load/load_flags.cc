// SPDX-License-Identifier: Apache-2.0
//
// The flags of curtail load.
#include "tools/curtail/load/load_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "curtail/base/read_file.h"
#include "curtail/load/drive/runner.h"
#include "curtail/rpc/retries.h"
#include "tools/curtail/load/request_flags.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxMessage = 32u << 20;

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
  curtail load http://api:8080/search --rps 500 --data '{"user": {{uniform 1 1000}}}' -H 'x-id: {{uuid}}'
  curtail load api:8080 --rps 50 --journey shop.yaml --fail-if 'p99<200ms,pay.p99<50ms,pay.errors<0.1%'
  curtail load api:8080 --rps 50 --method shop.Cart/Get --data '{"id": 7}' --check '.cart.id == 7' --fail-if 'checks<0.1%'
  curtail load api:8080 --list

Over HTTP an answer with a status of 2xx is ok; others are counted by their status.
Schedules: constant:500, steps:100,500,2000, ramp:100..5000, flash-crowd:100..8000, diurnal:100..2000,
  bursts:200..2000, a CSV file of time_s,rate_per_s, or a shipped shape at its peak rate: large-variation:2000,
  quick-variation:2000, slow-variation:2000, world-cup-98:2000.
JSON fields may be drawn for each request: {{index}}, {{uniform 1 100}}, {{real 0 1}}, {{zipf 1000000 0.99}},
  {{skew 1000 80}}, {{string 16}}, {{bytes 64}}, {{uuid}}, {{pick red green}}.
--check looks at each OK reply, also of HTTP if that is JSON:
  .user.id == 7   .name contains "red"   .items[0].price <= 9.5   .items.length >= 1   .token   . contains "welcome"
A journey is a file of steps and ends at the first that fails; docs/load.md describes it. --rps counts journeys.
  steps:
    - {name: login, method: shop.Users/Login, data: '{"user": "user-{{uniform 1 1000}}"}'}
    - name: pay
      method: shop.Cart/Pay
      pause: exponential 2s
      data: '{"cart": "{{reply.login.cart}}"}'
      metadata: {authorization: "Bearer {{reply.login.token}}"}
Durations are written 10s, 1m30s, 500us.  --fail-if: pN, mean, max, errors, rate, good, score, checks, STEP.pN; all must hold.
Exit codes: 0 ok, 1 no server or no disk space, 98 the run is void (the generator was the limit), 99 a --fail-if
condition does not hold, 104 bad flags, 105 interrupted.)";

void AddRequestFlags(CLI::App& load, LoadFlags* f) {
  const char* const group = "Requests";
  AddMessageFlags(load, f);
  load.add_option(
          "--check", f->checks,
          "Of each OK reply: a field, and what it must be, '.user.id == 7'; @FILE has a check a line; "
          "repeat it for more")
      ->allow_extra_args(false)
      ->group(group);
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
                         ->check(Positive())
                         ->group(group);
  CLI::Option* schedule =
      load.add_option("--schedule", f->schedule, "A rate that changes; see below")->group(group);
  CLI::Option* closed = load.add_option("-c,--closed", f->closed, "Closed loop: requests kept in flight")
                            ->check(CLI::Range(1, kMaxOutstanding))
                            ->group(group);
  rps->excludes(schedule)->excludes(closed);
  schedule->excludes(closed);
  load.add_option("--threads", f->threads,
                  "Send from so many threads, each with its share of the rate and connections of its own")
      ->check(CLI::Range(1, 256))
      ->capture_default_str()
      ->group(group);
  load.add_option("--share", f->share,
                  "This is one of several generators, 2/3 the second of three, each with the same flags; "
                  "curtail report joins their --json")
      ->group(group);
  load.add_option("--start-at", f->start_at,
                  "When the run starts: 2026-01-31T12:00:00Z, or the seconds of date +%s [at once]")
      ->group(group);
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
      ->check(NotNegative())
      ->capture_default_str()
      ->group(group);
  load.add_option("--repeat", f->repeat, "Runs, each over fresh connections and with the next seed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group(group);
  load.add_option("--find-max", f->find_max,
                  "Search the highest rate at which this holds: 'p99<5ms'; starts at --rps")
      ->check(Conditions())
      ->group(group)
      ->excludes("--share")
      ->excludes("--start-at");
  load.add_option("--spin", f->spin,
                  "Watch the clock so long before a send, as timers are late; auto learns by how much")
      ->capture_default_str()
      ->group(group);
  load.add_flag("--realtime,!--no-realtime", f->realtime,
                "Send at real-time priority where permitted (default)")
      ->group(group);
}

void AddOutputFlags(CLI::App& load, LoadFlags* f) {
  AddResultFlags(load, f);
  load.get_option("--junit")->excludes("--find-max");
  const char* const group = "Results";
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
      ->check(Between(0, 1))
      ->group(group)
      ->needs(trace_to);
  load.add_option("--admin", f->admin, "Admin address of the server: shows its threading config and switches")
      ->group(group);
  load.add_flag("--dry-run", f->dry_run, "Print the plan and stop")->group(group);
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

}  // namespace

absl::Status FlagError(std::string_view flag, const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat(std::string(flag), ": ", why.message()));
}

absl::StatusOr<std::string> ReadBytes(const LoadFlags& flags) {
  const bool file = !flags.data_binary.empty();
  absl::StatusOr<std::string> bytes =
      file ? ReadWholeFile(flags.data_binary, kMaxMessage) : ParseHex(flags.data_hex);
  if (!bytes.ok()) return FlagError(file ? "--data-binary" : "--data-hex", bytes.status());
  return bytes;
}

Command AddLoad(CLI::App& app) {
  const auto f = std::make_shared<LoadFlags>();
  CLI::App* load =
      app.add_subcommand("load", "Send load to a server of gRPC or HTTP and measure its latency");
  load->footer(kLoadExamples);
  AddTargetFlags(
      *load, f.get(),
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
  AddRequestFlags(*load, f.get());
  AddArrivalFlags(*load, f.get());
  AddOutputFlags(*load, f.get());
  return {load, [f, load](const Invocation& given) {
            f->command = given.command;
            if (f->kubernetes) f->given = GivenFlags(*load);
            return RunLoad(*f, given.console, given.stop);
          }};
}

}  // namespace curtail::tool
