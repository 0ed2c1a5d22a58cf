// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_command.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/internal/closest.h"
#include "curtail/load/drive/one_call.h"
#include "curtail/load/drive/rate_search.h"
#include "curtail/load/drive/recorder.h"
#include "curtail/load/drive/shape.h"
#include "curtail/load/message/catalog.h"
#include "curtail/load/message/journey.h"
#include "curtail/load/message/json_workload.h"
#include "curtail/load/report/join.h"
#include "curtail/load/report/report.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/config_watch.h"
#include "tools/curtail/load/cluster_load.h"
#include "tools/curtail/load/http_setup.h"
#include "tools/curtail/load/live_run.h"
#include "tools/curtail/load/load_checks.h"
#include "tools/curtail/load/load_results.h"
#include "tools/curtail/load/load_setup.h"
#include "tools/curtail/load/load_share.h"
#include "tools/curtail/load/load_threads.h"
#include "tools/curtail/load/request_log.h"
#include "tools/curtail/load/trial.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/progress.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxDescription = 1000;
constexpr uint64_t kSeedOfSender = 0x9e3779b97f4a7c15;

// For a server that could not be called at all.
std::string ReachHint(absl::string_view message) {
  static constexpr std::pair<absl::string_view, const char*> kHints[] = {
      {"was plain text", "add --tls"},
      {"does it expect TLS", "if so, add --tls"},
      {"does not speak TLS", "leave --tls out"},
      {"not trusted",
       "name the authority that vouches for it with --ca FILE, or skip the check with --insecure"},
      {"client certificate", "show one with --cert FILE --key FILE"},
      {" is for ", "call it by that name, or say --server-name NAME"},
      {"speaks HTTP/1.1, not HTTP/2", "leave --http2 out"},
      {"broke HTTP/2", "if it speaks HTTP/1.1 only, leave --http2 out"},
      {"without a word", "does it speak this protocol? --http2 asks for HTTP/2"},
      {"broke HTTP/1.1", "does the server speak HTTP/2 only? then add --http2; of gRPC give HOST:PORT alone"},
      {"HTTP/", "is this the port of a gRPC server? For one of HTTP write http://HOST:PORT/PATH"},
      {"resolve", "is the name right?"},
  };
  for (const auto& [part, hint] : kHints) {
    if (absl::StrContains(message, part)) return hint;
  }
  return "is the server running, and is this its address?";
}

std::string HintFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return ReachHint(status.message());
    case absl::StatusCode::kUnimplemented:
      if (absl::StrContains(status.message(), "--proto")) return "";  // says itself what to do
      return "the server does not serve this method; see what it serves with --list";
    case absl::StatusCode::kDeadlineExceeded:
      return "the first call was not answered in time; is this a gRPC server? --timeout gives it longer";
    case absl::StatusCode::kFailedPrecondition:
      return "do --corpus and the other flags fit what the servers have? --debug makes one call";
    default:
      return "see curtail load --help";
  }
}

// The error, and the exit code it stands for.
int FailLoad(Console& console, const absl::Status& status, std::optional<std::string> hint = {}) {
  if (absl::IsCancelled(status)) {
    console.Print("INTERRUPTED   before anything was measured\n");
    return kInterrupted;
  }
  console.Error(std::string(status.message()), hint ? *hint : HintFor(status));
  return status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kNotFound
             ? kBadConfig
             : kFailed;
}

// The request as the flags give it, for a report; without secrets.
std::string DescribeRequest(const LoadFlags& flags) {
  std::string text = !flags.journey.empty()       ? absl::StrCat("the steps of ", flags.journey)
                     : !flags.data_binary.empty() ? absl::StrCat("the bytes of ", flags.data_binary)
                     : !flags.data_hex.empty()    ? absl::StrCat("the bytes ", flags.data_hex)
                     : !flags.data.empty()        ? flags.data
                     : flags.method.empty()       ? ""
                                                  : "no bytes";
  if (text.size() > kMaxDescription) text = absl::StrCat(text.substr(0, kMaxDescription), "...");
  for (const std::string& line : flags.metadata) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", WithoutSecret(line));
  }
  return text;
}

