// SPDX-License-Identifier: Apache-2.0
//
// Deposits for a term and mortgages, as customers of the bank use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/bank/common/interest.h"
#include "apps/bank/load/applicant.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/testing/preload.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"
#include "services.curtail.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

constexpr int kDaySeconds = 86'400;

class DepositTest : public BankFaultTest {
 protected:
  absl::Status Open(const Own& own, int64_t cents, uint32_t days, Deposit* reply, const std::string& key = {},
                    Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    DepositRequest request;
    request.set_token(own.token), request.set_from(own.id), request.set_cents(cents), request.set_days(days);
    return Send(&Bank::Stub::OpenDeposit, request, reply, key, by, patience);
  }
  static PaymentRequest RequestOf(const Own& own, uint64_t id) {
    PaymentRequest request;
    request.set_token(own.token), request.set_id(id);
    return request;
  }
  absl::Status LookAt(const Own& own, uint64_t id, Deposit* reply) const {
    return Send(&Bank::Stub::GetDeposit, RequestOf(own, id), reply);
  }
  // Again while the money is on its way to the deposit.
  absl::Status Break(const Own& own, uint64_t id, Deposit* reply, Channel* by = nullptr) {
    return Answered(
        [&] { return Send(&Bank::Stub::BreakDeposit, RequestOf(own, id), reply, {}, by, kPatience); });
  }
  // Accrues all days up to `ahead` days from now.
  absl::Status Accrue(int ahead) {
    AccrualDay day;
    day.set_day(static_cast<uint32_t>(apps::NowMs() / (1000 * int64_t{kDaySeconds}) + ahead));
    const std::unique_ptr<Channel> channel = std::make_unique<Channel>(&client_, app_->AddressOf("deposits"));
    Context ctx(kMaxTestWait);
    apps::Nothing nothing;
    return Deposits::Stub(channel.get()).Accrue(ctx, day, &nothing);
  }
};

using PartedDepositTest = Parted<DepositTest>;

