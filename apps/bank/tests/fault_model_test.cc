// SPDX-License-Identifier: Apache-2.0
//
// Random customers at once, beside a model of what each was told, while each service and each shard of the ledger dies and stands
// still, the ledger has no room to write, and the clock is an hour wrong.
//
// Property, once the bank is idle:
//  1. Each posting sums to 0, and so do all balances; nothing is in transit.
//  2. No account was ever below its limit, and each balance is the sum of the entries before.
//  3. An acknowledged order is booked once, a refused one never, one of unknown outcome at most once and on both sides.
//  4. A customer sees its own writes, meanwhile too.
//  5. The activity of an account has each entry once, in order.
//  6. The debt of a card and what is available are its limit. A loan is paid out once, and has the instalments that were paid.
//  7. Another's account is as one that does not exist, meanwhile too.
//  8. `bank audit` finds no fault: the chain of decisions has each order that was booked.
//
// With CURTAIL_LONG, each service dies and stands still in each round, and PostgreSQL has its turn. With CURTAIL_TEST_SECONDS, rounds
// begin for so long.
#include <cstdlib>

#include "apps/bank/tests/fault_model_testing.h"
#include "apps/kit/testing/faults.h"
#include "apps/kit/testing/preload.h"

namespace curtail::bank {
namespace {

constexpr int kActors = 5, kHourS = 3600;

apps::Fault Both(const apps::Fault& one, const apps::Fault& other) {
  return {.name = one.name + ", and " + other.name,
          .strike = [=] { one.strike(), other.strike(); },
          .mend = [=] { other.mend(), one.mend(); }};
}

class BankFaults : public Parted<BankModelTest>, public testing::WithParamInterface<const char*> {
 protected:
  bool InFiles() const override { return std::string_view(GetParam()) == "files"; }
  apps::Deployed Form() const override {
    apps::Deployed form = Parted::Form();
    if (!InFiles()) form.set.emplace_back("postgresql.replicas=1");
    form.options.admin = true;
    form.options.launch.wrapper = clock_.Words();
    return form;
  }

  void AddFaults(apps::FaultSchedule* schedule) {
    const bool all = Repeats(0, 1) > 0;
    std::vector<apps::Fault> kills, stalls;
    for (const char* const service :
         {"unique-id",   "user",         "accounts", "access-control",    "payments",         "activity",
          "credit-card", "card-payment", "new-card", "credit-scoring",    "loan-info",        "loan-request",
          "mortgage",    "deposits",     "contact",  "wealth-management", "bank-info-search", "customer-info",
          "offers",      "front-end"}) {
      kills.push_back(apps::KillOf(app_.get(), service));
      stalls.push_back(apps::StallOf(app_.get(), service));
    }
    const auto add = [&](std::vector<apps::Fault> faults, size_t count) {
      for (size_t i = 0; i < count && !faults.empty(); ++i) {
        const size_t chosen = rng_.Below(faults.size());
        schedule->Add(faults[chosen]);
        faults.erase(faults.begin() + static_cast<std::ptrdiff_t>(chosen));
      }
    };
    add(kills, all ? kills.size() : 8);
    add(stalls, all ? stalls.size() : 4);
    for (int shard = 0; shard < static_cast<int>(kShards); ++shard) {
      schedule->Add(apps::KillOf(app_.get(), "posting", shard));
      schedule->Add(apps::StallOf(app_.get(), "posting", shard));
    }
    schedule->Add(apps::KillOf(app_.get(), "posting"));
    if (InFiles()) schedule->Add(apps::FullDiskOf(app_.get(), "posting", /*refuses=*/true));
    else schedule->Add(apps::KillOf(app_.get(), "postgresql"));
    for (const int seconds : {kHourS, -kHourS}) schedule->Add(apps::ClockStep(&clock_, seconds));
    // Orders that are left open then are gone on with once the clock is right.
    schedule->Add(Both(apps::ClockStep(&clock_, kHourS), apps::KillOf(app_.get(), "posting")));
  }
  void Round() {
    apps::Actors actors;
    for (int i = 0; i < kActors; ++i) actors.Begin(rng_.Next(), [&](Rng& rng) { actors.Note(Act(rng)); });
    apps::FaultSchedule schedule(rng_.Next(), &actors);
    AddFaults(&schedule);
    schedule.Run({.during = [this] { ReadBalances(); }});
    actors.Rest();
    if (!HasFailure()) JudgeAll();
  }

  Rng rng_{TestSeed()};
  const apps::SetClock clock_;
};

// The gate takes the files; CURTAIL_LONG takes PostgreSQL, too.
std::vector<const char*> Stores() {
  return Repeats(0, 1) == 0 ? std::vector{"files"} : std::vector{"files", "postgresql"};
}
INSTANTIATE_TEST_SUITE_P(Stores, BankFaults, testing::ValuesIn(Stores()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(BankFaults, MoneyIsNeverWrongStress) {
  const char* const given = std::getenv("CURTAIL_TEST_SECONDS");
  const Deadline end = Deadline::In(std::chrono::seconds(given == nullptr ? 0 : std::atoi(given)));
  do {
    Round();
  } while (!HasFailure() && !end.Expired());
}

}  // namespace
}  // namespace curtail::bank
