// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/verify_command.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/adapt/verification.h"
#include "curtail/base/strings.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/train/profile_file.h"
#include "tools/curtail/train/training_run.h"

namespace curtail::tool {
namespace {

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

}  // namespace

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
  if ((*subject)->service() != profile->service) {
    return FailWith(console,
                    absl::InvalidArgumentError(absl::StrCat("the profile is of ", profile->service,
                                                            ", and the target is ", (*subject)->service())),
                    "verify", nullptr);
  }
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

}  // namespace curtail::tool