TEST_F(DepositTest, GoesBackWithoutInterestBeforeItsEnd) {
  for (const bool same_shard : {true, false}) {
    const Own& own = all_[0];
    Deposit deposit, again;
    do ASSERT_TRUE(Open(own, 100, 30, &deposit).ok());
    while ((apps::PartOf(deposit.id(), kShards) == own.shard()) != same_shard);
    const int64_t before = CentsOf(own);
    EXPECT_EQ(deposit.state(), Deposit::RUNNING);
    EXPECT_EQ(deposit.rate_bp(), 100u);
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = Break(own, deposit.id(), &again);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(again.state(), Deposit::PAID_BACK);
      EXPECT_EQ(again.interest_cents(), 0);
    }
    AwaitCents(own, before + 100);
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(PartedDepositTest, AccruesEachDayOnceAndGoesBackWithAll) {
  const apps::SetClock clock;
  if (clock.Words().empty())
    GTEST_SKIP() << "2026-11-29: with a sanitizer, programs go without a preloaded clock";
  const Own &early = all_[0], &late = all_[1];
  Deposit first, second, seen;
  ASSERT_TRUE(Open(early, 9'000, 30, &first).ok());
  ASSERT_TRUE(Open(late, 9'000, 30, &second).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Accrue(1))) << "that day has not begun";
  ASSERT_TRUE(Accrue(0).ok());
  ASSERT_TRUE(LookAt(early, first.id(), &seen).ok());
  EXPECT_LE(seen.accrued_days(), 1u);  // 1 if midnight has just passed

  ASSERT_TRUE(app_->Restart("deposits", {.wrapper = clock.Words()}).ok());
  clock.SetAhead(20 * kDaySeconds);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Accrue(20).ok());
  ASSERT_TRUE(Accrue(7).ok()) << "an earlier day changes nothing";
  ASSERT_TRUE(LookAt(early, first.id(), &seen).ok());
  EXPECT_NEAR(seen.accrued_days(), 20, 1);
  EXPECT_EQ(seen.interest_cents(), DaysInterest(9'000, 100, seen.accrued_days()));
  EXPECT_EQ(Audit(), 0) << "as the books have it";
  ASSERT_TRUE(Break(early, first.id(), &seen).ok());
  EXPECT_EQ(seen.state(), Deposit::PAID_BACK);
  EXPECT_EQ(seen.interest_cents(), 0);
  AwaitCents(early, kDeposit);

  clock.SetAhead(40 * kDaySeconds);
  ASSERT_TRUE(Accrue(40).ok());
  ASSERT_TRUE(LookAt(late, second.id(), &seen).ok());
  EXPECT_EQ(seen.state(), Deposit::ENDED);
  EXPECT_EQ(seen.accrued_days(), 30u);
  EXPECT_EQ(seen.interest_cents(), 7);  // 7.397
  EXPECT_EQ(Audit(), 0);
  ASSERT_TRUE(Break(late, second.id(), &seen).ok());
  EXPECT_EQ(seen.interest_cents(), 7);
  AwaitCents(late, kDeposit + 7);
  ASSERT_TRUE(LookAt(early, first.id(), &seen).ok());
  EXPECT_LE(seen.accrued_days(), 21u) << "a broken deposit accrues no more";
  EXPECT_EQ(Audit(), 0);
}

// A customer who has nothing keeps the key of a refused request, and repeats it when it has money.
TEST_F(PartedDepositTest, EarnsFromTheDayOnWhichItIsBooked) {
  const apps::SetClock clock;
  if (clock.Words().empty())
    GTEST_SKIP() << "2026-11-30: with a sanitizer, programs go without a preloaded clock";
  const Own &own = all_[0], &other = Other(own, /*same_shard=*/true);
  Deposit deposit;
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(own, 2 * kDeposit, 30, &deposit, "early")));
  for (const char* service : {"deposits", "posting"})
    ASSERT_TRUE(app_->Restart(service, {.wrapper = clock.Words()}).ok());
  clock.SetAhead(40 * kDaySeconds);
  ASSERT_TRUE(Pay(PaymentOf(other, own, kDeposit)).ok());
  const absl::Status opened = Open(own, 2 * kDeposit, 30, &deposit, "early");
  ASSERT_TRUE(opened.ok()) << opened;
  ASSERT_TRUE(Accrue(40).ok());
  ASSERT_TRUE(LookAt(own, deposit.id(), &deposit).ok());
  EXPECT_LE(deposit.accrued_days(), 1u);  // 1 if midnight has just passed
  EXPECT_EQ(deposit.state(), Deposit::RUNNING);
  EXPECT_EQ(Audit(), 0);
}

TEST_F(DepositTest, ARepetitionHasTheSameAnswerAndOtherContentNone) {
  const Own& own = all_[0];
  Deposit first, again;
  ASSERT_TRUE(Open(own, 1'000, 90, &first, "a").ok());
  ASSERT_TRUE(Open(own, 1'000, 90, &again, "a").ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Open(own, 1'000, 30, &again, "a")));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(own, kDeposit, 90, &again, "b"))) << "the account has less";
  EXPECT_EQ(CentsOf(own), kDeposit - 1'000);
}

TEST_F(DepositTest, TheAuditNamesTheDepositThatIsWrong) {
  const Own& own = all_[0];
  Deposit deposit;
  ASSERT_TRUE(Open(own, 1'000, 90, &deposit).ok());
  std::string text;
  EXPECT_EQ(Audit(&text), 0) << text;
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/deposits.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_TRUE((*kept)->Execute("UPDATE terms SET cents = cents + 1 WHERE id = ?1", {deposit.id()}).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);  // the money may be on its way
  while (Audit(&text) != 99 && !deadline.Expired()) BetweenLooks();
  EXPECT_THAT(text, HasSubstr(std::to_string(deposit.id())));
}

TEST_F(DepositTest, RefusesBadInput) {
  const Own& own = all_[0];
  Deposit deposit;
  for (const int64_t cents : {int64_t{0}, int64_t{-1}, apps::kMostCents + 1,
                              std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    EXPECT_TRUE(absl::IsInvalidArgument(Open(own, cents, 30, &deposit))) << cents;
  for (const uint32_t days : {0u, 1u, 31u, 366u, 4294967295u})
    EXPECT_TRUE(absl::IsInvalidArgument(Open(own, 1, days, &deposit))) << days;
  EXPECT_EQ(CentsOf(own), kDeposit);
}

TEST_F(DepositTest, AnotherCustomersIsAsIfItWereNotThere) {
  const Own &ann = all_[0], &bob = Other(ann, /*same_shard=*/true);
  constexpr uint64_t kUnknown = 987654321;
  Deposit theirs, seen;
  ASSERT_TRUE(Open(bob, 50, 30, &theirs).ok());
  const auto all = [&](uint64_t id) {
    return std::array<absl::Status, 2>{LookAt(ann, id, &seen), Break(ann, id, &seen)};
  };
  const auto found = all(theirs.id()), missing = all(kUnknown);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(absl::IsNotFound(found[i])) << i << " " << found[i];
    EXPECT_EQ(WordsOf(found[i], theirs.id()), WordsOf(missing[i], kUnknown)) << i;
  }
  Own elsewhere = ann;
  elsewhere.id = bob.id;
  EXPECT_TRUE(absl::IsNotFound(Open(elsewhere, 1, 30, &seen)));
  elsewhere.id = theirs.id(), elsewhere.token = bob.token;
  EXPECT_TRUE(absl::IsNotFound(Pay(PaymentOf(elsewhere, ann, 1)))) << "a deposit pays nobody";
  EXPECT_EQ(CentsOf(bob), kDeposit - 50);
}

TEST_F(PartedDepositTest, DepositsOutliveTheServicesThatKeepThem) {
  const uint64_t seed = TestSeed();
  const size_t accounts = all_.size() / 6;  // of each customer
  std::array<int64_t, kCustomers> rest{};
  ActWhileKilled({"deposits", "posting", "deposits", "posting"}, [&](int customer) {
    const std::unique_ptr<Channel> channel = Connect();
    Rng rng(seed + static_cast<uint64_t>(customer));
    const Own& own = all_[static_cast<size_t>(customer) * accounts];
    int64_t& cents = rest[static_cast<size_t>(customer)];
    for (int i = 0; !stop_.load(); ++i) {
      const auto put = static_cast<int64_t>(1 + rng.Below(100));
      Deposit deposit;
      const std::string key = Join("deposit ", i);
      absl::Status status =
          Answered([&] { return Open(own, put, 30, &deposit, key, channel.get(), kPatience); });
      ASSERT_TRUE(status.ok()) << status;
      cents -= put;
      if (rng.Below(10) == 0 && cents > -kDeposit / 2) continue;
      status = Break(own, deposit.id(), &deposit, channel.get());
      ASSERT_TRUE(status.ok()) << status;
      cents += put;
    }
  });
  for (size_t i = 0; i < rest.size(); ++i) AwaitCents(all_[i * accounts], kDeposit + rest[i]);
  EXPECT_EQ(Audit(), 0);
}

class MortgageTest : public BankTest {
 protected:
  absl::Status Apply(const Own& who, int64_t value, int64_t cents, Loan* reply,
                     const std::string& key = {}) const {
    MortgageApplication request;
    request.set_token(who.token), request.set_value_cents(value), request.set_cents(cents),
        request.set_months(240);
    *request.mutable_features() = Applicant(/*good=*/true);
    return Send(&Bank::Stub::ApplyForMortgage, request, reply, key);
  }
};

TEST_F(MortgageTest, IsOfferedByTheValue) {
  const Own& own = all_[0];
  Loan loan, again;
  constexpr int64_t kValue = 10'000'000;
  ASSERT_TRUE(Apply(own, kValue, kValue * 8 / 10 + 1, &loan, "a").ok());
  EXPECT_EQ(loan.state(), Loan::DECLINED);
  EXPECT_THAT(loan.refusal(), HasSubstr("80 % of the value"));
  ASSERT_TRUE(Apply(own, kValue, kValue * 8 / 10 + 1, &again, "a").ok());
  EXPECT_EQ(loan.SerializeAsString(), again.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Apply(own, kValue, kValue / 10, &again, "a")));
  ASSERT_TRUE(Send(
                  &Bank::Stub::GetLoan,
                  [&] {
                    PaymentRequest request;
                    request.set_token(own.token), request.set_id(loan.id());
                    return request;
                  }(),
                  &again)
                  .ok());
  EXPECT_EQ(again.refusal(), loan.refusal());

  ASSERT_TRUE(Apply(own, kValue, kValue * 8 / 10, &loan).ok());
  ASSERT_EQ(loan.state(), Loan::OFFERED) << loan.ShortDebugString();
  EXPECT_EQ(loan.quote().product(), "mortgage");
  LoanAcceptance accepted;
  accepted.set_token(own.token), accepted.set_id(loan.id()), accepted.set_account(own.id);
  ASSERT_TRUE(Send(&Bank::Stub::AcceptLoan, accepted, &loan).ok());
  AwaitCents(own, kDeposit + kValue * 8 / 10);
  EXPECT_EQ(Audit(), 0);
}

TEST_F(MortgageTest, RefusesBadInput) {
  const Own& own = all_[0];
  Loan loan;
  for (const int64_t value : {int64_t{0}, int64_t{-1}, apps::kMostCents + 1})
    EXPECT_TRUE(absl::IsInvalidArgument(Apply(own, value, 1'000'000, &loan))) << value;
  for (const int64_t cents : {int64_t{0}, int64_t{-1}, int64_t{999'999}, int64_t{100'000'001}})
    EXPECT_TRUE(absl::IsInvalidArgument(Apply(own, apps::kMostCents, cents, &loan))) << cents;
  MortgageQuoteRequest request;
  LoanQuote quote;
  request.set_value_cents(2'000'000), request.set_cents(1'600'000), request.set_months(120);
  ASSERT_TRUE(Send(&Bank::Stub::QuoteMortgage, request, &quote).ok());
  EXPECT_EQ(quote.instalments_size(), 120);
  request.set_cents(1'600'001);
  EXPECT_TRUE(absl::IsFailedPrecondition(Send(&Bank::Stub::QuoteMortgage, request, &quote)));
}

}  // namespace
}  // namespace curtail::bank
