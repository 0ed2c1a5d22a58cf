// SPDX-License-Identifier: Apache-2.0
//
// Loans of the bank, as its customers take and repay them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/bank/load/applicant.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/testing/preload.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

class LoanTest : public BankFaultTest {
 protected:
  static constexpr int64_t kCents = 200'000;
  static constexpr uint32_t kMonths = 24;
  static constexpr size_t kCustomersThere = 6, kAccounts = 4;  // of each

  static LoanApplication ApplicationOf(const Own& who, bool good = true) {
    LoanApplication request;
    request.set_token(who.token), request.set_product("personal");
    request.set_cents(kCents), request.set_months(kMonths);
    *request.mutable_features() = Applicant(good);
    return request;
  }
  absl::Status Apply(const LoanApplication& request, Loan* reply, const std::string& key = {}) const {
    return Send(&Bank::Stub::ApplyForLoan, request, reply, key);
  }
  Loan Offer(const Own& who) const {
    Loan loan;
    const absl::Status status = Apply(ApplicationOf(who), &loan);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(loan.state(), Loan::OFFERED) << loan.DebugString();
    return loan;
  }
  absl::Status Accept(const Own& who, uint64_t id, Loan* reply, Channel* by = nullptr,
                      Nanos patience = kMaxTestWait) const {
    LoanAcceptance request;
    request.set_token(who.token), request.set_id(id), request.set_account(who.id);
    return Send(&Bank::Stub::AcceptLoan, request, reply, {}, by, patience);
  }
  Loan Running(const Own& who) const {
    Loan loan;
    const int64_t before = CentsOf(who);
    const absl::Status status = Accept(who, Offer(who).id(), &loan);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(loan.state(), Loan::RUNNING);
    AwaitCents(who, before + kCents);
    return loan;
  }
  absl::Status Repay(const Own& from, uint64_t loan, uint32_t number, const std::string& key = {},
                     Payment* reply = nullptr, Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    LoanRepayment request;
    request.set_token(from.token), request.set_loan(loan);
    request.set_number(number), request.set_from(from.id);
    Payment ignored;
    return Send(&Bank::Stub::RepayLoan, request, reply == nullptr ? &ignored : reply, key, by, patience);
  }
  absl::Status LookAt(const Own& who, uint64_t id, Loan* reply) const {
    PaymentRequest request;
    request.set_token(who.token), request.set_id(id);
    return Send(&Bank::Stub::GetLoan, request, reply);
  }
  // Moves all but `left` cents of an account elsewhere.
  void Spend(const Own& own, int64_t left) const {
    for (int64_t more = CentsOf(own) - left; more > 0; more = CentsOf(own) - left) {
      const absl::Status status = Pay(PaymentOf(own, Other(own, true), std::min<int64_t>(more, 100'000)));
      ASSERT_TRUE(status.ok()) << status;
    }
  }
};

using PartedLoanTest = Parted<LoanTest>;

TEST_F(LoanTest, IsPaidOutOnceAndRepaidToTheCent) {
  size_t customer = 0;
  for (const bool same_shard : {true, false}) {
    Own own;
    Loan loan;
    do {  // one customer has few offers
      ASSERT_LT(customer, kCustomersThere * kMostApplications);
      own = all_[customer++ % kCustomersThere * kAccounts];
      loan = Offer(own);
    } while ((apps::PartOf(loan.id(), kShards) == own.shard()) != same_shard);
    int64_t sum = CentsOf(own);
    for (const Own& other : all_) {  // for the interest
      const int64_t cents = other.owner == own.owner && other.id != own.id ? CentsOf(other) : 0;
      if (cents == 0) continue;
      ASSERT_TRUE(Pay(PaymentOf(other, own, cents)).ok());
      sum += cents;
    }
    AwaitCents(own, sum);
    const int64_t before = CentsOf(own);
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = Accept(own, loan.id(), &loan);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(loan.state(), Loan::RUNNING);
    }
    AwaitCents(own, before + kCents);
    int64_t paid = 0, debt = kCents;
    for (uint32_t number = 1; number <= kMonths; ++number) {
      Payment payment;
      const absl::Status status = Repay(own, loan.id(), number, {}, &payment);
      ASSERT_TRUE(status.ok()) << number << " " << status;
      const Instalment& due = loan.quote().instalments(static_cast<int>(number) - 1);
      EXPECT_EQ(payment.cents(), due.cents());
      paid += due.cents(), debt -= due.cents() - due.interest_cents();
      if (number % 12 != 1) continue;
      Loan seen;
      ASSERT_TRUE(LookAt(own, loan.id(), &seen).ok());
      EXPECT_EQ(seen.debt_cents(), debt);
      EXPECT_EQ(seen.state(), Loan::RUNNING);
      EXPECT_TRUE(seen.quote().instalments(static_cast<int>(number) - 1).paid());
      EXPECT_FALSE(seen.quote().instalments(static_cast<int>(number)).paid());
    }
    EXPECT_EQ(paid, kCents + loan.quote().interest_cents());
    AwaitCents(own, before - loan.quote().interest_cents());
    ASSERT_TRUE(LookAt(own, loan.id(), &loan).ok());
    EXPECT_EQ(loan.state(), Loan::REPAID);
    EXPECT_EQ(loan.debt_cents(), 0);
    EXPECT_TRUE(absl::IsFailedPrecondition(Repay(own, loan.id(), kMonths)));
  }
  EXPECT_EQ(Audit(), 0);
}

TEST_F(LoanTest, ARepetitionHasTheSameAnswerAndOtherContentNone) {
  const Own& own = all_[0];
  Loan first, again;
  ASSERT_TRUE(Apply(ApplicationOf(own), &first, "a").ok());
  ASSERT_TRUE(Apply(ApplicationOf(own), &again, "a").ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  LoanApplication other = ApplicationOf(own);
  other.set_months(kMonths + 1);
  EXPECT_TRUE(absl::IsAlreadyExists(Apply(other, &again, "a")));

  const Loan loan = Running(own);
  Payment paid, repeated;
  ASSERT_TRUE(Repay(own, loan.id(), 1, "r", &paid).ok());
  ASSERT_TRUE(Repay(own, loan.id(), 1, "r", &repeated).ok());
  EXPECT_EQ(paid.SerializeAsString(), repeated.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Repay(own, loan.id(), 2, "r")));
  EXPECT_TRUE(absl::IsFailedPrecondition(Repay(own, loan.id(), 1, "s"))) << "it is paid";
  EXPECT_TRUE(absl::IsFailedPrecondition(Repay(own, loan.id(), 3))) << "the second is the next";
  PaymentRequest look;
  look.set_token(own.token), look.set_id(paid.id());
  ASSERT_TRUE(Send(&Bank::Stub::GetLoanRepayment, look, &repeated).ok());
  EXPECT_EQ(repeated.cents(), paid.cents());
}

TEST_F(LoanTest, ARefusedRepaymentTakesNoInstalment) {
  const Own &own = all_[0], &full = all_[1];  // of one customer
  const Loan loan = Running(own);
  Spend(own, 1);
  const absl::Status refused = Repay(own, loan.id(), 1, "a");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(CentsOf(own), 1);
  ASSERT_TRUE(Repay(full, loan.id(), 1, "b").ok()) << "another account pays it";
  EXPECT_TRUE(absl::IsFailedPrecondition(Repay(own, loan.id(), 1, "a"))) << "it is paid";
  EXPECT_TRUE(absl::IsFailedPrecondition(Repay(own, loan.id(), 2, "c")));
  EXPECT_EQ(Audit(), 0);
}

// The trigger plays an attempt that finds the instalment not due, and is slow to write that the order is refused.
TEST_F(LoanTest, AnAttemptAfterOneThatWasRefusedIsRefused) {
  const Own& own = all_[0];
  const Loan loan = Running(own);
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/loan-request.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_TRUE((*kept)
                  ->Execute("CREATE TRIGGER late BEFORE UPDATE ON payments WHEN NEW.state = 2"
                            " BEGIN SELECT RAISE(IGNORE); END",
                            {})
                  .ok());
  const absl::Status refused = Repay(own, loan.id(), 2, "second");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  ASSERT_TRUE(Repay(own, loan.id(), 1, "first").ok());
  const int64_t before = CentsOf(own);
  EXPECT_EQ(Repay(own, loan.id(), 2, "second"), refused) << "the order has this answer, once it is written";
  EXPECT_EQ(CentsOf(own), before);
  ASSERT_TRUE((*kept)->Execute("DROP TRIGGER late", {}).ok());
  EXPECT_EQ(Repay(own, loan.id(), 2, "second"), refused);
  EXPECT_EQ(CentsOf(own), before);
  EXPECT_TRUE(Repay(own, loan.id(), 2, "second").ok()) << "a repetition of a refused order tries again";
  EXPECT_EQ(CentsOf(own), before - loan.quote().instalments(1).cents());
  EXPECT_EQ(Audit(), 0);
}

TEST_F(LoanTest, TheAuditNamesTheLoanThatIsWrong) {
  const Own& own = all_[0];
  const Loan loan = Running(own);
  ASSERT_TRUE(Repay(own, loan.id(), 1).ok());
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/loan-request.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  std::string text;
  const auto alter = [&](const char* sql) { EXPECT_TRUE((*kept)->Execute(sql, {loan.id()}).ok()) << sql; };
  for (const auto& [wrong, right] : std::array<std::pair<const char*, const char*>, 2>{
           {{"UPDATE instalments SET round = round + 1 WHERE loan = ?1",
             "UPDATE instalments SET round = round - 1 WHERE loan = ?1"},
            {"UPDATE instalments SET cents = cents + 1 WHERE loan = ?1 AND number = 5",
             "UPDATE instalments SET cents = cents - 1 WHERE loan = ?1 AND number = 5"}}}) {
    EXPECT_EQ(Audit(&text), 0) << text;
    alter(wrong);
    EXPECT_EQ(Audit(&text), 99) << wrong;
    EXPECT_THAT(text, HasSubstr(std::to_string(loan.id())));
    alter(right);
  }
}

TEST_F(LoanTest, IsDeclinedWithTheReasons) {
  const Own& own = all_[0];
  Loan loan;
  ASSERT_TRUE(Apply(ApplicationOf(own, /*good=*/false), &loan).ok());
  EXPECT_EQ(loan.state(), Loan::DECLINED);
  EXPECT_LT(loan.probability(), 0.5);
  EXPECT_THAT(loan.refusal(), HasSubstr("not probable"));
  ASSERT_EQ(loan.reasons_size(), 4);
  EXPECT_TRUE(absl::IsFailedPrecondition(Accept(own, loan.id(), &loan)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Repay(own, loan.id(), 1)));
  EXPECT_EQ(CentsOf(own), kDeposit);
}

TEST_F(LoanTest, TheBankForgetsOldRefusals) {
  const Own &own = all_[0], &other = all_[kAccounts];
  Loan first, others, offer, loan, again;
  ASSERT_TRUE(Apply(ApplicationOf(other, /*good=*/false), &others).ok());
  ASSERT_TRUE(Apply(ApplicationOf(own), &offer).ok());
  ASSERT_TRUE(Apply(ApplicationOf(own, /*good=*/false), &first, "first").ok());
  for (uint64_t i = 1; i < kMostDeclined; ++i)
    ASSERT_TRUE(Apply(ApplicationOf(own, /*good=*/false), &loan).ok());
  ASSERT_TRUE(LookAt(own, first.id(), &loan).ok());
  ASSERT_TRUE(Apply(ApplicationOf(own, /*good=*/false), &loan).ok());
  EXPECT_TRUE(absl::IsNotFound(LookAt(own, first.id(), &again)));
  EXPECT_TRUE(LookAt(own, loan.id(), &again).ok());
  EXPECT_TRUE(LookAt(own, offer.id(), &again).ok());
  EXPECT_TRUE(LookAt(other, others.id(), &again).ok());
  ASSERT_TRUE(Apply(ApplicationOf(own, /*good=*/false), &again, "first").ok()) << "a repetition";
  EXPECT_EQ(again.id(), first.id());
}

TEST_F(LoanTest, ACustomerHasFewOpenOffers) {
  const Own &own = all_[0], &other = all_[kAccounts];
  Loan loan, again;
  std::vector<Loan> offers;
  ASSERT_TRUE(Apply(ApplicationOf(own, /*good=*/false), &loan).ok()) << "declined, which is not an offer";
  ASSERT_TRUE(Apply(ApplicationOf(own), &loan, "first").ok());
  for (uint64_t i = 1; i < kMostApplications; ++i) offers.push_back(Offer(own));
  const absl::Status refused = Apply(ApplicationOf(own), &again, "one more");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("5 open offers"));
  ASSERT_TRUE(Apply(ApplicationOf(own), &again, "first").ok()) << "a repetition";
  EXPECT_EQ(loan.id(), again.id());
  MortgageApplication house;
  house.set_token(own.token), house.set_value_cents(10'000'000), house.set_cents(1'000'000),
      house.set_months(240);
  *house.mutable_features() = Applicant(/*good=*/true);
  EXPECT_TRUE(absl::IsResourceExhausted(Send(&Bank::Stub::ApplyForMortgage, house, &again)));
  EXPECT_GT(Offer(other).id(), 0u);
  ASSERT_TRUE(Accept(own, offers[0].id(), &again).ok());
  ASSERT_TRUE(Apply(ApplicationOf(own), &again, "one more").ok()) << "one was accepted";
  EXPECT_TRUE(absl::IsResourceExhausted(Apply(ApplicationOf(own), &again)));
}

TEST_F(LoanTest, RefusesBadInput) {
  const Own& own = all_[0];
  Loan loan;
  const auto refused = [&](const LoanApplication& request) {
    const absl::Status status = Apply(request, &loan);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << request.ShortDebugString();
  };
  for (const int64_t cents :
       {int64_t{-1}, int64_t{0}, int64_t{99'999}, int64_t{5'000'001}, INT64_MIN, INT64_MAX}) {
    LoanApplication request = ApplicationOf(own);
    request.set_cents(cents);
    refused(request);
  }
  for (const uint32_t months : {0u, 5u, 85u, UINT32_MAX}) {
    LoanApplication request = ApplicationOf(own);
    request.set_months(months);
    refused(request);
  }
  LoanApplication request = ApplicationOf(own);
  request.set_product("yacht");
  refused(request);
  const int features = request.features_size();
  for (int i = 0; i < features; ++i) {
    request = ApplicationOf(own);
    request.mutable_features()->DeleteSubrange(i, 1);
    refused(request);
    request = ApplicationOf(own);
    request.mutable_features(i)->set_value("-");
    refused(request);
  }
  request = ApplicationOf(own);
  *request.add_features() = request.features(0);
  refused(request);
  for (const char* const name : {"age_in_years", "credit_amount", ""}) {
    request = ApplicationOf(own);
    request.add_features()->set_name(name), request.mutable_features()->rbegin()->set_value("30");
    refused(request);
  }
  const Loan running = Running(own);
  EXPECT_TRUE(absl::IsInvalidArgument(Repay(own, running.id(), 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(Repay(own, running.id(), kMonths + 1)));
  request.set_token("nobody");
  EXPECT_TRUE(absl::IsUnauthenticated(Apply(request, &loan)));
}

TEST_F(LoanTest, AnotherCustomersIsAsIfItWereNotThere) {
  const Own &ann = all_[0], &bob = Other(ann, /*same_shard=*/true);
  constexpr uint64_t kUnknown = 987654321;
  const Loan theirs = Running(bob), offered = Offer(bob);
  Loan seen;
  const auto all = [&](uint64_t running, uint64_t offer) {
    return std::array<absl::Status, 3>{LookAt(ann, running, &seen), Repay(ann, running, 1),
                                       Accept(ann, offer, &seen)};
  };
  const auto found = all(theirs.id(), offered.id()), missing = all(kUnknown, kUnknown);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(absl::IsNotFound(found[i])) << i << " " << found[i];
    EXPECT_EQ(WordsOf(found[i], i == 2 ? offered.id() : theirs.id()), WordsOf(missing[i], kUnknown)) << i;
  }
  Own elsewhere = ann;
  elsewhere.id = bob.id;
  EXPECT_TRUE(absl::IsNotFound(Accept(elsewhere, Offer(ann).id(), &seen))) << "nor to another's account";
  EXPECT_TRUE(absl::IsNotFound(Repay(elsewhere, Running(ann).id(), 1)));
  Own loan = ann;
  loan.id = Running(ann).id();
  EXPECT_TRUE(absl::IsNotFound(Pay(PaymentOf(loan, bob, 1)))) << "a loan pays nobody";
}

TEST_F(PartedLoanTest, AnOfferExpires) {
  const apps::SetClock clock;
  ASSERT_TRUE(app_->Restart("loan-request", {.wrapper = clock.Words()}).ok());
  constexpr int kSevenDays = 7 * 86'400;
  const Own& own = all_[0];
  const Loan early = Offer(own), late = Offer(own);
  Loan loan;
  clock.SetAhead(kSevenDays - 60);
  ASSERT_TRUE(Accept(own, early.id(), &loan).ok());
  clock.SetAhead(kSevenDays + 60);
  EXPECT_TRUE(absl::IsFailedPrecondition(Accept(own, late.id(), &loan)));
  ASSERT_TRUE(LookAt(own, late.id(), &loan).ok());
  EXPECT_EQ(loan.state(), Loan::EXPIRED);
  ASSERT_TRUE(Accept(own, early.id(), &loan).ok()) << "was accepted in time";
  EXPECT_EQ(loan.state(), Loan::RUNNING);
  AwaitCents(own, kDeposit + kCents);
}

TEST_F(PartedLoanTest, AnAcceptedLoanIsPaidOutWithoutItsCaller) {
  const Own& own = all_[0];
  const Loan offer = Offer(own);
  app_->Stall("posting");
  Loan loan;
  // The account is looked up before the decision, so the stall may end this before there is one.
  const absl::Status failed = Accept(own, offer.id(), &loan, nullptr, std::chrono::milliseconds(300));
  EXPECT_TRUE(absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed)) << failed;
  app_->GoOn("posting");
  app_->Kill("loan-request");
  EXPECT_TRUE(app_->Restart("loan-request").ok());
  ASSERT_TRUE(Accept(own, offer.id(), &loan).ok());
  AwaitCents(own, kDeposit + kCents);
}

TEST_F(PartedLoanTest, LoansOutliveTheServicesThatKeepThem) {
  const uint64_t seed = TestSeed();
  const size_t accounts = all_.size() / 6;  // of each customer
  std::array<uint64_t, kCustomers> loans{};
  std::array<uint32_t, kCustomers> paid{};
  ActWhileKilled({"loan-request", "posting", "loan-request", "posting"}, [&](int customer) {
    const std::unique_ptr<Channel> channel = Connect();
    Rng rng(seed + static_cast<uint64_t>(customer));
    uint64_t& id = loans[static_cast<size_t>(customer)];
    uint32_t& number = paid[static_cast<size_t>(customer)];
    const size_t first = static_cast<size_t>(customer) * accounts;
    for (int i = 0; !stop_.load(); ++i) {
      const Own& own = all_[first + rng.Below(accounts)];
      Loan loan;
      if (number % kMonths == 0) {  // a new one
        number = 0;
        const std::string key = Join("loan ", i);
        absl::Status status = Answered([&] {
          return Send(&Bank::Stub::ApplyForLoan, ApplicationOf(own), &loan, key, channel.get(), kPatience);
        });
        ASSERT_TRUE(status.ok()) << status;
        id = loan.id();
        status = Answered([&] { return Accept(own, id, &loan, channel.get(), kPatience); });
        ASSERT_TRUE(status.ok()) << status;
      }
      const absl::Status status = Answered([&] {
        return Repay(own, id, number + 1, Join("instalment ", i), nullptr, channel.get(), kPatience);
      });
      ASSERT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      if (status.ok()) ++number;
    }
  });
  for (size_t i = 0; i < loans.size(); ++i) {
    Loan loan;
    ASSERT_TRUE(LookAt(all_[i * accounts], loans[i], &loan).ok());
    for (int k = 0; k < loan.quote().instalments_size(); ++k)
      EXPECT_EQ(loan.quote().instalments(k).paid(), static_cast<uint32_t>(k) < paid[i]) << k;
  }
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
