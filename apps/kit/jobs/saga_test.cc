// SPDX-License-Identifier: Apache-2.0
//
// A trip is booked in two steps at a desk, which decides each name once. Whatever fails, dies or comes twice, the trip ends, and
// the desk was asked for each step of a round by one name.
#include "apps/kit/jobs/saga.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/kit/once_testing.h"
#include "apps/kit/run_here.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"
#include "curtail/store/store_testing.h"

namespace curtail::apps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum Trip { kHotel, kFlight, kBooked, kRefused };
enum class SagaIn { kFile, kPostgresql };

std::unique_ptr<SqlDatabase> Open(const TempDir& dir, SagaIn in, const std::string& name) {
  struct Server {
    TempDir dir;
    PostgresqlProcess process{dir.File("s"), {POSTGRESQL_SERVER, dir.File("data"), dir.File("s")}};
  };
  SqlOptions options;
  options.path = in == SagaIn::kFile ? dir.File(name) : name;
  options.migrations = {SagaSchema("trips"), kRefusalsSchema};
  options.sync = false;
  if (in == SagaIn::kPostgresql) {
    static Server server;
    options.postgresql = server.process.address();
  }
  auto db = SqlDatabase::Open(std::move(options));
  EXPECT_TRUE(db.ok()) << db.status();
  return *std::move(db);
}

// Books trips. What it asked for is in `asked`, also what it asked for again.
class Agency {
 public:
  explicit Agency(std::unique_ptr<SqlDatabase> db, Nanos callers_time = Nanos::zero())
      : db_(std::move(db)),
        trips(
            *db_, "trips", [this](Context& ctx, SagaRow& row) { return Step(ctx, row); }, callers_time,
            /*waits=*/kFlight,
            [this](SqlSession&, const SagaRow& next) {
              Note(&moved, next.state);
              return ledger();
            }) {}

  absl::Status Begin(const Context& named, SagaRow* row, Saga::Admit admit = nullptr) {
    Context ctx(kMaxTestWait);
    return RunHere(trips.Begin(ctx, Once(named, row->owner), kRefused, row, std::move(admit)));
  }
  absl::Status Finish(SagaRow* row) {
    Context ctx(kMaxTestWait);
    return RunHere(trips.Finish(ctx, row));
  }
  absl::Status FinishAll() {
    return trips.FinishAll([] { return false; });
  }
  SagaRow Find(uint64_t owner, uint64_t id) {
    Context ctx(kMaxTestWait);
    SagaRow row;
    const absl::Status status = RunHere(trips.Find(ctx, owner, id, &row));
    EXPECT_TRUE(status.ok()) << status;
    return row;
  }

  // Guarded by mu_ while FinishAll() runs.
  std::vector<std::string> asked;
  std::vector<int> moved;  // the states that were written
  // Before a step `name`. On several threads at once.
  std::function<absl::Status(std::string_view name)> journey = [](std::string_view) {
    return absl::OkStatus();
  };
  std::function<absl::Status()> ledger = [] { return absl::OkStatus(); };
  std::function<absl::Status()> desk = [] { return absl::OkStatus(); };

 private:
  Coroutine Step(Context&, SagaRow& row) {
    const std::string name = row.RequestName(row.state == kHotel ? "hotel" : "flight");
    Note(&asked, name);
    absl::Status status = journey(name);
    status.Update(desk());
    if (absl::IsFailedPrecondition(status)) {
      row.state = kRefused;
      row.open = false;
      row.due_ms = 77;
    } else if (status.ok()) {
      row.bytes += row.state == kHotel ? ", slept" : ", flew";
      row.open = row.state == kHotel;
      row.state = row.state == kHotel ? kFlight : kBooked;
    }
    co_return status;
  }

  template <class T>
  void Note(std::vector<T>* all, const T& one) {
    MutexLock lock(mu_);
    all->push_back(one);
  }

  const std::unique_ptr<SqlDatabase> db_;
  Mutex mu_;

 public:
  Saga trips;
};

