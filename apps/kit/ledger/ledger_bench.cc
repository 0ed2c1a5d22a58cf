// SPDX-License-Identifier: Apache-2.0
//
// ledger_bench: how many postings a second a ledger books, and how long an audit takes.
//
// Threads post from accounts of their own to one account, then each between accounts of its own: in a file, or in a PostgreSQL.
// Then the books are filled up to --entries, and audited. Each commit is synced. Exit code 99 if the audit takes longer than
// --limit.
//
//   ledger_bench [--postgresql unix:SOCKET]
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/kit/ledger/ledger.h"
#include "apps/kit/wall_clock.h"
#include "bench/common/program.h"
#include "bench/common/report.h"
#include "bench/common/round.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace {

using namespace curtail;
using namespace curtail::apps;

constexpr Nanos kPatience = std::chrono::minutes(10);
constexpr uint64_t kHot = 10, kFirst = 100;
constexpr uint64_t kAccounts = 1000;

struct LedgerFlags : bench::CommonFlags {
  std::string postgresql, schema = "ledger_bench";
  int threads = 16;
  double seconds = 3, limit = 10;
  uint64_t entries = 1'000'000;
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "ledger_bench: " << status << "\n";
  std::exit(1);
}

double InSeconds(Nanos time) { return InMillis(time) / 1000; }

class LedgerBench {
 public:
  explicit LedgerBench(const LedgerFlags& flags) : flags_(flags) {
    SqlOptions options{.path = flags.postgresql.empty() ? dir_.File("ledger.db") : flags.schema,
                       .postgresql = flags.postgresql,
                       .migrations = {kLedgerSchema}};
    auto opened = SqlDatabase::Open(std::move(options));
    Require(opened.status());
    db_ = *std::move(opened);
    Require(db_->Write(Deadline::In(kPatience), [&](SqlSession& s) {
      absl::Status status = ledger_.Open(s, {.id = kHot, .limit = kUnlimited});
      for (uint64_t i = 0; i < kAccounts; ++i)
        status.Update(ledger_.Open(s, {.id = kFirst + i, .limit = kUnlimited}));
      return status;
    }));
  }

  // Postings a second, of all threads.
  double Post(bool hot) {
    std::atomic<uint64_t> posted{0};
    const TimePoint begin = Now();
    const Deadline end =
        Deadline::In(std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(flags_.seconds)));
    std::vector<std::thread> threads;
    for (int t = 0; t < flags_.threads; ++t) {
      threads.emplace_back([&, from = kFirst + 2 * static_cast<uint64_t>(t)] {
        for (; !end.Expired(); ++posted)
          Require(db_->Write(Deadline::In(kPatience),
                             [&](SqlSession& s) { return Book(s, from, hot ? kHot : from + 1); }));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(posted.load()) / InSeconds(Now() - begin);
  }

  void Fill(bench::Session& session) {
    constexpr uint64_t kAtOnce = 1000;
    uint64_t postings = 0;
    for (uint64_t i = 0; 2 * postings < flags_.entries && !session.stop(); i += kAtOnce) {
      session.Progress(Join("booking ", flags_.entries, " entries: ", 2 * postings));
      Require(db_->Write(Deadline::In(kPatience), [&](SqlSession& s) {
        absl::Status status;
        for (uint64_t k = i; status.ok() && k < i + kAtOnce; ++k)
          status = Book(s, kFirst + k % kAccounts, kFirst + (7 * k + 1) % kAccounts);
        if (!status.ok()) return status;
        return s.Query("SELECT max(id) FROM postings", {},
                       [&](const SqlRow& row) { postings = row.Unsigned(0); });
      }));
    }
  }

  double Audit() {
    const TimePoint begin = Now();
    Require(db_->Read(Deadline::In(kPatience), [](SqlSession& s) { return Ledger::Audit(s); }));
    return InSeconds(Now() - begin);
  }

 private:
  absl::Status Book(SqlSession& s, uint64_t from, uint64_t to) {
    std::vector<Booked> booked;
    const std::string name = Join(started_, " ", requests_++);
    return ledger_.Post(s, {1, name},
                        {.entries = {{from, -1, {}}, {to, 1, {}}}, .text = "a posting of the benchmark"},
                        &booked);
  }

  const LedgerFlags flags_;
  const TempDir dir_;
  const Ledger ledger_{0, NowMs};
  const int64_t started_ = NowMs();  // names requests of this run
  // Atomic; relaxed would do: it only makes names differ.
  std::atomic<uint64_t> requests_{0};
  std::unique_ptr<SqlDatabase> db_;
};

int Run(const LedgerFlags& flags) {
  bench::Session session(flags);
  const bench::Machine machine = bench::LookAtMachine();
  session.Note(bench::ToString(machine));
  LedgerBench ledger(flags);
  const char* const names[] = {"one account", "many accounts"};
  std::vector<double> rates[2];
  const bench::RoundPlan plan{.rounds = flags.rounds, .subjects = 2, .stop = &session.stop()};
  const absl::Status ended = bench::RunRounds(plan, [&](const bench::Turn& turn) {
    session.Progress(Join(bench::RoundText(plan, turn), names[turn.subject]));
    rates[turn.subject].push_back(ledger.Post(/*hot=*/turn.subject == 0));
    return absl::OkStatus();
  });
  if (!ended.ok()) session.Note("interrupted: the report is partial");
  ledger.Fill(session);
  session.Progress("auditing");
  const double audit_s = ledger.Audit();
  bench::Table table("results");
  for (size_t i = 0; i < 2; ++i)
    table.Add({{"load", "postings a second", names[i]},
               {"postings_per_s", "rate", rates[i], bench::Range(bench::Grouped)}});
  const bool late = audit_s > flags.limit;
  bench::Report report("ledger", flags, machine);
  report.Set("store", flags.postgresql.empty() ? "file" : "postgresql").Set("threads", flags.threads);
  report.Set("entries", flags.entries).Set("audit_s", audit_s).Set("limit_s", flags.limit);
  report.Add(std::move(table))
      .Say(Join("audit of ", flags.entries, " entries: ") + bench::Fixed(2)(audit_s) + " s");
  return session.Finish("ledger_bench", report, absl::OkStatus(), late ? kThreshold : kOk);
}

}  // namespace

int main(int argc, char** argv) {
  LedgerFlags flags;
  CLI::App app("How many postings a second a ledger books, and how long an audit takes.", "ledger_bench");
  app.add_option("--postgresql", flags.postgresql, "A server, as of SqlOptions; a file if empty");
  app.add_option("--schema", flags.schema, "The schema there")->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads that post")
      ->check(CLI::Range(1, 400))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "A turn takes so long")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--entries", flags.entries, "Entries that are audited")
      ->check(CLI::Range(2, 1 << 27))
      ->capture_default_str();
  app.add_option("--limit", flags.limit, "Seconds of the audit; above it the exit code is 99")
      ->capture_default_str();
  bench::AddCommonFlags(app, &flags, {});
  if (const std::optional<int> code = bench::ParseFlags(app, argc, argv, &flags)) return *code;
  return Run(flags);
}