ReportOrigin OriginOf(const LoadFlags& flags) {
  ReportOrigin origin = ThisOrigin(CURTAIL_VERSION);
  origin.command = flags.command;
  origin.request = DescribeRequest(flags);
  return origin;
}

void AddSenders(const LoadFlags& flags, const LoadSetup& setup, LoadPlan* plan) {
  plan->threads = flags.threads;
  plan->shares = setup.share.of;
  plan->share = setup.share.of == 1 ? 0 : setup.share.number;
}

// The plan of the first run.
absl::StatusOr<LoadPlan> PlanOf(const LoadFlags& flags, const LoadSetup& setup, const Workload& workload) {
  if (!setup.curve) {
    LoadPlan plan = PlanClosedLoop(setup.options, workload, flags.closed, setup.duration);
    plan.seed = flags.seed;
    AddSenders(flags, setup, &plan);
    return plan;
  }
  const absl::StatusOr<Schedule> schedule = Schedule::Make(*setup.curve, setup.gaps, flags.seed);
  if (!schedule.ok()) return schedule.status();
  LoadPlan plan = PlanOpenLoop(setup.options, workload, *schedule);
  AddSenders(flags, setup, &plan);
  return plan;
}

// One `curtail load`: runs, reports and judges.
class LoadTest {
 public:
  // `first` are the requests of the first run.
  LoadTest(const LoadFlags& flags, LoadSetup setup, WorkloadMaker workloads,
           std::shared_ptr<const Workload> first, const LoadTargets& targets, Console& console,
           const std::atomic<bool>& stop)
      : flags_(flags),
        setup_(std::move(setup)),
        workloads_(std::move(workloads)),
        first_(std::move(first)),
        targets_(targets),
        console_(console),
        stop_(stop),
        origin_(OriginOf(flags)) {
    setup_.options.stop = &stop_;
    if (!flags.raw.empty()) setup_.options.observer = &requests_;
  }

  // --repeat times the plan. Returns the exit code.
  int Repeat();
  // The highest rate at which `conditions` hold. Returns the exit code.
  int FindMax(const std::vector<Threshold>& conditions);

 private:
  // Run number `number` of the plan, whose seed is the flags' plus that; at another rate if one is given.
  absl::StatusOr<LoadResult> RunOnce(int number, std::optional<double> rate, const std::string& label);
  // This generator's share of the run, by all threads of the flags. `curve` is absent in a closed loop.
  absl::StatusOr<LoadResult> RunShares(const RunOptions& options, const Workload& workload,
                                       const std::optional<RateCurve>& curve, uint64_t seed) const;
  // Writes the files that the flags ask for; OK when all is written.
  absl::Status WriteAll(const LoadReport& report) const;

  const LoadFlags& flags_;
  LoadSetup setup_;
  const WorkloadMaker workloads_;
  std::shared_ptr<const Workload> first_;  // until it is run
  const LoadTargets& targets_;
  Console& console_;
  const std::atomic<bool>& stop_;
  const ReportOrigin origin_;
  RequestLog requests_;  // empty without --raw
  std::string traces_;   // what became of the last run's, for the summary
};

// Says what became of the traces of a run, and that they agree with its result.
std::string TracesText(const RequestTracer& tracer, const LoadResult& result) {
  const Histogram& roots = tracer.roots();
  // In a closed loop a request is sent when it is due.
  const Histogram& sent = result.plan.closed() ? result.all : result.since_sent;
  const observe::TracerStats stats = tracer.stats();
  std::string text =
      absl::StrFormat("traces        root spans of %d of %d requests", roots.count(), sent.count());
  if (const uint64_t lost = stats.full + stats.backlog + stats.refused; lost > 0)
    absl::StrAppendFormat(&text, "; %d spans were lost", lost);
  for (const double percent : {50.0, 99.0, 99.9}) {
    if (roots.empty() || sent.empty()) break;
    const double root = InMillis(roots.Percentile(percent)), generator = InMillis(sent.Percentile(percent));
    absl::StrAppendFormat(&text, "\n  p%-11g %.3f ms by root spans, %.3f ms since sent: %+.2f %%", percent,
                          root, generator, generator > 0 ? (root / generator - 1) * 100 : 0.0);
  }
  return text + "\n";
}

