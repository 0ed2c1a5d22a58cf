// SPDX-License-Identifier: Apache-2.0
//
// fences: what fences are worth where several paths share a service (X. Gu and Q. Wang, "PathFence: Reducing
// Cross-Path Dependencies in Microservices", HPDC 2025).
//
// It starts itself as leaves and, once for each variant, as the shared services, and measures all variants under the
// same arrivals in turns.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/common/program.h"
#include "bench/common/scratch.h"
#include "bench/fences/overload.h"
#include "bench/fences/serve.h"
#include "bench/fences/stall.h"
#include "bench/fences/traces.h"

namespace {

using namespace curtail;
using namespace curtail::fences;

constexpr char kAbout[] =
    "Compares fences with asynchronous calls where a service behind a shared one stalls.";
constexpr char kExamples[] =
    R"(A variant is a config and its guards, CONFIG+on or CONFIG+queue64+deadline; the first is the baseline. The report goes to standard output.

Examples:
  fences --quick                                   # some seconds: that it works, not how well
  fences --json fences.json --markdown fences.md   # about 18 minutes
  fences --only stall --variants SDB1-16,SDB1-16+on --rounds 9
  fences --only overload --variants SDB1-16,SDB1-16+queue64

Exit codes: 0 ok, 1 something could not be measured or written, 99 a request failed where none may (of the guarded path
before a leaf becomes slow), 104 bad flags, 105 interrupted (what was measured is reported).)";

constexpr char kOverloadName[] = "overload";

struct StudyFlags {
  std::string variants;  // empty: each part's own
  std::vector<std::string> only;
  Results results;
  Role role;  // of a process that this program started
};

std::vector<std::string> PartNames() {
  std::vector<std::string> names;
  for (const StallScenario& scenario : StallScenarios()) names.emplace_back(scenario.name);
  for (const Trace& trace : Traces()) names.emplace_back(trace.name);
  names.emplace_back(kOverloadName);
  return names;
}