SagaRow NewTrip(uint64_t id) { return {.id = id, .owner = 3, .bytes = "Ann"}; }

class SagaTest : public testing::TestWithParam<SagaIn> {
 protected:
  const TempDir dir_;
  Agency agency_{Open(dir_, GetParam(), Join("saga_", static_cast<int>(GetParam()), "_", ++count_))};
  const Context plain_{kMaxTestWait};

 private:
  static int count_;
};
int SagaTest::count_ = 0;

INSTANTIATE_TEST_SUITE_P(Stores, SagaTest, testing::Values(SagaIn::kFile, SagaIn::kPostgresql),
                         [](const auto& info) {
                           return info.param == SagaIn::kFile ? "File" : "Postgresql";
                         });

TEST_P(SagaTest, KeepsOnlyWhatIsAdmitted) {
  const auto full = [](SqlSession&) { return absl::ResourceExhaustedError("full"); };
  SagaRow row = NewTrip(7);
  EXPECT_TRUE(absl::IsResourceExhausted(agency_.Begin(plain_, &row, full)));
  EXPECT_EQ(agency_.Find(3, 7).id, 0u);
  EXPECT_TRUE(agency_.Begin(plain_, &row, [](SqlSession&) { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(agency_.Begin(plain_, &row, full).ok()) << "a repetition";
  EXPECT_EQ(agency_.Find(3, 7).id, 7u);
}

TEST_P(SagaTest, TakesItsStepsOnce) {
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  ASSERT_TRUE(agency_.Finish(&row).ok());
  EXPECT_EQ(row.state, kBooked);
  EXPECT_EQ(row.bytes, "Ann, slept, flew");
  EXPECT_FALSE(row.open);
  ASSERT_TRUE(agency_.Finish(&row).ok());
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_THAT(agency_.asked, ElementsAre("hotel 7.0", "flight 7.0"));
  EXPECT_EQ(agency_.Find(3, 7).bytes, row.bytes);
  EXPECT_EQ(agency_.Find(4, 7).id, 0u) << "it is another's";
}

TEST_P(SagaTest, ARepetitionFindsTheFirst) {
  const NamedRequest to_rome("key", "Rome"), to_oslo("key", "Oslo");
  SagaRow row = NewTrip(7), again = NewTrip(8), other = NewTrip(9);
  ASSERT_TRUE(agency_.Begin(to_rome.ctx(), &row).ok());
  ASSERT_TRUE(agency_.Finish(&row).ok());
  ASSERT_TRUE(agency_.Begin(to_rome.ctx(), &again).ok());
  EXPECT_EQ(again.id, 7u);
  EXPECT_EQ(again.state, kBooked);
  EXPECT_TRUE(absl::IsAlreadyExists(agency_.Begin(to_oslo.ctx(), &other)));
  other.owner = 4;
  EXPECT_TRUE(agency_.Begin(to_oslo.ctx(), &other).ok()) << "a name belongs to its caller";
  SagaRow unnamed = NewTrip(10);
  EXPECT_TRUE(agency_.Begin(plain_, &unnamed).ok());
  EXPECT_EQ(unnamed.state, kHotel);
}

TEST_P(SagaTest, TheThreadGoesOnWhereTheCallerFailed) {
  agency_.desk = [&] {
    return agency_.asked.size() == 2 ? absl::UnavailableError("the desk is closed") : absl::OkStatus();
  };
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  EXPECT_TRUE(absl::IsUnavailable(agency_.Finish(&row)));
  EXPECT_EQ(agency_.Find(3, 7).state, kFlight);
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_THAT(agency_.asked, ElementsAre("hotel 7.0", "flight 7.0", "flight 7.0"));
  EXPECT_EQ(agency_.Find(3, 7).state, kBooked);
}

TEST_P(SagaTest, TheThreadLeavesTheCallerItsTime) {
  Agency patient(Open(dir_, GetParam(), "patient"), std::chrono::hours(1));
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(patient.Begin(plain_, &row).ok());
  ASSERT_TRUE(patient.FinishAll().ok());
  EXPECT_THAT(patient.asked, IsEmpty());
}

TEST_P(SagaTest, TheThreadBeginsAtTheTimeThatIsGiven) {
  SagaRow early = NewTrip(7), late = NewTrip(8);
  early.state = late.state = kFlight;
  early.due_ms = NowMs() - 1;
  late.due_ms = NowMs() + 3'600'000;
  ASSERT_TRUE(agency_.Begin(plain_, &early).ok());
  ASSERT_TRUE(agency_.Begin(plain_, &late).ok());
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_THAT(agency_.asked, ElementsAre("flight 7.0"));
  EXPECT_EQ(agency_.Find(3, 8).due_ms, late.due_ms);
}

TEST_P(SagaTest, AClockThatWasAheadDoesNotDelayTheThread) {
  SagaRow left = NewTrip(7);
  left.due_ms = NowMs() + 3'600'000;  // as if its caller had begun with a clock an hour ahead, and died
  ASSERT_TRUE(agency_.Begin(plain_, &left).ok());
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_EQ(agency_.Find(3, 7).state, kBooked);
}

// Property: of one who takes a step and one who takes it back, one wins.
TEST_P(SagaTest, AStateThatHasMovedIsNotReplaced) {
  Context ctx(kMaxTestWait);
  const auto refuse = [&](const SagaRow& row) {
    SagaRow refused = row;
    refused.state = kRefused;
    refused.open = false;
    const absl::Status status = RunHere(agency_.trips.Replace(ctx, row, &refused));
    EXPECT_TRUE(status.ok()) << status;
    return refused.state;
  };
  SagaRow row = NewTrip(7), other = NewTrip(8);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  ASSERT_TRUE(agency_.Begin(plain_, &other).ok());
  const SagaRow before = row;
  ASSERT_TRUE(agency_.Finish(&row).ok());
  EXPECT_EQ(refuse(before), kBooked);
  EXPECT_EQ(agency_.Find(3, 7).state, kBooked);
  EXPECT_EQ(refuse(other), kRefused);
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_EQ(agency_.Find(3, 8).state, kRefused);
}

// An application may delete rows that have ended. Whoever still has one goes no further.
TEST_P(SagaTest, ARowThatIsForgottenTakesNoMoreSteps) {
  SagaRow row = NewTrip(7), other = NewTrip(8);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  const auto forget = [](SqlSession& s) { return s.Execute("DELETE FROM trips WHERE id = 7"); };
  ASSERT_TRUE(agency_.Begin(plain_, &other, forget).ok());
  EXPECT_TRUE(absl::IsNotFound(agency_.Finish(&row)));
  EXPECT_THAT(agency_.asked, ElementsAre("hotel 7.0"));
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_EQ(agency_.Find(3, 8).state, kBooked);
}

// Property: a step that fails holds up no other saga.
TEST_P(SagaTest, TheThreadFinishesAllThatItCan) {
  constexpr uint64_t kTrips = 150;  // more than it reads at once
  for (uint64_t id = 1; id <= kTrips; ++id) {
    SagaRow row = NewTrip(id);
    ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  }
  agency_.journey = [](std::string_view name) {
    return name.ends_with("5.0") ? absl::UnavailableError("closed") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(agency_.FinishAll()));
  agency_.journey = [](std::string_view) { return absl::OkStatus(); };
  agency_.asked.clear();
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_EQ(agency_.asked.size(), 2 * kTrips / 10);
}

// Property: a step that waits for a silent service delays few other sagas.
TEST_P(SagaTest, TheThreadFinishesSomeBesideEachOther) {
  constexpr int kTrips = 4;
  for (uint64_t id = 1; id <= kTrips; ++id) {
    SagaRow row = NewTrip(id);
    ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  }
  std::atomic<int> travelling{0};
  agency_.journey = [&](std::string_view) {
    ++travelling;
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (travelling < kTrips && !deadline.Expired()) BetweenLooks();
    EXPECT_GE(travelling, kTrips);
    return absl::OkStatus();
  };
  EXPECT_TRUE(agency_.FinishAll().ok());
  EXPECT_EQ(agency_.asked.size(), 2u * kTrips);
}

TEST_P(SagaTest, ARefusalEndsARoundAndARepetitionBeginsTheNext) {
  const NamedRequest request("key", "Rome");
  bool full = true;
  agency_.desk = [&] { return full ? absl::FailedPreconditionError("it is full") : absl::OkStatus(); };
  SagaRow row = NewTrip(7), again = NewTrip(8);
  ASSERT_TRUE(agency_.Begin(request.ctx(), &row).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(agency_.Finish(&row)));
  EXPECT_EQ(agency_.Find(3, 7).state, kRefused);
  EXPECT_EQ(agency_.Find(3, 7).due_ms, 77);
  EXPECT_TRUE(agency_.Finish(&row).ok());
  full = false;
  ASSERT_TRUE(agency_.FinishAll().ok());
  EXPECT_EQ(agency_.Find(3, 7).state, kRefused) << "nobody has asked again";
  ASSERT_TRUE(agency_.Begin(request.ctx(), &again).ok());
  ASSERT_TRUE(agency_.Finish(&again).ok());
  EXPECT_EQ(again.state, kBooked);
  EXPECT_THAT(agency_.asked, ElementsAre("hotel 7.0", "hotel 7.1", "flight 7.1"));
}

// Property: a name whose row is forgotten, as it is tried again, is of a new one.
TEST_P(SagaTest, ARepetitionOfAForgottenRefusalIsNew) {
  const NamedRequest request("key", "Rome");
  bool full = true;
  agency_.desk = [&] { return full ? absl::FailedPreconditionError("it is full") : absl::OkStatus(); };
  SagaRow row = NewTrip(7), again = NewTrip(8), third = NewTrip(9);
  ASSERT_TRUE(agency_.Begin(request.ctx(), &row).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(agency_.Finish(&row)));
  full = false;
  const auto forget = [](SqlSession& s) { return s.Execute("DELETE FROM trips WHERE id = 7"); };
  ASSERT_TRUE(agency_.Begin(request.ctx(), &again, forget).ok());
  EXPECT_EQ(again.id, 8u);
  ASSERT_TRUE(agency_.Finish(&again).ok());
  ASSERT_TRUE(agency_.Begin(request.ctx(), &third).ok());
  EXPECT_EQ(third.id, 8u);
  EXPECT_EQ(agency_.Find(3, 7).id, 0u);
  EXPECT_THAT(agency_.asked, ElementsAre("hotel 7.0", "hotel 8.0", "flight 8.0"));
}

// Property S3: who comes second goes on from what the first has written.
TEST_P(SagaTest, OfTwoAttemptsOneWrites) {
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  bool other = true;
  agency_.desk = [&] {
    if (!std::exchange(other, false)) return absl::OkStatus();
    return agency_.FinishAll();  // another attempt takes all steps meanwhile
  };
  ASSERT_TRUE(agency_.Finish(&row).ok());
  EXPECT_EQ(row.state, kBooked);
  EXPECT_EQ(row.bytes, "Ann, slept, flew");
  EXPECT_EQ(agency_.Find(3, 7).bytes, "Ann, slept, flew");
  EXPECT_THAT(agency_.asked, ElementsAre("hotel 7.0", "hotel 7.0", "flight 7.0"));
  EXPECT_THAT(agency_.moved, ElementsAre(kFlight, kBooked));
}

TEST_P(SagaTest, ARefusalOfTheSecondAttemptIsNotTold) {
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  bool other = true;
  agency_.desk = [&]() -> absl::Status {
    if (!std::exchange(other, false)) return absl::OkStatus();
    EXPECT_TRUE(agency_.FinishAll().ok());
    return absl::FailedPreconditionError("it is full meanwhile");
  };
  const absl::Status finished = agency_.Finish(&row);
  EXPECT_TRUE(finished.ok()) << finished;
  EXPECT_EQ(row.state, kBooked);
  EXPECT_EQ(agency_.Find(3, 7).state, kBooked);
}

TEST_P(SagaTest, WhatGoesWithAnOutcomeIsWrittenWithIt) {
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(agency_.Begin(plain_, &row).ok());
  EXPECT_THAT(agency_.moved, IsEmpty());
  agency_.ledger = [] { return absl::ResourceExhaustedError("full"); };
  EXPECT_TRUE(absl::IsResourceExhausted(agency_.Finish(&row)));
  EXPECT_EQ(agency_.Find(3, 7).state, kHotel);
  agency_.ledger = [] { return absl::OkStatus(); };
  ASSERT_TRUE(agency_.Finish(&row).ok());
  EXPECT_THAT(agency_.moved, ElementsAre(kFlight, kFlight, kBooked));
}

TEST_P(SagaTest, AStepWithoutAnOutcomeIsAnError) {
  const std::unique_ptr<SqlDatabase> db = Open(dir_, GetParam(), "idle");
  Saga idle(*db, "trips", [](Context&, SagaRow&) -> Coroutine { co_return absl::OkStatus(); });
  Context ctx(kMaxTestWait);
  SagaRow row = NewTrip(7);
  ASSERT_TRUE(RunHere(idle.Begin(ctx, {}, Saga::kNeverAgain, &row)).ok());
  EXPECT_EQ(RunHere(idle.Finish(ctx, &row)).code(), absl::StatusCode::kInternal);
}

// Property S4: a process that is killed at any point leaves a saga that the next one finishes.
TEST(SagaKill, TheNextProcessGoesOn) {
  for (int point = 0; point < 4; ++point) {
    SCOPED_TRACE(Join("point ", point));
    const TempDir dir;
    const auto open = [&] { return Open(dir, SagaIn::kFile, "trips"); };
    auto process = deploy::Process::Spawn(
        {.name = "agency", .run = [&] {
           const auto reach = [&](int here) {
             if (here == point) raise(SIGKILL);
           };
           Agency agency(open());
           agency.desk = [&] {
             reach(static_cast<int>(agency.asked.size()));  // 1 and 2: asked, and nothing written
             return absl::OkStatus();
           };
           const Context plain(kMaxTestWait);
           SagaRow row = NewTrip(7);
           if (!agency.Begin(plain, &row).ok()) return;
           reach(0);
           if (!agency.Finish(&row).ok()) return;
           reach(3);
         }});
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE((*process)->AwaitEnd(Deadline::In(kMaxTestWait)));
    ASSERT_EQ((*process)->HowItEnded(), "was killed by signal 9 (Killed)");
    Agency next(open());
    ASSERT_TRUE(next.FinishAll().ok());
    EXPECT_EQ(next.Find(3, 7).bytes, "Ann, slept, flew");
    EXPECT_EQ(next.Find(3, 7).state, kBooked);
    EXPECT_EQ(next.asked.size(), point >= 3 ? 0u : point == 2 ? 1u : 2u);
  }
}

TEST_P(SagaTest, ARefusalByTheServiceItselfStandsForItsRound) {
  const auto db = Open(dir_, GetParam(), Join("refusals_", static_cast<int>(GetParam())));
  absl::Status next = absl::FailedPreconditionError("too early");
  int decided = 0;
  const auto decide = [&](uint64_t id, uint32_t round) {
    Context ctx(kMaxTestWait);
    return RunHere(DecideOnce(ctx, *db, id, round, [&](SqlSession&) { return ++decided, next; }));
  };
  const absl::Status refused = decide(7, 0);
  EXPECT_EQ(refused, next);
  next = absl::OkStatus();
  EXPECT_EQ(decide(7, 0), refused);
  EXPECT_EQ(decided, 1);
  EXPECT_TRUE(decide(7, 1).ok());
  EXPECT_TRUE(decide(8, 0).ok());
  next = absl::UnavailableError("the desk is closed");
  EXPECT_EQ(decide(9, 0), next);
  next = absl::OkStatus();
  EXPECT_TRUE(decide(9, 0).ok()) << "the desk that was closed has not decided";
}

}  // namespace
}  // namespace curtail::apps