absl::StatusOr<LoadResult> LoadTest::RunOnce(int number, std::optional<double> rate,
                                             const std::string& label) {
  const uint64_t seed = flags_.seed + static_cast<uint64_t>(number);
  // The first run's is there already.
  absl::StatusOr<std::shared_ptr<const Workload>> workload = std::exchange(first_, nullptr);
  if (number > 0) workload = workloads_(seed);
  if (!workload.ok()) return workload.status();
  Live live;
  RunOptions options = setup_.options;
  options.live = &live;
  if (setup_.start_at) options.start_at = *setup_.start_at + number * setup_.between_starts;
  if (number > 0 && options.drawn_metadata != nullptr) {
    if (absl::Status status = SetMetadata(flags_, seed, &options); !status.ok()) return status;
  }
  std::unique_ptr<RequestTracer> tracer;
  if (!flags_.trace_to.empty()) {
    auto started = RequestTracer::Start({.to = flags_.trace_to, .sample = flags_.trace_sample});
    if (!started.ok())
      return absl::Status(started.status().code(), absl::StrCat("--trace-to: ", started.status().message()));
    tracer = *std::move(started);
    options.tracer = tracer.get();
  }
  ConfigWatch watch(flags_.admin, &live);
  const Nanos length = options.warmup + setup_.duration;
  // A number of requests ends before the length does.
  const ProgressLine line(&console_, &live, label, flags_.requests > 0 ? Nanos::zero() : length,
                          [&] { return watch.Text(); });
  const double total_s = flags_.requests > 0 ? 0 : std::chrono::duration<double>(length).count();
  const LiveRunFile shown(targets_.run_folder,
                          {.command = flags_.command, .label = label, .total_s = total_s}, &live);
  std::optional<RateCurve> curve = setup_.curve;
  if (curve) {
    absl::StatusOr<RateCurve> other = *curve;
    if (rate) other = RateCurve::Constant(*rate, length);
    if (!rate && number > 0 && ShapeIsDrawn(flags_.schedule)) other = MakeCurve(flags_, options.warmup, seed);
    if (!other.ok()) return other.status();
    curve = *std::move(other);
  }
  absl::StatusOr<LoadResult> result = RunShares(options, **workload, curve, seed);
  if (result.ok()) {
    watch.Fill(result->series);
    result->plan.seed = seed;
    traces_ = tracer != nullptr ? TracesText(*tracer, *result) : "";
  }
  return result;
}

absl::StatusOr<LoadResult> LoadTest::RunShares(const RunOptions& options, const Workload& workload,
                                               const std::optional<RateCurve>& curve, uint64_t seed) const {
  const int threads = flags_.threads, senders = threads * setup_.share.of;
  const auto run = [&](int thread, Live* live) -> absl::StatusOr<LoadResult> {
    const int sender = threads * (setup_.share.number - 1) + thread;
    RunOptions own = options;
    own.live = live;
    own.threads = static_cast<uint64_t>(senders);
    own.thread = static_cast<uint64_t>(sender);
    own.requests = ShareOf(options.requests, sender, senders);
    if (!curve) {
      const uint64_t share = ShareOf(static_cast<uint64_t>(flags_.closed), sender, senders);
      return RunClosedLoop(own, workload, static_cast<int>(share), setup_.duration);
    }
    absl::StatusOr<RateCurve> share = *curve;
    if (senders > 1) share = curve->Scaled(1.0 / senders, 1);
    if (!share.ok()) return share.status();
    const absl::StatusOr<Schedule> schedule =
        Schedule::Make(*std::move(share), setup_.gaps, seed + own.thread * kSeedOfSender);
    if (!schedule.ok()) return schedule.status();
    return RunOpenLoop(own, workload, *schedule);
  };
  if (senders == 1) return run(0, options.live);
  const absl::StatusOr<std::vector<LoadResult>> parts = RunThreads(threads, run, options.live);
  if (!parts.ok()) return parts.status();
  LoadSetup whole = setup_;
  whole.curve = curve;
  const absl::StatusOr<LoadPlan> plan = PlanOf(flags_, whole, workload);
  if (!plan.ok()) return plan.status();
  return JoinResults(*plan, *parts);
}

