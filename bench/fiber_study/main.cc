// SPDX-License-Identifier: Apache-2.0
//
// fiber_study: what fibers are worth to a service that makes asynchronous calls, against std::async (S. Eyerman and
// I. Hur, "Efficient Asynchronous RPC Calls for Microservices: DeathStarBench Study").
//
// It starts itself as five small services and, once for each variant, as the compose service, whose handler is the
// same in all variants but for the `async` it calls. study.h says how the turns are ordered.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/program.h"
#include "bench/common/scratch.h"
#include "serve.h"
#include "study.h"

namespace {

using namespace curtail;
using namespace curtail::study;

constexpr char kAbout[] =
    "Compares std::async, curtail::async on threads and curtail::async on fibers in a service that "
    "calls others.";
constexpr char kExamples[] =
    R"(A variant is std-CONFIG or curtail-CONFIG; the first is the baseline. Open loads are shares of its peak, those
above 1 are for fibers alone. The report goes to standard output.

Examples:
  fiber_study --quick                                       # under 15 s: that it works, not how fast
  fiber_study --json fibers.json --markdown fibers.md       # about 12 minutes
  fiber_study --variants std-SDB1-16,curtail-FIB1 --loads 0.1,0.5 --rounds 9

Exit codes: 0 ok, 1 something could not be measured or written, 99 a request failed where none may (in a closed loop
or at up to half the baseline's peak), 104 bad flags, 105 interrupted (what was measured is reported).)";

struct Flags {
  std::string variants =
      "std-SDB1-64,curtail-SDB1-64,curtail-FIB1,curtail-FIB2,curtail-FDB1-1,curtail-FDB1-2";
  std::vector<int> outstanding = {16, 64};
  std::vector<double> loads = {0.1, 0.3, 0.5, 0.7, 0.9, 1.5, 2};
  Results results{.part_config = "SIB1"};
  Role role;  // of a process that this program started
};

void AddFlags(CLI::App& app, Flags* f) {
  app.add_option("--variants", f->variants, "What to compare, the baseline first")->capture_default_str();
  app.add_option("--outstanding", f->outstanding, "Requests in flight in closed loops")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--loads", f->loads, "Open loads, as shares of the baseline's peak")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 100.0))
      ->capture_default_str();
  app.add_option("--seconds", f->results.cell_s, "Length of a cell; low loads take up to four times that")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("--connections", f->results.connections, "Of the load generator")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--spin-us", f->results.spin_us,
                 "How long the load generator looks at the clock before a send; lower when CPUs are short")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  app.add_option("--part-config", f->results.part_config, "Threading model of the five services")
      ->capture_default_str();
  bench::AddCommonFlags(
      app, &f->results,
      {.quick = "1 round of 0.2 s a cell, few variants and loads", .seed = "Of the posts and the arrivals"});
  bench::AddRoleFlags(app, &f->role);
}

void MakeQuick(Flags* f) {
  f->variants = "std-SDB1-16,curtail-SDB1-16,curtail-FIB1,curtail-FDB1-1";
  f->outstanding = {16};
  f->loads = {0.1, 0.5};
  f->results.rounds = 1;
  f->results.cell_s = 0.2;
}

int Fail(const absl::Status& status) { return bench::Fail("fiber_study", status); }

absl::Status FillRows(const Flags& flags, Results* results) {
  const absl::StatusOr<std::vector<Variant>> variants =
      bench::ParseVariants(flags.variants, /*calls_async=*/true);
  if (!variants.ok())
    return absl::InvalidArgumentError(absl::StrCat("--variants: ", variants.status().message()));
  if (const auto part = Config::Parse(results->part_config); !part.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--part-config: ", part.status().message()));
  }
  for (const Variant& variant : *variants) results->rows.push_back({variant, {}});
  results->machine = bench::LookAtMachine();
  return absl::OkStatus();
}

void FillLoads(const Flags& flags, Results* results) {
  for (const int n : flags.outstanding) results->loads.push_back({.outstanding = n});
  for (const double share : flags.loads) {
    results->loads.push_back({.share = share, .rate_per_s = share * results->baseline_peak_per_s});
  }
}

absl::Status Run(const Flags& flags, bench::Session& session, Results* results) {
  const bench::ScratchFolder logs;
  if (logs.path().empty()) return absl::InternalError("cannot make a folder for logs; set TMPDIR to one");
  Study study(results, logs.path(), session.stop(),
              [&session](const std::string& line) { session.Progress(line); });
  absl::Status status = study.Start();
  if (status.ok()) status = study.FindBaselinePeak(flags.outstanding);
  if (!status.ok()) return status;
  FillLoads(flags, results);
  status = study.Measure();
  return status;
}

int RunStudy(const Flags& flags) {
  Results results = flags.results;
  if (absl::Status filled = FillRows(flags, &results); !filled.ok()) return Fail(filled);
  bench::Session session(results);
  session.Note(absl::StrFormat("%s; %d rounds of %g s a cell, seed %d\n%s", flags.variants, results.rounds,
                               results.cell_s, results.seed, bench::ToString(results.machine)));
  const absl::Status status = Run(flags, session, &results);
  results.interrupted = session.stop();
  if (results.rows.front().cells.empty()) return Fail(status);  // there is nothing to report
  return session.Finish("fiber_study", ReportOf(results), status, Faults(results) == 0 ? kOk : kThreshold);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout, "fiber_study");
  app.footer(kExamples);
  Flags flags;
  if (std::find(argv, argv + argc, std::string_view("--quick")) != argv + argc) MakeQuick(&flags);
  AddFlags(app, &flags);
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags.results)) return *code;
  return flags.role.part.empty() ? RunStudy(flags) : Serve(flags.role);
}
