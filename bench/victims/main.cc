// SPDX-License-Identifier: Apache-2.0
//
// victims: does a well-behaved client notice what hostile ones do at the same port?
//
// For each attack it starts two copies of a server, attacks one of them, and makes the same 20 calls a second at both. The
// victim is the client of the attacked copy; its twin calls the idle copy, on the same CPUs, and shows what the machine
// alone does to a call. bench/wire/hostile_bench has the cost of more inputs, at the parsers.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "bench/common/scratch.h"
#include "bench/victims/attacks.h"
#include "bench/victims/crowd.h"
#include "curtail/deploy/process/process.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"

namespace {

using namespace curtail;
using namespace curtail::victims;

constexpr Nanos kStartTimeout = std::chrono::seconds(20);

struct Flags : bench::CommonFlags {
  std::string only;
  double seconds = 5;
  double rate_per_s = 20;
  std::string server = CURTAIL_FANOUT;
  std::string gateway = CURTAIL_GATEWAY;
};

// One copy of the server under test. It is killed with the object: an attacked one may drain for long.
struct Copy {
  Copy() = default;
  Copy(Copy&&) = default;
  Copy& operator=(Copy&&) = default;
  ~Copy() {
    for (const auto& one : processes) one->Kill();
  }

  std::vector<std::unique_ptr<deploy::Process>> processes;  // the last one is attacked
  std::string attacked;                                     // addresses
  std::string called;

  deploy::Process& process() const { return *processes.back(); }
  pid_t pid() const { return process().pid(); }
};

// The calls of a well-behaved client at one copy, on a thread of their own.
class Caller final : public RunObserver {
 public:
  Caller(const Flags& flags, const Copy& copy, Port port, uint64_t seed, const std::atomic<bool>& stop)
      : result_(std::async(std::launch::async, [this, &flags, &copy, port, seed, &stop] {
          absl::StatusOr<LoadResult> result = Call(flags, copy, port, seed, stop);
          Started({});  // or it has failed before
          return result;
        })) {}

  // Returns once the calls have begun, or cannot.
  void AwaitStart() { started_.get_future().wait(); }
  absl::StatusOr<LoadResult> Await() { return result_.get(); }

 private:
  absl::StatusOr<LoadResult> Call(const Flags& flags, const Copy& copy, Port port, uint64_t seed,
                                  const std::atomic<bool>& stop) {
    RunOptions options;
    options.targets = {copy.called};
    options.warmup = FromSeconds(flags.seconds / 10);
    options.timeout = flags.quick ? std::chrono::milliseconds(50) : std::chrono::milliseconds(1000);
    options.stop = &stop;
    options.observer = this;
    HttpSource source{.name = kEcho};
    if (port == Port::kGateway) {
      options.http = {.verb = "POST"};
      options.metadata.Add("content-type", "application/json");
      source.bodies = {"{}"};
    } else if (port == Port::kAdmin) {
      options.http = HttpOptions();
    }
    const auto workload = MakeHttpWorkload(source, seed);
    const auto schedule =
        Schedule::Poisson(flags.rate_per_s, options.warmup + FromSeconds(flags.seconds), seed);
    if (!workload.ok()) return workload.status();
    if (!schedule.ok()) return schedule.status();
    return options.http ? RunOpenLoop(options, **workload, *schedule)
                        : RunOpenLoop(options, FixedWorkload(kEcho, ""), *schedule);
  }
  void Started(TimePoint) override {
    if (!std::exchange(has_started_, true)) started_.set_value();
  }
  void Ended(Nanos, Nanos, bool) override {}

  bool has_started_ = false;  // the thread's
  std::promise<void> started_;
  std::future<absl::StatusOr<LoadResult>> result_;  // last: its thread uses the others
};

// The effects of one attack at one port. Numbers are missing where the row is left out, or the server has ended.
struct Sample {
  std::string left_out;      // why
  std::string victim_error;  // the most frequent one
  bool ended = false;        // the attacked server, by itself
  std::optional<double> victim_p50_ms, victim_p99_ms, victim_failed, twin_p99_ms;
  std::optional<double> over_idle_mib, sent_mb, cpu_s, cpu_ms_a_mb;
};

// A Bench measures attacks one after the other. Thread-compatible: its thread starts the servers, and outlives them.
class Bench {
 public:
  Bench(const Flags& flags, const std::atomic<bool>& stop) : flags_(flags), stop_(stop) {}

