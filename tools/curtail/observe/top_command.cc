// SPDX-License-Identifier: Apache-2.0
//
// `curtail top`: the load, latency and resources of each service of an application, once a second.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "curtail/base/clock.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/observe/top_table.h"
#include "tools/curtail/observe/vitals.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/table.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

struct TopFlags {
  std::string application;
  double seconds = 0;  // 0: until it is ended
  std::string sort = "cpu";
  bool json = false;  // a line a second
};

constexpr Nanos kTopEvery = std::chrono::seconds(1);

TopPage PageOf(const ApplicationVitals& before, const ApplicationVitals& now, const std::string& sort) {
  TopPage page{.application = now.application,
               .time = absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()),
               .services = Compare(before, now),
               .edges = CompareEdges(before, now)};
  SortServices(sort, &page.services);
  return page;
}

// One run: looks once a second and shows the difference to the look before.
class Top {
 public:
  Top(const TopFlags& flags, Console& console, const std::atomic<bool>& stop)
      : flags_(flags), console_(console), stop_(stop) {}

  // OK once it is over; else why there is nothing more to show.
  absl::Status Run();

 private:
  absl::Status Show(bool first);
  // False: it is to end.
  bool Wait(TimePoint until);

  const TopFlags& flags_;
  Console& console_;
  const std::atomic<bool>& stop_;
  std::optional<Screen> screen_;
  ApplicationVitals latest_;
  TimePoint looked_;
  TopPage page_;
};

absl::Status Top::Run() {
  absl::StatusOr<ApplicationVitals> vitals = LookAt(flags_.application, stop_);
  if (!vitals.ok()) return vitals.status();
  latest_ = *std::move(vitals);
  const TimePoint begun = looked_ = Now();
  const TimePoint end = flags_.seconds > 0 ? begun + FromSeconds(flags_.seconds) : TimePoint::max();
  if (!flags_.json && console_.has_terminal()) screen_.emplace(console_.colour());
  page_ = PageOf(latest_, latest_, flags_.sort);
  if (screen_) screen_->Draw(TopLines(page_, screen_->size()));
  absl::Status shown;
  for (int turn = 1; shown.ok() && looked_ < end; ++turn) {
    if (!Wait(std::min(begun + turn * kTopEvery, end))) break;
    shown = Show(turn == 1);
  }
  if (!screen_) return shown;
  screen_.reset();
  console_.Print(PlainText(TopLines(page_, {.columns = 0, .lines = 0})));
  return shown;
}

absl::Status Top::Show(bool first) {
  absl::StatusOr<ApplicationVitals> vitals = LookAt(flags_.application, stop_);
  if (!vitals.ok()) return absl::FailedPreconditionError(vitals.status().message());  // the name was right
  const TimePoint now = Now();
  page_ = PageOf(latest_, *vitals, flags_.sort);
  if (screen_) {
    screen_->Draw(TopLines(page_, screen_->size()));
  } else if (flags_.json) {
    const int64_t unix_ms = absl::ToUnixMillis(absl::Now());
    if (absl::Status told = console_.Deliver(TopJson(page_, unix_ms, InSeconds(now - looked_))); !told.ok()) {
      return told;
    }
  } else {
    console_.Print(absl::StrCat(first ? "" : "\n", PlainText(TopLines(page_, {.columns = 0, .lines = 0}))));
  }
  latest_ = *std::move(vitals);
  looked_ = now;
  return absl::OkStatus();
}

bool Top::Wait(TimePoint until) {
  if (!screen_) return WaitUntil(until, stop_);
  while (true) {
    switch (screen_->Wait(until, stop_)) {
      case Screen::Event::kTime:
        return true;
      case Screen::Event::kQuit:
        return false;
      case Screen::Event::kResized:
        screen_->Draw(TopLines(page_, screen_->size()));
    }
  }
}

// Fills a terminal, else prints a block a second; on a terminal the last one stays when it ends. Ends with `stop`, with
// the key q, and with the application. Returns the exit code.
int RunTop(const TopFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (const std::string wrong = NotAnApplication("top", flags.application); !wrong.empty()) {
    console.Error(wrong, "");
    return kBadConfig;
  }
  const absl::Status ended = Top(flags, console, stop).Run();
  if (!ended.ok()) return LookFailure(ended, console);
  return stop.load(std::memory_order_relaxed) ? kInterrupted : kOk;
}

}  // namespace

Command AddTop(CLI::App& app) {
  const auto f = std::make_shared<TopFlags>();
  CLI::App* command =
      app.add_subcommand("top", "Load, latency, errors and resources of each service, once a second");
  command->add_option("APP", f->application, "Its name")->required();
  command->add_option("--seconds", f->seconds, "For so long [until Ctrl-C, or the key q]")
      ->check(Between(0.1, 1e7));
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
  return {command, [f](const Invocation& given) { return RunTop(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
