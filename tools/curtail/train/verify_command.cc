// SPDX-License-Identifier: Apache-2.0
//
// `curtail verify`: whether a profile chooses well at loads that it was not trained at.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/adapt/verification.h"
#include "curtail/base/strings.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"
#include "tools/curtail/train/profile_file.h"
#include "tools/curtail/train/subject.h"
#include "tools/curtail/train/subject_flags.h"
#include "tools/curtail/train/training_run.h"

namespace curtail::tool {
namespace {

struct VerifyFlags {
  SubjectFlags subject;
  std::string profile;
  bool any_machine = false;
  std::string loads;  // empty: between trained ones
  int count = 6;      // of those
  int search = 3;
  int duels = 5;
  double seconds = 2;    // of a cell
  double max_loss = 10;  // percent
  bool quick = false;
  bool dry_run = false;
};

constexpr Nanos kWarmup = std::chrono::milliseconds(300);
// A p99 of few requests says little: low loads take longer, up to four times.
constexpr double kWantedRequests = 300;
constexpr double kMaxStretch = 4;

absl::StatusOr<Verification> MakeVerification(const VerifyFlags& flags, const Profile& profile) {
  VerificationOptions options{.count = flags.count,
                              .search_repeats = flags.search,
                              .duel_rounds = flags.duels,
                              .max_loss = flags.max_loss / 100};
  if (!flags.loads.empty()) {
    absl::StatusOr<std::vector<double>> loads = ParseRates(flags.loads);
    if (!loads.ok()) return absl::InvalidArgumentError(Join("--loads: ", Message(loads.status())));
    options.loads = *std::move(loads);
  }
  return Verification::Make(profile, nullptr, options);
}

Nanos CellLength(const VerifyFlags& flags, double load_per_s) {
  const double wanted = std::min(kWantedRequests / load_per_s, flags.seconds * kMaxStretch);
  return Nanos(static_cast<int64_t>(std::max(flags.seconds, wanted) * 1e9));
}

absl::Status Measure(const VerifyFlags& flags, Subject& subject, Verification& verification,
                     Console& console) {
  size_t rows = 0;
  while (const std::optional<VerificationCell> cell = verification.Next()) {
    console.Progress(absl::StrFormat("%s at %g/s: %s, round %d; %d cells left at most",
                                     cell->stage == VerificationStage::kSearch ? "search" : "duel",
                                     cell->load_per_s, cell->config.ToString(), cell->round + 1,
                                     verification.left_at_most()));
    const absl::StatusOr<ProfileCell> measured = subject.Measure(
        cell->config, cell->load_per_s, kWarmup, CellLength(flags, cell->load_per_s), cell->seed);
    if (!measured.ok()) return measured.status();
    verification.Tell(measured->p99_us, measured->saturated);
    if (verification.rows().size() == rows || console.shows_progress()) continue;
    const VerificationRow& row = verification.rows()[rows++];
    console.Note(absl::StrFormat("%g/s: chosen %s, best %s, ratio %.2f: %s", row.load_per_s,
                                 row.chosen.ToString(), row.best.ToString(), row.ratio,
                                 std::string(VerdictName(row.verdict))));
  }
  console.Progress({});
  return absl::OkStatus();
}

// Runs it. Returns the exit code: 99 when the chosen config loses more than max_loss somewhere.
int RunVerify(const VerifyFlags& given, Console& console, const std::atomic<bool>& stop) {
  VerifyFlags flags = given;
  std::vector<std::string>& targets = flags.subject.load.targets;
  if (flags.profile.empty() && targets.size() > 1) {
    flags.profile = targets.back();
    targets.pop_back();
  }
  if (flags.profile.empty()) {
    return FailWith(
        console, absl::InvalidArgumentError("name the profile, as in: curtail verify hdsearch profile.json"),
        "verify", nullptr);
  }
  if (absl::Status target = CheckTarget(flags.subject); !target.ok()) {
    return FailWith(console, target, "verify", nullptr);
  }
  if (flags.quick) {  // what was given stays
    const VerifyFlags usual;
    if (flags.count == usual.count) flags.count = 3;
    if (flags.search == usual.search) flags.search = 1;
    if (flags.duels == usual.duels) flags.duels = 3;
    if (flags.seconds == usual.seconds) flags.seconds = 0.5;
  }
  const absl::StatusOr<Profile> profile = ReadProfileFile(flags.profile, flags.any_machine);
  if (!profile.ok()) return FailWith(console, profile.status(), "verify", nullptr);
  const auto of_another = [&](const std::string& service) {
    return FailWith(console,
                    absl::InvalidArgumentError(absl::StrCat("the profile is of ", profile->service,
                                                            ", and the target is ", service)),
                    "verify", nullptr);
  };
  // Of an application this is known before it starts.
  if (targets.size() == 1 && apps::IsApplication(targets.front())) {
    const auto application = apps::MakeApplication(targets.front(), flags.subject.application);
    if (application.ok() && (*application)->service != profile->service)
      return of_another((*application)->service);
  }
  absl::StatusOr<Verification> verification = MakeVerification(flags, *profile);
  if (!verification.ok()) return FailWith(console, verification.status(), "verify", nullptr);
  console.PrintWrapped(absl::StrFormat("%s   %s of %s, trained %s; held-out loads %s; %d cells at most\n",
                                       console.Bold("verify"), flags.profile, profile->service,
                                       profile->created, absl::StrJoin(verification->loads(), ", "),
                                       verification->left_at_most()));
  console.Print(ProfileSummary(*profile));
  if (flags.dry_run) return kOk;
  absl::StatusOr<std::unique_ptr<Subject>> subject = Subject::Make(flags.subject, console, stop);
  if (!subject.ok()) return stop ? kInterrupted : FailWith(console, subject.status(), "verify", nullptr);
  if ((*subject)->service() != profile->service) return of_another((*subject)->service());
  const absl::Status status = Measure(flags, **subject, *verification, console);
  console.Print(VerificationText(verification->rows()));
  if (absl::IsCancelled(status)) {
    console.Print("INTERRUPTED: the table is partial\n");
    return kInterrupted;
  }
  if (!status.ok()) return FailWith(console, status, "verify", subject->get());
  if ((*subject)->disturbed() > 0) {
    console.Note(absl::StrCat("in ", (*subject)->disturbed(), " of ", verification->done(),
                              " cells the generator was late itself: a busy machine"));
  }
  if (verification->passed()) return kOk;
  const auto rows = verification->rows();
  const bool lost = std::any_of(rows.begin(), rows.end(), [](const VerificationRow& row) {
    return row.verdict == VerificationVerdict::kLoses;
  });
  console.Print(
      lost ? absl::StrFormat("FAILED: the chosen config loses more than %g %% somewhere; train again\n",
                             flags.max_loss)
           : "FAILED: no config keeps up with any of these loads, so there was nothing to choose\n");
  return kThreshold;
}

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

}  // namespace

Command AddVerify(CLI::App& app) {
  const auto f = std::make_shared<VerifyFlags>();
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
  return {command, [f](const Invocation& given) { return RunVerify(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
