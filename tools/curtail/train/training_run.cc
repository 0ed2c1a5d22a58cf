// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/training_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/adapt/envelope.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"

namespace curtail::tool {
namespace {

// "25 min", "40 s".
std::string CellText(const TrainingPoint& point) {
  switch (point.state) {
    case TrainingPoint::State::kUntouched:
      return ".";
    case TrainingPoint::State::kStopped:
      return "-";
    case TrainingPoint::State::kSaturated:
      return "sat";
    case TrainingPoint::State::kMeasured:
      break;
  }
  const double ms = point.p99_us / 1e3;
  return ms < 10 ? absl::StrFormat("%.2f", ms) : absl::StrFormat("%.0f", ms);
}

std::string StatusLine(const Training& training, const TrainingCell& cell) {
  const TrainingProgress progress = training.Progress();
  const size_t total = progress.done + progress.skipped + progress.left_at_most;
  return absl::StrFormat("training %d of %d cells at most, about %s left: repeat %d/%d, %g/s, %s\n",
                         progress.done + progress.skipped, total, AboutText(progress.time_left_expected),
                         cell.repeat + 1, training.plan().repeats, cell.load_per_s, cell.config.ToString());
}

}  // namespace

std::string AboutText(Nanos t) {
  const double s = InSeconds(t);
  if (s < 10) return absl::StrFormat("%.2g s", s);
  return s < 120 ? absl::StrFormat("%.0f s", s) : absl::StrFormat("%.0f min", s / 60);
}

absl::StatusOr<std::string> LeaveOutRefused(Subject& subject, std::vector<Config>& configs) {
  std::string left_out;
  std::vector<Config> taken;
  for (const Config& config : configs) {
    const absl::Status status = subject.SwitchTo(config);
    if (status.ok()) {
      taken.push_back(config);
    } else if (absl::IsInvalidArgument(status)) {
      absl::StrAppend(&left_out, left_out.empty() ? "" : ", ", config.ToString());
    } else {
      return status;
    }
  }
  configs = std::move(taken);
  return left_out;
}

std::string TrainingGrid(const Training& training) {
  const TrainingPlan& plan = training.plan();
  std::string text = absl::StrFormat("%-10s", "p99, ms");
  for (const double load : plan.loads) absl::StrAppendFormat(&text, " %6g", load);
  text += "/s\n";
  for (size_t config = 0; config < plan.configs.size(); ++config) {
    absl::StrAppendFormat(&text, "%-10s", plan.configs[config].ToString());
    for (size_t load = 0; load < plan.loads.size(); ++load) {
      absl::StrAppendFormat(&text, " %6s", CellText(training.At(config, load)));
    }
    text += "\n";
  }
  return text;
}

absl::Status RunTraining(Subject& subject, Training& training, Console& console,
                         const std::function<absl::Status(const ProfileCell&)>& keep) {
  std::optional<TrainingCell> last;
  while (const std::optional<TrainingCell> cell = training.Next()) {
    // Where there is no terminal to draw on, a line now and then says that it goes on.
    const bool next_load = !last || last->load_index != cell->load_index || last->repeat != cell->repeat;
    if (console.shows_progress()) {
      console.Progress(StatusLine(training, *cell) + TrainingGrid(training));
    } else if (next_load) {
      const std::string line = StatusLine(training, *cell);
      console.Note(std::string_view(line).substr(0, line.rfind(',')));
    }
    last = cell;
    absl::StatusOr<ProfileCell> measured =
        subject.Measure(cell->config, cell->load_per_s, training.plan().warmup, cell->length, cell->seed);
    if (!measured.ok()) return measured.status();
    measured->repeat = cell->repeat;
    if (absl::Status told = training.Tell(*measured); !told.ok()) return told;
    if (absl::Status kept = keep(*measured); !kept.ok()) return kept;
  }
  console.Progress({});
  return absl::OkStatus();
}

std::string ProfileSummary(const Profile& profile) {
  const absl::StatusOr<Envelope> envelope = Envelope::Make(profile);
  if (!envelope.ok()) return Join(Message(envelope.status()), "\n");
  std::string text = "chosen\n";
  for (const Envelope::Piece& piece : envelope->pieces()) {
    const Config& config = envelope->configs()[piece.config];
    absl::StrAppendFormat(&text, "  from %6.0f/s  %s\n", piece.from_per_s, config.ToString());
  }
  size_t points = 0;
  size_t unstable = 0;
  for (const ConfigSummary& config : profile.configs) {
    for (const ProfilePoint& point : config.points) {
      ++points;
      unstable += point.unstable;
    }
  }
  absl::StrAppendFormat(&text, "%d of %d points are unstable: their repeats differ by over a quarter\n",
                        unstable, points);
  return text;
}

}  // namespace curtail::tool