absl::Status LoadTest::WriteAll(const LoadReport& report) const {
  absl::Status written = WriteResults(flags_, report, origin_, console_);
  if (!flags_.raw.empty()) written.Update(WriteResult(flags_.raw, requests_.Csv(), console_));
  return written;
}

int LoadTest::Repeat() {
  LoadReport report;
  for (const Threshold& threshold : setup_.thresholds) report.thresholds.push_back(threshold.text);
  for (int run = 0; run == 0 || (run < flags_.repeat && !stop_); ++run) {
    const std::string label =
        flags_.repeat == 1 ? "load" : absl::StrFormat("run %d/%d", run + 1, flags_.repeat);
    absl::StatusOr<LoadResult> result = RunOnce(run, std::nullopt, label);
    if (!result.ok()) {
      if (report.runs.empty()) return FailLoad(console_, ExplainUnknown(flags_, targets_, result.status()));
      // The measurement is not lost.
      console_.Error(std::string(result.status().message()), HintFor(result.status()));
      break;
    }
    if (flags_.repeat > 1) console_.Print(console_.Bold(absl::StrFormat("run %d\n", run + 1)));
    console_.Print(absl::StrCat(SummaryText(*result), traces_));
    if (targets_.http && result->sent > 0 && result->ok == 0 && !result->interrupted)
      console_.Print("WARNING       no request succeeded: is this the right URL?\n");
    report.runs.push_back(*std::move(result));
  }
  if (report.runs.size() > 1) console_.Print(BetweenRunsText(report));
  const int verdict = CheckThresholds(report, console_);
  if (absl::Status status = WriteAll(report); !status.ok()) return FailWriting(console_, status);
  if (stop_) return kInterrupted;
  if (report.runs.size() < static_cast<size_t>(flags_.repeat)) return kFailed;
  if (!report.valid()) return kVoid;
  return verdict;
}

int ExitCodeOf(const RateSearch& search) {
  switch (search.end()) {
    case RateSearch::End::kConverged:
    case RateSearch::End::kHighestAccepted:
      return kOk;
    case RateSearch::End::kGeneratorLimit:
      return kVoid;
    case RateSearch::End::kNothingAccepted:
      return search.generator_refused() ? kVoid : kThreshold;
    case RateSearch::End::kRunning:
    case RateSearch::End::kOutOfTrials:
      break;
  }
  return kFailed;
}

