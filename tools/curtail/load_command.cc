// SPDX-License-Identifier: Apache-2.0
#include "load_command.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/hdsearch/workload.h"
#include "curtail/load/report.h"
#include "curtail/load/runner.h"
#include "curtail/load/schedule.h"
#include "curtail/load/threshold.h"
#include "exit_code.h"
#include "flags.h"
#include "progress.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxMessage = 32u << 20;

constexpr char kExamples[] =
    R"(Open loop is the default: requests leave on a schedule fixed beforehand, whatever the server does, and
latency counts from the intended send time. --closed N keeps N requests in flight instead: only to find the
peak throughput.

Examples:
  curtail load 127.0.0.1:7000 --rps 500 --method /grpc.health.v1.Health/Check
  curtail load 127.0.0.1:7000 --rps 200 --duration 30s --workload hdsearch --json run.json
  curtail load 127.0.0.1:7000 --rps 1000 --fail-if 'p99<5ms,errors<0.1%' --method /my.Service/Get \
               --data-hex 0a0161
  curtail load unix:/run/search.sock --closed 16 --workload hdsearch

Durations are written 10s, 1m30s, 500us.  --fail-if: pN, mean, max, errors, rate, good, score; all must hold.
Exit codes: 0 ok, 1 no server or no disk space, 99 a --fail-if condition does not hold, 104 bad flags,
105 interrupted.)";

// What the flags mean, checked.
struct Settings {
  RunOptions options;
  Nanos duration{0};
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Gaps> gaps;  // open loop
  std::vector<Threshold> thresholds;
};

absl::Status Invalid(std::string_view flag, const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat(std::string(flag), ": ", why.message()));
}

absl::Status ReadDuration(const char* flag, const std::string& text, Nanos* out) {
  const absl::StatusOr<Nanos> value = ParseDuration(text);
  if (!value.ok()) return Invalid(flag, value.status());
  *out = *value;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Workload>> MakeFixed(const LoadFlags& flags) {
  if (flags.method.size() < 4 || flags.method[0] != '/' || flags.method.find('/', 1) == std::string::npos) {
    return absl::InvalidArgumentError("--method: write the full name, /package.Service/Method");
  }
  absl::StatusOr<std::string> message = std::string();
  if (!flags.data_hex.empty()) message = ParseHex(flags.data_hex);
  if (!flags.data_file.empty()) message = ReadWholeFile(flags.data_file, kMaxMessage);
  if (!message.ok()) return Invalid(flags.data_file.empty() ? "--data-hex" : "--data-file", message.status());
  return std::make_unique<FixedWorkload>(flags.method, *std::move(message));
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const LoadFlags& flags, bool quiet) {
  if (flags.workload.empty() == flags.method.empty()) {
    return absl::InvalidArgumentError(
        "say what to send: either --workload hdsearch or --method /package.Service/Method");
  }
  if (flags.workload.empty()) return MakeFixed(flags);
  hdsearch::WorkloadOptions options;
  options.data = flags.data;
  options.queries = flags.queries;
  options.k = flags.k;
  options.quiet = quiet;
  return hdsearch::MakeWorkload(options);
}

absl::Status ReadFlags(const LoadFlags& flags, Settings* s) {
  if ((flags.rps > 0) == (flags.closed > 0)) {
    return absl::InvalidArgumentError("say how much to send: either --rps N or --closed N, with N above 0");
  }
  for (const auto& [flag, text, out] : {std::tuple("--duration", &flags.duration, &s->duration),
                                        std::tuple("--warmup", &flags.warmup, &s->options.warmup),
                                        std::tuple("--timeout", &flags.timeout, &s->options.timeout),
                                        std::tuple("--spin", &flags.spin, &s->options.spin)}) {
    if (absl::Status status = ReadDuration(flag, *text, out); !status.ok()) return status;
  }
  if (s->duration <= Nanos::zero()) return absl::InvalidArgumentError("--duration: must be more than 0 s");
  s->options.target = flags.target;
  s->options.connections = flags.connections;
  s->options.realtime = flags.realtime;
  s->options.workload_name = flags.workload;
  if (flags.rps > 0) s->gaps = flags.arrivals == "poisson" ? PoissonGaps(flags.rps) : ConstantGaps(flags.rps);
  if (!flags.fail_if.empty()) {
    absl::StatusOr<std::vector<Threshold>> thresholds = ParseThresholds(flags.fail_if);
    if (!thresholds.ok()) return Invalid("--fail-if", thresholds.status());
    s->thresholds = *std::move(thresholds);
  }
  return absl::OkStatus();
}

// The plan as it will be, for the line before the run.
LoadPlan PlanOf(const LoadFlags& flags, const Settings& s) {
  LoadPlan plan;
  plan.target = flags.target;
  plan.method = s.workload->method();
  plan.workload = flags.workload;
  plan.schedule = s.gaps == nullptr ? "closed" : std::string(s.gaps->name());
  plan.rate_per_s = flags.rps;
  plan.outstanding = flags.closed;
  plan.seed = flags.seed;
  plan.connections = flags.connections;
  plan.warmup = s.options.warmup;
  plan.duration = s.duration;
  plan.timeout = s.options.timeout;
  return plan;
}

std::string HintFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return "is the server running, and is this its address? Nothing was sent";
    case absl::StatusCode::kUnimplemented:
      return "the server does not serve this method; its full name is /package.Service/Method";
    case absl::StatusCode::kDeadlineExceeded:
      return "the first call was not answered; is this a gRPC server without TLS?";
    case absl::StatusCode::kResourceExhausted:
      return "free some space, or write elsewhere";
    case absl::StatusCode::kPermissionDenied:
      return "write elsewhere, or change the folder's permissions";
    default:
      return "see curtail load --help";
  }
}