void AddFlags(CLI::App& app, StudyFlags* f) {
  app.add_option("--variants", f->variants, "What to compare, the baseline first [for each part its own]");
  app.add_option("--only", f->only, "Parts of the study: " + absl::StrJoin(PartNames(), ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(PartNames()));
  app.add_option("--seconds", f->results.phase_s, "Length of a phase")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  bench::AddCommonFlags(app, &f->results,
                        {.quick = "1 round with phases of 0.25 s, few variants", .seed = "Of the arrivals"});
  bench::AddRoleFlags(app, &f->role);
}

void MakeQuick(StudyFlags* f) {
  f->variants = "SDB1-16,ADB1-4-4,SDB1-16+on";
  f->only = {"stall", "large", kOverloadName};
  f->results.rounds = 1;
  f->results.phase_s = 0.25;
}

int Fail(const absl::Status& status) { return bench::Fail("fences", status); }

absl::StatusOr<std::vector<Row>> RowsOf(const StudyFlags& flags, std::string_view otherwise) {
  const absl::StatusOr<std::vector<Variant>> variants = bench::ParseVariants(
      flags.variants.empty() ? std::string(otherwise) : flags.variants, /*calls_async=*/false);
  if (!variants.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--variants: ", variants.status().message()));
  }
  std::vector<Row> rows;
  for (const Variant& variant : *variants) rows.push_back({variant, {}});
  return rows;
}

Part PartOf(const StallScenario& scenario) {
  Part part{.kind = Part::Kind::kStall,
            .name = std::string(scenario.name),
            .title = std::string(scenario.title),
            .phases = {"alone", "before", "during", "after"},
            .slack_ms = scenario.slack_ms};
  for (const StallClass& one : scenario.classes) {
    part.classes.emplace_back(one.name);
    part.rates_per_s.push_back(one.rate_per_s);
  }
  return part;
}

Part PartOf(const Trace& trace) {
  return {.kind = Part::Kind::kTrace,
          .name = std::string(trace.name),
          .title = absl::StrCat("The four applications behind one service; Browse follows the trace ",
                                std::string(trace.shape), "."),
          .classes = {"Read", "Browse", "all"},
          .phases = {"whole"}};
}

Part OverloadPart() {
  Part part{.kind = Part::Kind::kOverload,
            .name = kOverloadName,
            .title = absl::StrFormat(
                "One path, of which a leaf answers %g/s at most; an answer within %g ms is good.",
                kCapacityPerS, InMillis(kSlo)),
            .classes = {"A"},
            .slo_ms = InMillis(kSlo)};
  for (const double share : OverloadShares()) part.phases.push_back(absl::StrFormat("%g x", share));
  part.rates_per_s = {OverloadShares().back() * kCapacityPerS};
  return part;
}

// The parts that are asked for, without any measurement.
absl::Status PlanParts(const StudyFlags& flags, Results* results) {
  absl::Status status;
  const auto add = [&](Part part, std::string_view variants) {
    const bool wanted =
        flags.only.empty() || std::find(flags.only.begin(), flags.only.end(), part.name) != flags.only.end();
    if (!wanted) return;
    absl::StatusOr<std::vector<Row>> rows = RowsOf(flags, variants);
    status.Update(rows.status());
    if (!rows.ok()) return;
    part.rows = *std::move(rows);
    part.phase_s = results->phase_s;
    results->parts.push_back(std::move(part));
  };
  for (const StallScenario& scenario : StallScenarios()) add(PartOf(scenario), scenario.variants);
  for (const Trace& trace : Traces()) add(PartOf(trace), kTraceVariants);
  add(OverloadPart(), kOverloadVariants);
  return status;
}

// Measures the parts one after the other, each with processes of its own; the traces share theirs.
class Runner {
 public:
  explicit Runner(const Study& study) : study_(study) {}

  absl::Status Measure(Part* part) {
    if (part->kind != Part::Kind::kTrace) traces_.reset();
    switch (part->kind) {
      case Part::Kind::kStall:
        return MeasureStall(part);
      case Part::Kind::kTrace:
        return MeasureTrace(part);
      case Part::Kind::kOverload:
        return OverloadStudy(study_).Measure(part);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MeasureStall(Part* part) {
    for (const StallScenario& scenario : StallScenarios()) {
      if (scenario.name != part->name) continue;
      return StallStudy(study_).Measure(scenario, part);
    }
    return absl::OkStatus();
  }
  absl::Status MeasureTrace(Part* part) {
    if (traces_ == nullptr) {
      traces_ = std::make_unique<TraceStudy>(study_);
      if (absl::Status started = traces_->Start(part->rows); !started.ok()) return started;
    }
    for (const Trace& trace : Traces()) {
      if (trace.name == part->name) return traces_->Measure(trace, part);
    }
    return absl::OkStatus();
  }

  const Study& study_;
  std::unique_ptr<TraceStudy> traces_;
};

absl::Status Run(bench::Session& session, Results* results) {
  const bench::ScratchFolder logs;
  if (logs.path().empty()) return absl::InternalError("cannot make a folder for logs; set TMPDIR to one");
  const Study study{*results, logs.path(), session.stop(),
                    [&session](const std::string& line) { session.Progress(line); }};
  Runner runner(study);
  for (Part& part : results->parts) {
    if (absl::Status status = runner.Measure(&part); !status.ok()) return status;
  }
  return absl::OkStatus();
}

uint64_t AllFaults(const Results& results) {
  uint64_t faults = 0;
  for (const Part& part : results.parts) faults += Faults(part);
  return faults;
}

bool Empty(const Results& results) {
  return std::all_of(results.parts.begin(), results.parts.end(),
                     [](const Part& part) { return part.rows.front().rounds.empty(); });
}

std::string PlanLine(const Results& results) {
  std::vector<std::string> names;
  for (const Part& part : results.parts) names.push_back(part.name);
  return absl::StrFormat("%s; %d rounds with phases of %g s, seed %d\n%s", absl::StrJoin(names, ", "),
                         results.rounds, results.phase_s, results.seed, bench::ToString(results.machine));
}

int RunStudy(const StudyFlags& flags) {
  Results results = flags.results;
  if (absl::Status planned = PlanParts(flags, &results); !planned.ok()) return Fail(planned);
  results.machine = bench::LookAtMachine();
  bench::Session session(results);
  session.Note(PlanLine(results));
  const absl::Status status = Run(session, &results);
  results.interrupted = session.stop();
  if (Empty(results)) return Fail(status);  // there is nothing to report
  return session.Finish("fences", ReportOf(results), status, AllFaults(results) == 0 ? kOk : kThreshold);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout, "fences");
  app.footer(kExamples);
  StudyFlags flags;
  if (std::find(argv, argv + argc, std::string_view("--quick")) != argv + argc) MakeQuick(&flags);
  AddFlags(app, &flags);
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags.results)) return *code;
  return flags.role.part.empty() ? RunStudy(flags) : Serve(flags.role);
}