int LoadTest::FindMax(const std::vector<Threshold>& conditions) {
  RateSearch search({.start_per_s = flags_.rps, .lowest_per_s = std::min(1.0, flags_.rps)});
  std::map<double, LoadReport> runs;  // by rate
  absl::Status failure;
  std::string void_because;
  while (search.Next() && !stop_) {
    const double rate = *search.Next();
    const int number = static_cast<int>(search.trials().size());
    absl::StatusOr<LoadResult> result = RunOnce(number, rate, absl::StrFormat("%g/s", rate));
    if (!result.ok()) failure = result.status();
    if (!result.ok() || result->interrupted) break;
    std::string why;
    const TrialOutcome outcome = JudgeTrial(*result, conditions, &why);
    const char* const word = outcome == TrialOutcome::kMet    ? "holds"
                             : outcome == TrialOutcome::kVoid ? "void"
                                                              : "fails";
    console_.Print(absl::StrFormat("trial %-4d %10.1f/s  %-6s %s\n", number + 1, rate, word, why));
    runs[rate].runs.push_back(*std::move(result));
    if (outcome == TrialOutcome::kVoid) void_because = why;
    search.Tell(outcome);
  }
  const bool nothing = search.trials().empty();
  if (nothing && !failure.ok()) return FailLoad(console_, ExplainUnknown(flags_, targets_, failure));
  // The result until then is not lost.
  const std::optional<double> highest = search.highest();
  console_.Print(absl::StrCat(
      console_.Bold("highest rate"), "  ",
      search.Next() ? absl::StrCat("not found: the search was cut short",
                                   highest ? absl::StrFormat(", above %g a second", *highest) : "")
                    : search.Describe(),
      search.generator_refused() && !void_because.empty() ? absl::StrCat(" (", void_because, ")") : "",
      "\n"));
  if (highest) {
    if (absl::Status status = WriteAll(runs[*highest]); !status.ok()) return FailWriting(console_, status);
  }
  if (!failure.ok()) return FailLoad(console_, failure);
  return stop_ ? kInterrupted : ExitCodeOf(search);
}

// INVALID_ARGUMENT if a condition is of a step, a method or checks that the plan does not have.
absl::Status CheckParts(const char* flag, const std::vector<Threshold>& thresholds, const LoadPlan& plan) {
  for (const Threshold& t : thresholds) {
    if (t.metric == "checks" && plan.checks.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": '", t.text, "' is about checks, and there are none: add --check '.FIELD == VALUE'"));
    }
    const std::vector<std::string>& parts = plan.steps.empty() ? plan.methods : plan.steps;
    if (t.part.empty() || absl::c_linear_search(parts, t.part)) continue;
    return absl::InvalidArgumentError(
        parts.empty()
            ? absl::StrCat(flag, ": '", t.part, "' needs --journey, or a mix of methods; write ", t.metric)
            : absl::StrCat(flag, ": there is no step or method '", t.part, "'",
                           internal::NamesHint(t.part, parts)));
  }
  return absl::OkStatus();
}

int ListMethods(const LoadFlags& flags, const LoadTargets& targets, Console& console) {
  if (targets.http) {
    return FailLoad(console,
                    absl::InvalidArgumentError("--list: lists methods of gRPC; HTTP has no such list"));
  }
  const absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
  if (!catalog.ok()) return FailLoad(console, catalog.status());
  for (const CatalogMethod& method : catalog->ListMethods()) {
    console.Print(absl::StrFormat("%s(%s%s) returns (%s%s)\n", method.path.substr(1),
                                  method.client_streaming ? "stream " : "", method.request_type,
                                  method.server_streaming ? "stream " : "", method.reply_type));
  }
  return kOk;
}