  // Starts servers for this attack alone. Errors: a server does not start, or does not answer before the attack.
  absl::StatusOr<Sample> Measure(const Attack& attack, Port port, uint64_t seed) {
    constexpr size_t kOthers = 500;  // descriptors that are not the attack's
    if (static_cast<size_t>(attack.connections) + kOthers > bench::RaiseDescriptorLimit())
      return Sample{.left_out = "too few descriptors: raise the hard limit (ulimit -Hn)"};
    const absl::StatusOr<Copy> attacked = Start(port), idle = Start(port);
    if (!attacked.ok()) return attacked.status();
    if (!idle.ok()) return idle.status();
    if (std::exchange(last_, &attack) != &attack) bytes_ = attack.bytes();
    Caller victim(flags_, *attacked, port, seed, stop_), twin(flags_, *idle, port, seed, stop_);
    victim.AwaitStart();
    twin.AwaitStart();
    const double before_mib = deploy::ResidentMib(attacked->pid());
    const Nanos before = attacked->process().Cpu();
    Crowd crowd(attacked->attacked, attack, bytes_);
    const absl::StatusOr<LoadResult> seen = victim.Await(), quiet = twin.Await();
    if (!seen.ok()) return seen.status();
    if (!quiet.ok()) return quiet.status();
    Sample sample{.victim_p50_ms = InMillis(seen->all.Percentile(50)),
                  .victim_p99_ms = InMillis(seen->all.Percentile(99)),
                  .victim_failed = seen->failed,
                  .twin_p99_ms = InMillis(quiet->all.Percentile(99))};
    const auto more = [](const auto& a, const auto& b) { return a.second < b.second; };
    if (const auto most = std::max_element(seen->errors.begin(), seen->errors.end(), more);
        most != seen->errors.end())
      sample.victim_error = most->first;
    sample.ended = !attacked->process().Running();
    sample.sent_mb = static_cast<double>(crowd.Stop()) / 1e6;
    if (sample.ended) return sample;
    sample.over_idle_mib = deploy::PeakResidentMib(attacked->pid()) - before_mib;
    sample.cpu_s = InSeconds(attacked->process().Cpu() - before);
    if (*sample.sent_mb > 0) sample.cpu_ms_a_mb = *sample.cpu_s * 1e3 / *sample.sent_mb;
    return sample;
  }

 private:
  absl::StatusOr<Copy> Start(Port port) {
    Copy copy;
    const auto spawn = [&](std::vector<std::string> argv) {
      auto process = deploy::Process::Spawn(
          {.name = argv[0], .argv = argv, .log_path = logs_.File(absl::StrCat(++processes_))});
      if (process.ok()) copy.processes.push_back(*std::move(process));
      return process.status();
    };
    // The address in the line of the last process that begins so.
    const auto address = [&](const char* prefix) -> absl::StatusOr<std::string> {
      auto rest = copy.process().AwaitLine(prefix, Deadline::In(kStartTimeout), &stop_);
      return rest.ok() ? rest->substr(0, rest->find(' ')) : rest;
    };
    absl::Status status = spawn({flags_.server, "--service", "leaf", "--config",
                                 port == Port::kSib1 ? "SIB1" : "auto", "--http-admin", "127.0.0.1:0"});
    if (!status.ok()) return status;
    absl::StatusOr<std::string> grpc = address("ready "), admin = address("HTTP admin on ");
    if (!grpc.ok() || !admin.ok()) return grpc.ok() ? admin.status() : grpc.status();
    copy.attacked = port == Port::kAdmin || port == Port::kBeside ? *admin : *grpc;
    copy.called = port == Port::kAdmin ? absl::StrCat("http://", *admin, "/healthz") : *grpc;
    if (port != Port::kGateway) return copy;
    status = spawn({flags_.gateway, *grpc, "--listen", "127.0.0.1:0"});
    if (!status.ok()) return status;
    const absl::StatusOr<std::string> http = address("listening on ");
    if (!http.ok()) return http.status();
    copy.attacked = *http;
    copy.called = absl::StrCat("http://", *http, kEcho);
    return copy;
  }

  const Flags& flags_;
  const std::atomic<bool>& stop_;
  const bench::ScratchFolder logs_;
  int processes_ = 0;
  const Attack* last_ = nullptr;
  std::string bytes_;  // its
};

// A row of the table, and the rounds in which it was measured.
struct Row {
  const Attack* attack;
  Port port;
  std::vector<Sample> rounds = {};