// The error, and the exit code it stands for.
int Fail(Console& console, const absl::Status& status) {
  console.Error(std::string(status.message()), HintFor(status));
  return status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kNotFound
             ? kBadConfig
             : kFailed;
}

absl::StatusOr<LoadResult> Drive(const LoadFlags& flags, Settings& s, Console& console,
                                 const std::atomic<bool>& stop) {
  Live live;
  s.options.stop = &stop;
  s.options.live = &live;
  const Nanos length = s.options.warmup + s.duration;
  if (s.gaps == nullptr) {
    const ProgressLine line(&console, &live, "load", length);
    return RunClosedLoop(s.options, *s.workload, flags.closed, s.duration);
  }
  const absl::StatusOr<Schedule> schedule = Schedule::Make(*s.gaps, length, flags.seed);
  if (!schedule.ok()) return schedule.status();
  const ProgressLine line(&console, &live, "load", length);
  return RunOpenLoop(s.options, *s.workload, *schedule);
}

// Prints a line a threshold; whether all are met.
bool CheckThresholds(const std::vector<Threshold>& thresholds, const LoadResult& result, Console& console) {
  bool all_met = true;
  for (const Threshold& threshold : thresholds) {
    const ThresholdOutcome outcome = Evaluate(threshold, result);
    const std::string mark = outcome.met ? console.Green("ok    ") : console.Red("FAILED");
    console.Print(absl::StrCat("threshold     ", mark, "  ", Describe(outcome), "\n"));
    all_met &= outcome.met;
  }
  return all_met;
}

}  // namespace

CLI::App* AddLoadCommand(CLI::App& app, LoadFlags* f) {
  CLI::App* load = app.add_subcommand("load", "Send load to a gRPC server and measure its latency");
  load->footer(kExamples);
  load->add_option("TARGET", f->target, "HOST:PORT or unix:PATH")->required();
  load->add_option("--rps", f->rps, "Requests a second, open loop");
  load->add_option("--closed", f->closed, "Closed loop: requests kept in flight");
  load->add_option("--arrivals", f->arrivals, "Gaps between requests: poisson or constant")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str();
  load->add_option("--duration", f->duration, "Length of the measured part")->capture_default_str();
  load->add_option("--warmup", f->warmup, "Sent before, not measured")->capture_default_str();
  load->add_option("--seed", f->seed, "Of the schedule")->capture_default_str();
  load->add_option("--timeout", f->timeout, "A call that takes longer has failed")->capture_default_str();
  load->add_option("--connections", f->connections, "Connections used in turn")->capture_default_str();
  load->add_option("--spin", f->spin, "Watch the clock so long before a send instead of sleeping")
      ->capture_default_str();
  load->add_flag("--realtime,!--no-realtime", f->realtime,
                 "Send at real-time priority where permitted (default)");
  load->add_option("--workload", f->workload, "What to send: hdsearch")->check(CLI::IsMember({"hdsearch"}));
  load->add_option("--data", f->data, "hdsearch: the corpus, for recall")->capture_default_str();
  load->add_option("--queries", f->queries, "hdsearch: the queries; those of the corpus by default");
  load->add_option("-k", f->k, "hdsearch: neighbours asked for")->capture_default_str();
  load->add_option("--method", f->method, "Send the same bytes to /package.Service/Method");
  CLI::Option* hex =
      load->add_option("--data-hex", f->data_hex, "The message for --method; empty by default");
  load->add_option("--data-file", f->data_file, "The same from a file")->excludes(hex);
  load->add_option("--json", f->json, "Write the result here as JSON");
  load->add_option("--fail-if", f->fail_if, "Conditions that must hold: 'p99<5ms,errors<0.1%'");
  load->add_flag("--dry-run", f->dry_run, "Print the plan and stop");
  return load;
}

int RunLoad(const LoadFlags& flags, Console& console, const std::atomic<bool>& stop) {
  Settings s;
  if (absl::Status status = ReadFlags(flags, &s); !status.ok()) return Fail(console, status);
  absl::StatusOr<std::unique_ptr<Workload>> workload = MakeWorkload(flags, !console.shows_progress());
  if (!workload.ok()) return Fail(console, workload.status());
  s.workload = *std::move(workload);
  console.Print(absl::StrCat(console.Bold("load"), " ", PlanText(PlanOf(flags, s)), "\n"));
  if (flags.dry_run) return kOk;

  const absl::StatusOr<LoadResult> result = Drive(flags, s, console, stop);
  if (!result.ok()) return Fail(console, result.status());
  console.Print(SummaryText(*result));
  const bool met = CheckThresholds(s.thresholds, *result, console);
  if (!flags.json.empty()) {
    if (absl::Status status = WriteFile(flags.json, ResultJson(*result)); !status.ok())
      return Fail(console, status);
  }
  if (result->interrupted) return kInterrupted;
  return met ? kOk : kThreshold;
}

}  // namespace curtail::tool
