// SPDX-License-Identifier: Apache-2.0
//
// streams: how many messages a second travel on one stream, with curtail, with grpc++ and with bare sockets.
//
// Server and client are in this process; each stack's client talks to its own server. The subjects take turns at each
// work in each round, so that what disturbs the machine disturbs all.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/streams/subject.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"

namespace {

using namespace curtail;
using bench::StreamSubject;

struct Flags : bench::CommonFlags {
  std::vector<std::string> subjects;
  std::string work;  // only those whose names contain it
  double seconds = 1;
};

// Calls of `count` messages each.
struct Work {
  const char* name;
  absl::Status (StreamSubject::*call)(int count, size_t size);
  int count;
  size_t size;
};
constexpr Work kWorks[] = {{"ping-pong, 64 B", &StreamSubject::PingPong, 1000, 64},
                           {"server sends, 100 B", &StreamSubject::Watch, 1000, 100},
                           {"server sends, 64 KiB", &StreamSubject::Watch, 200, 64u << 10},
                           {"client sends, 100 B", &StreamSubject::Upload, 1000, 100},
                           {"client sends, 64 KiB", &StreamSubject::Upload, 200, 64u << 10}};

// Messages a second.
absl::StatusOr<double> Measure(StreamSubject& subject, const Work& work, double seconds) {
  const auto once = [&] { return (subject.*work.call)(work.count, work.size); };
  if (absl::Status warm = once(); !warm.ok()) return warm;
  const TimePoint begin = Now();
  const TimePoint end = begin + Nanos(static_cast<int64_t>(seconds * 1e9));
  int64_t messages = 0;
  do {
    if (absl::Status status = once(); !status.ok()) return status;
    messages += work.count;
  } while (Now() < end);
  return static_cast<double>(messages) / std::chrono::duration<double>(Now() - begin).count();
}

struct Results {
  std::vector<std::string> subjects;
  std::vector<Work> works;
  std::vector<std::vector<std::vector<double>>>
      cells;  // by work and subject: a value a round, none if interrupted

  bench::Table ToTable() const {
    bench::Table table("works");
    for (size_t w = 0; w < works.size(); ++w) {
      std::vector<bench::Field> row = {{"work", "messages a second", works[w].name},
                                       {"messages_a_call", bench::kHidden, works[w].count},
                                       {"message_bytes", bench::kHidden, works[w].size}};
      for (size_t s = 0; s < subjects.size(); ++s)
        row.push_back({subjects[s] + ".per_s", subjects[s], cells[w][s], bench::Range(bench::Grouped)});
      table.Add(std::move(row));
    }
    return table;
  }
};

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  flags.subjects = bench::SubjectNames();
  CLI::App app("How many messages a second travel on one stream?", "streams");
  app.footer(
      "Exit codes: 0 ok, 104 bad flags, 105 interrupted (what was measured is reported).\n"
      "Example: streams --rounds 7 --subjects curtail-auto,grpc-sync --json streams.json");
  app.add_option("--subjects", flags.subjects, "Stacks; any config after curtail-")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--work", flags.work, "Only works whose names contain this, such as '64 KiB'");
  app.add_option("--seconds", flags.seconds, "Of each measurement")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  bench::AddCommonFlags(app, &flags, {.quick = "1 round of 0.05 s: that it works, not how fast"});
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  if (flags.quick) flags.rounds = 1, flags.seconds = 0.05;
  bench::Session session(flags);
  const bench::Machine machine = bench::LookAtMachine();
  session.Note(bench::ToString(machine));
  std::vector<std::unique_ptr<StreamSubject>> subjects;
  for (const std::string& name : flags.subjects) {
    auto subject = bench::MakeSubject(name);
    if (!subject.ok()) return bench::Fail("streams", subject.status());
    subjects.push_back(*std::move(subject));
  }
  Results results{.subjects = flags.subjects, .works = {}, .cells = {}};
  std::copy_if(std::begin(kWorks), std::end(kWorks), std::back_inserter(results.works),
               [&](const Work& work) { return absl::StrContains(work.name, flags.work); });
  if (results.works.empty()) {
    return bench::Fail(
        "streams",
        absl::InvalidArgumentError(absl::StrCat(
            "--work: no work has \"", flags.work, "\" in its name; there are ",
            absl::StrJoin(kWorks, "; ", [](std::string* out, const Work& work) { *out += work.name; }))));
  }
  results.cells.assign(results.works.size(), std::vector<std::vector<double>>(subjects.size()));
  const bench::RoundPlan plan{.rounds = flags.rounds,
                              .loads = results.works.size(),
                              .subjects = subjects.size(),
                              .order = bench::Order::kRotate,
                              .stop = &session.stop()};
  const absl::Status ended = bench::RunRounds(plan, [&](const bench::Turn& turn) -> absl::Status {
    session.Progress(absl::StrCat(bench::RoundText(plan, turn), results.works[turn.load].name, "  ",
                                  flags.subjects[turn.subject]));
    auto rate = Measure(*subjects[turn.subject], results.works[turn.load], flags.seconds);
    if (!rate.ok()) return rate.status();
    results.cells[turn.load][turn.subject].push_back(*rate);
    return absl::OkStatus();
  });
  bench::Report report("streams", flags, machine);
  return session.Finish("streams", report.Add(results.ToTable()), ended, kOk);
}
