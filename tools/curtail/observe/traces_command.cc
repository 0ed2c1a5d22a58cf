// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/traces_command.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/clock.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/term/exit_code.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/observe/page_reader.h"
#include "tools/curtail/observe/traces_report.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

// A process keeps its latest 128 spans.
constexpr Nanos kTracesEvery = std::chrono::milliseconds(200);
constexpr Nanos kTracesTime = std::chrono::milliseconds(500);

bool IsSpanFile(std::string_view source) {
  return source.find('/') != std::string_view::npos || source.ends_with(".json");
}

absl::Status ReadSpanFile(const std::string& path, observe::TraceRecords* records) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, observe::TraceRecords::kMostDocument);
  if (!text.ok()) return text.status();
  const absl::Status added = records->Add(*text);
  if (added.ok()) return added;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", added.message()));
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
      return absl::FailedPreconditionError(absl::StrCat("no service of ", flags.source,
                                                        " has traces: start it by curtail up ", flags.source,
                                                        " --trace-to memory --trace-sample 1"));
    }
    if (!read.ok()) return read;
    report->seconds = InSeconds(Now() - begun);
    if (Now() >= end || !WaitUntil(std::min(next + kTracesEvery, end), stop)) return absl::OkStatus();
  }
}

}  // namespace

int RunTraces(const TracesFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (flags.json == "-") console.print_to_stderr();
  absl::Status fine = CheckWritable(flags.json);
  Nanos slow{0};
  if (fine.ok() && !flags.slow.empty()) {
    const absl::StatusOr<Nanos> limit = ParseDuration(flags.slow);
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
  if (!read.ok()) return AdminFailure(read, "", console);
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

}  // namespace curtail::tool