  std::vector<double> Values(std::optional<double> Sample::* field) const {
    return bench::Values(rounds, field);
  }
  bool Ended() const {
    return std::any_of(rounds.begin(), rounds.end(), [](const Sample& s) { return s.ended; });
  }
  void AddTo(bench::Table* table) const {
    const auto ms = bench::Range(bench::Fixed(1)), whole = bench::Median(bench::Grouped);
    table->Add(
        {{"port", "port", NameOf(port)},
         {"attack", "attack", attack->name},
         {"connections", "connections", attack->connections, whole},
         {"victim.p50_ms", "victim p50, ms", Values(&Sample::victim_p50_ms), ms},
         {"victim.p99_ms", "p99", Values(&Sample::victim_p99_ms), ms},
         {"victim.failed", "failed", Values(&Sample::victim_failed), whole},
         {"twin.p99_ms", "twin p99", Values(&Sample::twin_p99_ms), ms},
         {"over_idle_mib", "MiB over idle", Values(&Sample::over_idle_mib), whole},
         {"sent_mb", "sent, MB", Values(&Sample::sent_mb)},
         {"cpu_s", "CPU, s", Values(&Sample::cpu_s)},
         {"cpu_ms_per_mb", "ms a MB", Values(&Sample::cpu_ms_a_mb)},
         {"victim.error", bench::kHidden, rounds.empty() ? std::string() : rounds.front().victim_error},
         {"ended", "", Ended(), bench::YesNo("the server ended", "")},
         {"left_out", "", rounds.empty() ? std::string() : rounds.front().left_out}});
  }
};

void AddFlags(CLI::App& app, Flags* flags) {
  app.footer(
      "Exit codes: 0 ok, 99 an attacked server ended, 104 bad flags, 105 interrupted (what was measured is "
      "reported).\nExample: victims --only gzip --rounds 3 --json victims.json");
  app.add_option("--only", flags->only, "Only rows whose port or attack contains this, such as 'gateway'");
  app.add_option("--seconds", flags->seconds, "Of each attack")
      ->check(CLI::Range(0.05, 600.0))
      ->capture_default_str();
  app.add_option("--rps", flags->rate_per_s, "Calls a second of each client")
      ->check(CLI::Range(1.0, 1e4))
      ->capture_default_str();
  app.add_option("--server", flags->server, "The program of the servers: fanout, of this build or another");
  app.add_option("--gateway", flags->gateway, "The program of the gateways");
  bench::AddCommonFlags(app, flags,
                        {.quick = "0.05 s each: that it works, not how well", .seed = "Of the calls"});
}

std::vector<Row> RowsOf(const std::vector<Attack>& attacks, const std::string& only) {
  std::vector<Row> rows;
  for (const Attack& attack : attacks) {
    for (const Port port : attack.ports) {
      if (absl::StrContains(NameOf(port) + "\n" + attack.name, only)) rows.push_back({&attack, port});
    }
  }
  return rows;
}

absl::Status Measure(const Flags& flags, bench::Session& session, std::vector<Row>* rows) {
  Bench bench(flags, session.stop());
  const bench::RoundPlan plan{.rounds = flags.rounds, .loads = rows->size(), .stop = &session.stop()};
  return bench::RunRounds(plan, [&](const bench::Turn& turn) {
    Row& row = (*rows)[turn.load];
    session.Progress(absl::StrCat(bench::RoundText(plan, turn), NameOf(row.port), "  ", row.attack->name));
    absl::StatusOr<Sample> sample =
        bench.Measure(*row.attack, row.port, flags.seed + static_cast<uint64_t>(turn.round));
    if (sample.ok()) row.rounds.push_back(*std::move(sample));
    return sample.status();
  });
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  flags.rounds = 1;
  CLI::App app("Does a well-behaved client notice what hostile ones do at the same port?", "victims");
  AddFlags(app, &flags);
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  if (flags.quick) flags.rounds = 1, flags.seconds = 0.05, flags.rate_per_s = 100;
  const std::vector<Attack> attacks = Attacks();
  std::vector<Row> rows = RowsOf(attacks, flags.only);
  if (rows.empty()) {
    return bench::Fail("victims",
                       absl::InvalidArgumentError(
                           "--only: no port and no attack contains that; without --only all are measured"));
  }
  bench::Session session(flags);
  const bench::Machine machine = bench::LookAtMachine();
  session.Note(bench::ToString(machine));
  const absl::Status measured = Measure(flags, session, &rows);
  bench::Table table("attacks", 2);
  for (const Row& row : rows) row.AddTo(&table);
  bench::Report report("victims", flags, machine);
  report.Set("seconds", flags.seconds).Set("calls_per_s", flags.rate_per_s).Add(std::move(table));
  const bool crashed = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.Ended(); });
  return session.Finish("victims", report, measured, crashed ? kThreshold : kOk);
}