// --debug: one call, or a journey with the reply to its last step. The reply is printed as JSON where its type is known, and otherwise as bytes.
int ShowOneCall(const LoadFlags& flags, const LoadTargets& targets, const RunOptions& options,
                const Workload& workload, Console& console) {
  const absl::StatusOr<Answer> answer = CallOnce(options, workload);
  if (!answer.ok()) {
    if (const absl::Status unknown = ExplainUnknown(flags, targets, answer.status());
        unknown != answer.status())
      return FailLoad(console, unknown);
    // The server's own words need no hint of ours; what we say of it names its address.
    const bool ours = absl::IsUnavailable(answer.status()) &&
                      absl::StrContains(answer.status().message(), targets.addresses.front());
    console.Error(absl::StrCat(CodeName(answer.status()), ": ", answer.status().message()),
                  ours ? HintFor(answer.status()) : "");
    return kFailed;
  }
  console.Note(absl::StrFormat("OK, %d bytes, %.3f ms with connecting", answer->reply.size(),
                               static_cast<double>(answer->took.count()) / 1e6));
  if (options.http) {
    console.Print(absl::StrCat(answer->reply, absl::EndsWith(answer->reply, "\n") ? "" : "\n"));
    console.Print(DebugChecks(options, answer->reply));
    return kOk;
  }
  const Journey* const journey = workload.journey();
  const absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
  const absl::StatusOr<CatalogMethod> method =
      catalog.ok() ? catalog->FindMethod(journey != nullptr ? journey->StepMethod(journey->steps() - 1)
                                                            : workload.MethodOf(0),
                                         flags.stream > 0)
                   : absl::StatusOr<CatalogMethod>(catalog.status());
  const absl::StatusOr<std::string> json =
      method.ok() ? ReplyToJson(*method, answer->reply) : absl::StatusOr<std::string>(method.status());
  console.Print(json.ok() ? absl::StrCat(absl::StripTrailingAsciiWhitespace(*json), "\n")
                          : absl::StrCat(absl::BytesToHexString(answer->reply), "\n"));
  console.Print(DebugChecks(options, answer->reply));
  return kOk;
}

}  // namespace

int RunLoad(const LoadFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (flags.kubernetes) return RunClusterLoad(flags, console, stop);
  LoadFlags given = flags;
  if (absl::Status status = DrawPaths(&given); !status.ok()) return FailLoad(console, status);
  const absl::StatusOr<LoadTargets> targets = MakeTargets(given);
  if (!targets.ok()) return FailLoad(console, targets.status());
  if (given.list) return ListMethods(given, *targets, console);
  if (given.debug && given.rps <= 0 && given.closed <= 0 && given.schedule.empty()) given.closed = 1;
  absl::StatusOr<LoadSetup> setup = MakeSetup(given, *targets);
  if (!setup.ok()) return FailLoad(console, setup.status());
  if (absl::Status status = SetStream(given, *targets, &setup->options); !status.ok())
    return FailLoad(console, status);
  if (absl::Status status = SetRetries(given, *targets, &setup->options); !status.ok())
    return FailLoad(console, status);
  if (absl::Status status = CheckOutputs(given, console); !status.ok()) return FailLoad(console, status);
  const absl::StatusOr<WorkloadMaker> workloads = MakeWorkloads(given, *targets, !console.shows_progress());
  if (!workloads.ok()) return FailLoad(console, workloads.status());
  absl::StatusOr<std::shared_ptr<const Workload>> first = (*workloads)(given.seed);
  if (!first.ok()) return FailLoad(console, first.status());
  if (absl::Status status = SetChecks(given, *targets, **first, &setup->options); !status.ok())
    return FailLoad(console, status);
  if (const Journey* journey = (*first)->journey(); journey != nullptr) AllowForJourney(*journey, &*setup);
  if (given.debug) return ShowOneCall(given, *targets, setup->options, **first, console);
  const absl::StatusOr<LoadPlan> plan = PlanOf(given, *setup, **first);
  if (!plan.ok()) return FailLoad(console, plan.status());
  for (const auto& [flag, conditions] :
       {std::pair("--fail-if", &setup->thresholds), std::pair("--find-max", &setup->find_max)}) {
    if (absl::Status status = CheckParts(flag, *conditions, *plan); !status.ok())
      return FailLoad(console, status);
  }
  console.PrintWrapped(absl::StrCat(console.Bold("load"), " ", PlanText(*plan), "\n"));
  if (given.dry_run) return kOk;
  if (absl::Status admin = CheckAdmin(given.admin); !admin.ok()) return FailLoad(console, admin, "");
  if (setup->start_at)
    console.Note(absl::StrFormat("the run starts in %.1f s", InSeconds(*setup->start_at - Now())));
  const std::vector<Threshold> find_max = setup->find_max;
  LoadTest test(given, *std::move(setup), *workloads, *std::move(first), *targets, console, stop);
  return find_max.empty() ? test.Repeat() : test.FindMax(find_max);
}

}  // namespace curtail::tool
