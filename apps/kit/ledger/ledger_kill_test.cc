// SPDX-License-Identifier: Apache-2.0
//
// A process that moves money is killed between any two of its statements. Whoever repeats its requests then finds the books that it
// would have left.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/kit/ledger/ledger.h"
#include "apps/kit/ledger/ledger_testing.h"
#include "curtail/base/rng.h"
#include "curtail/deploy/process/process.h"

namespace curtail::apps {
namespace {

// Kills its process at one step, the first being 1; 0: never.
class Steps {
 public:
  explicit Steps(int last) : left_(last) {}
  void Next() {
    ++taken_;
    if (--left_ == 0) raise(SIGKILL);
  }
  int taken() const { return taken_; }

 private:
  int left_, taken_ = 0;
};

// A session in which each statement is a step.
class SteppingSession final : public SqlSession {
 public:
  SteppingSession(SqlSession& session, Steps& steps) : session_(session), steps_(steps) {}
  absl::Status QueryEach(std::string_view sql, size_t width, std::span<const SqlValue> values,
                         absl::FunctionRef<void(size_t run, const SqlRow& row)> row) override {
    steps_.Next();
    return session_.QueryEach(sql, width, values, row);
  }
  int64_t changes() const override { return session_.changes(); }
  absl::Status Migrate(const std::vector<std::string>& steps) override { return session_.Migrate(steps); }
  absl::Status Begin(bool write) override { return session_.Begin(write); }
  absl::Status Commit() override { return session_.Commit(); }
  void Rollback() override { session_.Rollback(); }
  bool InTransaction() override { return session_.InTransaction(); }

 private:
  SqlSession& session_;
  Steps& steps_;
};

constexpr uint64_t kClosed = 13;

// Two shards, and requests to them. All of it may be repeated at any time.
class Script {
 public:
  Script(const TempDir& dir, const std::string& run, int last_step) : steps_(last_step) {
    for (uint32_t i = 0; i < 2; ++i)
      shards_.push_back(std::make_unique<Shard>(
          i, [] { return int64_t{1}; }, OpenLedger(dir, LedgerIn::kFile, Join(run, i))));
  }

  void Run() {
    for (size_t side = 0; side < 2; ++side) {
      for (const uint64_t id : {kBank, kAnn, kBob, kClosed})
        Write(side, [&](const Ledger& l, SqlSession& s) {
          return l.Open(s, {id, 0, id == kBank ? kUnlimited : 0});
        });
      Post(side, "salary", {.entries = {{kBank, -1000, {}}, {kAnn, 1000, {}}}});
    }
    Write(1, [](const Ledger& l, SqlSession& s) { return l.Close(s, kClosed); });
    const uint64_t taken = Hold("taken", 300), given_back = Hold("given back", 200);
    Post(0, "sale", {.entries = {{kAnn, -250, {}}, {kBob, 250, {}}}, .hold = taken});
    Write(0, [&](const Ledger& l, SqlSession& s) { return l.Void(s, given_back); });
    Post(0, "arrives", Away(kBob));
    Post(0, "returns", Away(kClosed));
    Deliver();
    Post(0, "arrives too", Away(kAnn));
    Deliver();
  }

  // All that is in the books.
  std::vector<std::string> Dump() {
    std::vector<std::string> rows;
    for (size_t side = 0; side < 2; ++side) {
      EXPECT_TRUE(shards_[side]->Audit().ok());
      for (const Booked& b : shards_[side]->Follow(0))
        rows.push_back(Join(side, ": ", b.posting, " ", b.account, " ", b.version, " ", b.cents, " ",
                            b.balance, " ", b.counterpart));
      for (const uint64_t id : {kInTransit, kBank, kAnn, kBob, kClosed})
        rows.push_back(Join(side, ": ", id, " ", shards_[side]->Look(id).available));
    }
    EXPECT_EQ(shards_[0]->Look(kInTransit).balance + shards_[1]->Look(kInTransit).balance, 0);
    return rows;
  }
  int steps() const { return steps_.taken(); }

 private:
  static Posting Away(uint64_t to) {
    return {.entries = {{kAnn, -100, {}}, {kInTransit, 100, {}}}, .to = Place{1, to}};
  }

  template <class Work>
  void Write(size_t side, Work work) {
    const absl::Status status = shards_[side]->Write([&](const Ledger& l, SqlSession& session) {
      SteppingSession s(session, steps_);
      absl::Status done = work(l, s);
      steps_.Next();  // before the commit
      return done;
    });
    EXPECT_TRUE(status.ok()) << status;
    steps_.Next();
  }
  void Post(size_t side, std::string_view name, const Posting& posting) {
    std::vector<Booked> booked;
    Write(side, [&](const Ledger& l, SqlSession& s) { return l.Post(s, {7, name}, posting, &booked); });
  }
  uint64_t Hold(std::string_view name, int64_t cents) {
    uint64_t hold = 0;
    Write(0, [&](const Ledger& l, SqlSession& s) {
      return l.Hold(s, {7, name}, kAnn, cents, Ledger::kNever, &hold);
    });
    return hold;
  }
  // As Ledger::Deliver(), with a transaction for each part.
  void Deliver() {
    std::vector<std::pair<uint64_t, bool>> answers;
    const absl::Status sent =
        shards_[0]->Deliver([&](const std::vector<Transfer>& transfers, std::vector<bool>* arrived) {
          for (const Transfer& transfer : transfers) {
            bool one = false;
            Write(1, [&](const Ledger& l, SqlSession& s) { return l.Receive(s, transfer, &one); });
            answers.emplace_back(transfer.posting, one);
            arrived->push_back(one);
          }
          // Settled here first, statement by statement.
          for (const auto& [posting, one] : answers)
            Write(0, [&, posting = posting, one = one](const Ledger& l, SqlSession& s) {
              return l.Settle(s, posting, one);
            });
          return absl::OkStatus();
        });
    EXPECT_TRUE(sent.ok()) << sent;
    steps_.Next();
  }

  Steps steps_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

TEST(LedgerKill, ARepetitionFindsTheBooksThatWereToBe) {
  const TempDir dir;
  std::vector<std::string> books;
  int steps = 0;
  {  // its threads end before a process is copied
    Script whole(dir, "whole", 0);
    whole.Run();
    books = whole.Dump();
    steps = whole.steps();
  }
  const int stride = Repeats(8, 1);
  int step = 1 + static_cast<int>(Rng(TestSeed()).Below(static_cast<uint64_t>(stride)));
  for (; step <= steps; step += stride) {
    SCOPED_TRACE(Join("step ", step, " of ", steps));
    const std::string run = Join("killed", step, "-");
    auto process = deploy::Process::Spawn({.name = "writer", .run = [&] { Script(dir, run, step).Run(); }});
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE((*process)->AwaitEnd(Deadline::In(kMaxTestWait)));
    ASSERT_EQ((*process)->HowItEnded(), "was killed by signal 9 (Killed)");
    Script again(dir, run, 0);
    again.Run();
    ASSERT_EQ(again.Dump(), books);
  }
}

}  // namespace
}  // namespace curtail::apps
