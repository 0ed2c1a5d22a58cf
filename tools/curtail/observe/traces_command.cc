// SPDX-License-Identifier: Apache-2.0
//
// `curtail traces`: where the time of requests goes, by the spans of all services.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/shipped/application.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/output_path.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/observe/page_reader.h"
#include "tools/curtail/observe/traces_report.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

struct TracesFlags {
  std::string source;  // an application that is up, or a file of spans
  double seconds = 5;
  std::string slow;  // a duration; empty: the slowest tenth
  std::string json;  // "-": the standard output; else a path; empty: none
};

// A process keeps its latest 128 spans.
constexpr Nanos kTracesEvery = std::chrono::milliseconds(200);
constexpr Nanos kTracesTime = std::chrono::milliseconds(500);

bool IsSpanFile(std::string_view source) {
  return source.find('/') != std::string_view::npos || source.ends_with(".json");
}

// Errors: INVALID_ARGUMENT for an address, and for a file or folder that has no spans by its name.
absl::Status CheckSource(const std::string& source) {
  if (IsAddress(source)) {
    return absl::InvalidArgumentError(absl::StrCat("traces takes an application or a file; save http://",
                                                   source, "/traces as FILE.json and give that"));
  }
  std::error_code error;
  if (!std::filesystem::exists(source, error) || IsUp(source)) return absl::OkStatus();
  if (std::filesystem::is_directory(source, error))
    return absl::InvalidArgumentError(absl::StrCat(source, " is a folder; name a file of spans"));
  if (source.ends_with(".json")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(source, ": the name of a file of spans ends in .json"));
}

absl::Status ReadSpanFile(const std::string& path, observe::TraceRecords* records) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, observe::TraceRecords::kMostDocument);
  if (!text.ok()) return text.status();
  const absl::Status added = records->Add(*text);
  if (!added.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", added.message()));
  if (!records->calls().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has no spans; save what /traces of a service returns"));
}

// Adds the spans that the processes have now. NOT_FOUND if none of them has traces.
absl::Status ReadSpansOnce(const std::vector<ProcessState>& processes, const std::atomic<bool>& stop,
                           observe::TraceRecords* records) {
  std::vector<PageWanted> wanted;
  for (const ProcessState& process : processes) wanted.push_back({process.http_admin, "/traces"});
  const auto pages = ReadPages(wanted, Deadline::In(kTracesTime), &stop);
  absl::Status why = absl::NotFoundError("");
  for (size_t i = 0; i < pages.size(); ++i) {
    if (pages[i].ok()) {
      why = records->Add(*pages[i], processes[i].service, processes[i].name);
      if (!why.ok()) return why;
    } else if (!absl::IsNotFound(pages[i].status()) && absl::IsNotFound(why)) {
      why = absl::OkStatus();  // it may be there again in the next turn
    }
  }
  return why;
}

absl::Status Collect(const TracesFlags& flags, const std::atomic<bool>& stop, observe::TraceRecords* records,
                     TracesReport* report) {
  const TimePoint begun = Now(), end = begun + FromSeconds(flags.seconds);
  for (TimePoint next = begun;; next += kTracesEvery) {
    absl::StatusOr<UpState> state = ReadUpState(flags.source);
    if (!state.ok()) return state.status();
    std::erase_if(state->processes, [](const ProcessState& p) { return p.http_admin.empty() || p.pid <= 0; });
    report->processes = static_cast<int>(state->processes.size());
    const absl::Status read = ReadSpansOnce(state->processes, stop, records);
    if (absl::IsNotFound(read)) {
      return absl::FailedPreconditionError(
          absl::StrCat("no service of ", flags.source, " has traces: start it by curtail up ",
                       apps::IsApplication(flags.source) ? flags.source : "TOPOLOGY.yaml",
                       " --trace-to memory --trace-sample 1"));
    }
    if (!read.ok()) return read;
    report->seconds = InSeconds(Now() - begun);
    if (Now() >= end || !WaitUntil(std::min(next + kTracesEvery, end), stop)) return absl::OkStatus();
  }
}

// Collects spans for some seconds, or until `stop`, joins them, and prints what curtail/observe/trace/trace_analysis.h finds.
// Returns the exit code.
int RunTraces(const TracesFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (internal::IsStdout(flags.json)) console.print_to_stderr();
  absl::Status fine = CheckWritable(flags.json);
  Nanos slow{0};
  if (fine.ok()) fine = CheckSource(flags.source);
  if (fine.ok() && !flags.slow.empty()) {
    const absl::StatusOr<Nanos> limit = DurationOf("--slow", flags.slow);
    if (limit.ok()) slow = *limit;
    fine = limit.status();
  }
  if (!fine.ok()) {
    console.Error(std::string(Message(fine)), "");
    return kBadConfig;
  }
  observe::TraceRecords records;
  TracesReport report{.source = flags.source, .records = &records};
  const absl::Status read = IsSpanFile(flags.source) ? ReadSpanFile(flags.source, &records)
                                                     : Collect(flags, stop, &records, &report);
  if (!read.ok()) return LookFailure(read, console);
  report.analysis = AnalyzeTraces(records, slow.count());
  console.Print(TracesText(report));
  if (!flags.json.empty()) {
    if (const absl::Status written = console.DeliverTo(flags.json, TracesJson(report)); !written.ok()) {
      console.Error(std::string(Message(written)), "");
      return kFailed;
    }
  }
  return stop.load(std::memory_order_relaxed) ? kInterrupted : kOk;
}

}  // namespace

Command AddTraces(CLI::App& app) {
  const auto f = std::make_shared<TracesFlags>();
  CLI::App* command = app.add_subcommand(
      "traces",
      "Where the time goes: network, queues, handlers; critical paths; which service makes requests slow");
  command->add_option("TARGET", f->source, "APP that is up, or a FILE.json of spans")->required();
  command->add_option("--seconds", f->seconds, "Collect spans for so long")
      ->check(Between(0, 86400))
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
  return {command, [f](const Invocation& given) { return RunTraces(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
