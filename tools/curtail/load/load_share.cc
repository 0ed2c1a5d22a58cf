// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_share.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace curtail::tool {
namespace {

constexpr int kMaxShares = 1000;
constexpr Nanos kLatestStart = std::chrono::hours(24);
// From the longest end of a run to the start of the next: its connections, and what the machine has to write.
constexpr Nanos kBetweenRuns = std::chrono::seconds(5);

absl::Status CheckSenders(const LoadFlags& flags, uint64_t senders) {
  if (senders == 1) return absl::OkStatus();
  if (flags.arrivals == "constant" && flags.closed == 0) {
    return absl::InvalidArgumentError(
        "--arrivals: several senders would send at the same moments; leave --arrivals constant, or --threads "
        "and --share, out");
  }
  const char* const least = flags.share.empty() ? "--threads" : "--threads times the shares";
  for (const auto& [flag, count] : {std::pair("--closed", static_cast<uint64_t>(std::max(flags.closed, 0))),
                                    std::pair("--requests", flags.requests)}) {
    if (count > 0 && count < senders)
      return absl::InvalidArgumentError(absl::StrCat(flag, " must be at least ", least, ", ", senders));
  }
  return absl::OkStatus();
}

absl::Status SetStart(const LoadFlags& flags, LoadSetup* setup) {
  const Nanos now = std::chrono::system_clock::now().time_since_epoch();
  const absl::StatusOr<Nanos> start = ParseStartAt(flags.start_at, now);
  if (!start.ok()) return absl::InvalidArgumentError(absl::StrCat("--start-at: ", start.status().message()));
  if (flags.repeat > 1 && flags.requests > 0) {
    return absl::InvalidArgumentError(
        "--start-at: how long a run of -n takes is not known, so its repetitions have no times to start at; "
        "give --duration in place of -n, or leave --repeat out");
  }
  setup->start_at = Now() + (*start - now);
  setup->between_starts = setup->options.warmup + setup->duration + setup->options.timeout + kBetweenRuns;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadShare> ParseShare(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), '/');
  LoadShare share;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &share.number) &&
      absl::SimpleAtoi(parts[1], &share.of) && share.of >= 1 && share.of <= kMaxShares && share.number >= 1 &&
      share.number <= share.of) {
    return share;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(text),
                                                 "' is not a share: write 2/3 for the second of three, of ",
                                                 kMaxShares, " at most"));
}

absl::StatusOr<Nanos> ParseStartAt(std::string_view text, Nanos now) {
  absl::Time time;
  double seconds = 0;
  std::string error;
  const std::string given(text);
  if (absl::SimpleAtod(given, &seconds)) {
    time = absl::FromUnixNanos(0) + absl::Seconds(seconds);
  } else if (!absl::ParseTime(absl::RFC3339_full, given, &time, &error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", given, "' is not a time: write 2026-01-31T12:00:00Z, or the seconds that date +%s prints"));
  }
  const absl::Duration wait = time - absl::FromUnixNanos(now.count());
  if (wait < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(given, " was ",
                                                   absl::FormatDuration(absl::Ceil(-wait, absl::Seconds(1))),
                                                   " ago: choose a later time"));
  }
  if (!(wait <= absl::FromChrono(kLatestStart))) {
    return absl::InvalidArgumentError(absl::StrCat(given, " is more than a day from now"));
  }
  return Nanos(absl::ToUnixNanos(time));
}

absl::Status SetShare(const LoadFlags& flags, LoadSetup* setup) {
  if (!flags.share.empty()) {
    const absl::StatusOr<LoadShare> share = ParseShare(flags.share);
    if (!share.ok()) return absl::InvalidArgumentError(absl::StrCat("--share: ", share.status().message()));
    setup->share = *share;
  }
  if (flags.threads > 1 && (!flags.raw.empty() || !flags.trace_to.empty())) {
    return absl::InvalidArgumentError(
        "--raw and --trace-to are written by one thread: leave them or --threads out");
  }
  const auto senders = static_cast<uint64_t>(flags.threads) * static_cast<uint64_t>(setup->share.of);
  if (absl::Status status = CheckSenders(flags, senders); !status.ok()) return status;
  return flags.start_at.empty() ? absl::OkStatus() : SetStart(flags, setup);
}

void AllowForJourney(const Journey& journey, LoadSetup* setup) {
  const auto later_steps = static_cast<int64_t>(journey.steps() - 1);
  const Nanos pauses = journey.longest_pauses();
  // The last journeys of a run pause in full. Those that check the targets before the next run pause for 1 s at most.
  setup->between_starts += setup->options.timeout * later_steps + pauses +
                           std::min<Nanos>(pauses, later_steps * std::chrono::seconds(1));
}

}  // namespace curtail::tool
