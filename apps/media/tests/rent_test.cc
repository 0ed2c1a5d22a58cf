// SPDX-License-Identifier: Apache-2.0
//
// Wallets and rentals of the whole application, and what services do that die between the steps of a rental.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/kit/data/data.h"
#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/configs_to_test.h"
#include "apps/media/common/rentals.h"
#include "apps/media/tests/media_testing.h"
#include "curtail/base/strings.h"
#include "rentals.curtail.h"

namespace curtail::media {
namespace {

using Rents = MediaTest;

TEST_F(Rents, ARentalIsPaidOnceAndItsRefundIsWhole) {
  Rental rental, again;
  const absl::Status rented = RentMovie(0, 1, 3, &rental, "a key");
  ASSERT_TRUE(rented.ok()) << rented;
  EXPECT_EQ(rental.state(), Rental::ACTIVE);
  EXPECT_EQ(rental.cents(), 350);
  EXPECT_EQ(rental.ends_ms() - rental.starts_ms(), 3 * kDayMs);
  ASSERT_TRUE(RentMovie(0, 1, 3, &again, "a key").ok());
  EXPECT_EQ(again.SerializeAsString(), rental.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(RentMovie(0, 1, 4, &again, "a key"))) << "another content";
  EXPECT_EQ(CentsOf(0), kDeposit - 350);
  ASSERT_TRUE(RentMovie(0, 2, 30, &again).ok());
  EXPECT_EQ(CentsOf(0), kDeposit - 350 - 1700);

  ASSERT_TRUE(RefundRental(0, rental.id(), &again).ok());
  EXPECT_EQ(again.state(), Rental::REFUNDED);
  ASSERT_TRUE(RefundRental(0, rental.id(), &again).ok()) << "a repetition";
  EXPECT_EQ(CentsOf(0), kDeposit - 1700);
  EXPECT_TRUE(absl::IsNotFound(RefundRental(1, rental.id(), &again))) << "of another user";
  const std::vector<Rental> mine = RentalsOf(0);
  ASSERT_EQ(mine.size(), 2u);
  EXPECT_EQ(mine[0].days(), 30u) << "the newest first";
  EXPECT_EQ(mine[1].state(), Rental::REFUNDED);
  EXPECT_TRUE(RentalsOf(1).empty());
  EXPECT_EQ(Audited(), 0);
}

TEST_F(Rents, RefuseBadInputAndLeaveNoHold) {
  Wallet wallet;
  EXPECT_TRUE(absl::IsInvalidArgument(Deposit(0, 0, &wallet)));
  EXPECT_TRUE(absl::IsInvalidArgument(Deposit(0, -1, &wallet)));
  EXPECT_TRUE(absl::IsInvalidArgument(Deposit(0, 1'000'000'001, &wallet)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Deposit(1, 100, &wallet, std::string(128, 'k')).ok());
  EXPECT_EQ(CentsOf(1), kDeposit + 100);
  EXPECT_TRUE(absl::IsInvalidArgument(Deposit(1, 100, &wallet, std::string(129, 'k'))));
  Rental rental;
  EXPECT_TRUE(absl::IsInvalidArgument(RentMovie(0, 0, 0, &rental)));
  EXPECT_TRUE(absl::IsInvalidArgument(RentMovie(0, 0, 31, &rental)));
  RentRequest request;
  request.set_movie(1), request.set_days(1);
  Context guest(kMaxTestWait), user(kMaxTestWait), late(kMaxTestWait);
  EXPECT_TRUE(absl::IsUnauthenticated(media().RentMovie(guest, request, &rental)));
  request.set_token(users_[0].token);
  EXPECT_TRUE(absl::IsNotFound(media().RentMovie(user, request, &rental)));
  EXPECT_TRUE(absl::IsNotFound(RefundRental(0, 7, &rental)));

  ASSERT_TRUE(RentMovie(0, 0, 30, &rental).ok());
  ASSERT_TRUE(RentMovie(0, 0, 30, &rental).ok());
  absl::Status status = RentMovie(0, 0, 30, &rental, "a key");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(CentsOf(0), kDeposit - 2 * 1700);
  EXPECT_TRUE(absl::IsFailedPrecondition(RefundRental(0, RentalsOf(0)[0].id(), &rental)));
  ASSERT_TRUE(Deposit(0, 100, &wallet, "pay in").ok());
  ASSERT_TRUE(Deposit(0, 100, &wallet, "pay in").ok());
  EXPECT_EQ(wallet.cents(), kDeposit - 2 * 1700 + 100) << "once";
  EXPECT_TRUE(absl::IsAlreadyExists(Deposit(0, 101, &wallet, "pay in")));
  status = RentMovie(0, 0, 30, &rental, "a key");
  EXPECT_TRUE(status.ok()) << "a repetition tries again: " << status;
  EXPECT_EQ(CentsOf(0), kDeposit - 3 * 1700 + 100);
  status = RefundRental(0, rental.id(), &rental);
  EXPECT_TRUE(status.ok()) << "it gives back what was paid last: " << status;
  EXPECT_EQ(CentsOf(0), kDeposit - 2 * 1700 + 100);
  uint64_t left = 1;
  status = apps::LookAtData(Folder(), "rent", [&](SqlSession& s) {
    return s.Query("SELECT count(*) FROM rentals WHERE id NOT IN (SELECT id FROM rents)", {},
                   [&](const SqlRow& row) { left = row.Unsigned(0); });
  });
  EXPECT_TRUE(status.ok() && left == 0) << status << ", " << left << " of repetitions";
  EXPECT_EQ(Audited(), 0);
}

// A rental that is held, and that `rent` cannot decide, as a transaction of this process is open.
class RentsUndecided : public PartedMediaTest {
 protected:
  // `act(user)` runs meanwhile; `user` rents, and gives up after 5 s.
  void WhileUndecided(const std::function<void(std::jthread& user)>& act) {
    app_->Stall("payment-auth");
    std::jthread user([&] {
      Rental ignored;
      rented_ = RentMovie(0, 0, 1, &ignored, "a key", std::chrono::seconds(5));
    });
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (RentalsOf(0).empty() && !deadline.Expired()) BetweenLooks();
    charge_ = ChargeOf(users_[0].id, /*round=*/0, RentalsOf(0)[0]);
    apps::DataOptions data;
    data.application = "media", data.folder = Folder();
    const auto db = apps::OpenData(data, "rent", std::vector<std::string>(1));
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status locked = (*db)->Write(deadline, [&](SqlSession& s) {
      absl::Status status = s.Execute("UPDATE rents SET open = open");
      app_->GoOn("payment-auth");
      act(user);
      return status;
    });
    EXPECT_TRUE(locked.ok()) << locked;
  }
  Charge::State Look() {
    Context ctx(kMaxTestWait);
    Charge found;
    EXPECT_TRUE(PaymentAuth::Stub(Connect("payment-auth").get()).Look(ctx, charge_, &found).ok());
    return found.state();
  }

  absl::Status rented_;  // of the user, once its thread has ended
  Charge charge_;
};

TEST_F(RentsUndecided, AreNotCaptured) {
  WhileUndecided([&](std::jthread& user) { user.join(); });
  EXPECT_FALSE(rented_.ok());
  EXPECT_NE(Look(), Charge::CAPTURED);
  ExpectAuditedWhenIdle();
}

TEST_F(RentsUndecided, AreCapturedOnceTheirServiceIsBack) {
  WhileUndecided([&](std::jthread&) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (Look() == Charge::NONE && !deadline.Expired()) BetweenLooks();
    app_->Kill("payment-auth");
  });
  ASSERT_TRUE(app_->Restart("payment-auth").ok());
  ExpectAuditedWhenIdle();
  EXPECT_EQ(CentsOf(0), kDeposit - 250);
}

// A rental whose caller gets no answer, as payment-auth is away: it stays PENDING.
class RentsLeft : public PartedMediaTest {
 protected:
  void SetUp() override {
    PartedMediaTest::SetUp();
    app_->Kill("payment-auth");
    Rental ignored;
    const absl::Status status = RentMovie(0, 0, 1, &ignored, "a key");
    EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
    const std::vector<Rental> mine = RentalsOf(0);
    ASSERT_EQ(mine.size(), 1u);
    ASSERT_EQ(mine[0].state(), Rental::PENDING);
    left_ = ChargeOf(users_[0].id, /*round=*/0, mine[0]);
    app_->Kill("rent");
    ASSERT_TRUE(app_->Restart("payment-auth").ok());
    payments_ = Connect("payment-auth");
  }
  using Step = absl::Status (PaymentAuth::Stub::*)(Context&, const Charge&, apps::Nothing*,
                                                   ReplyMetadata*) const;
  absl::Status Take(Step step) {
    Context ctx(kMaxTestWait);
    apps::Nothing nothing;
    return (PaymentAuth::Stub(payments_.get()).*step)(ctx, left_, &nothing, nullptr);
  }
  absl::Status Authorize() { return Take(&PaymentAuth::Stub::Authorize); }
  // The step is taken twice, as by a caller that has died. Then the wallet has `cents`, and the books agree.
  void ExpectOnce(Step step, int64_t cents) {
    EXPECT_TRUE(Take(step).ok() && Take(step).ok());
    EXPECT_EQ(CentsOf(0), cents);
    Context ctx(kMaxTestWait);
    apps::Nothing nothing;
    const absl::Status audited = PaymentAuth::Stub(payments_.get()).Audit(ctx, nothing, &nothing);
    EXPECT_TRUE(audited.ok()) << audited;
  }
  void ExpectToEndAs(Rental::State state) {
    ASSERT_TRUE(app_->Restart("rent").ok());
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (RentalsOf(0)[0].state() == Rental::PENDING && !deadline.Expired()) BetweenLooks();
    EXPECT_EQ(RentalsOf(0)[0].state(), state);
    ExpectAuditedWhenIdle();
  }

  Charge left_;
  std::unique_ptr<Channel> payments_;
};

TEST_F(RentsLeft, GoOnIfTheirPriceIsHeld) {
  ASSERT_TRUE(Authorize().ok());
  EXPECT_EQ(CentsOf(0), kDeposit - 250);
  ExpectToEndAs(Rental::ACTIVE);
  EXPECT_EQ(CentsOf(0), kDeposit - 250);
}

TEST_F(RentsLeft, AreVoidIfItIsNotAndStaySo) {
  ExpectToEndAs(Rental::REFUSED);
  EXPECT_TRUE(absl::IsFailedPrecondition(Authorize())) << "a late attempt";
  EXPECT_EQ(CentsOf(0), kDeposit);
  Rental rental;
  ASSERT_TRUE(RentMovie(0, 0, 1, &rental, "a key").ok()) << "a repetition tries again";
  EXPECT_EQ(rental.id(), left_.rental());
  EXPECT_EQ(CentsOf(0), kDeposit - 250);
}

TEST_F(RentsLeft, ChargesMoveTheirCentsOnce) {
  ExpectOnce(&PaymentAuth::Stub::Authorize, kDeposit - 250);
  ExpectOnce(&PaymentAuth::Stub::Void, kDeposit);
  EXPECT_TRUE(absl::IsFailedPrecondition(Authorize())) << "a late attempt";
  for (const uint32_t round : {1u, 2u}) {
    left_.set_round(round);
    ExpectOnce(&PaymentAuth::Stub::Authorize, kDeposit - 250 * round);
  }
  ExpectOnce(&PaymentAuth::Stub::Capture, kDeposit - 500);
  ExpectOnce(&PaymentAuth::Stub::Refund, kDeposit - 250);
  ExpectOnce(&PaymentAuth::Stub::Capture, kDeposit - 250);
  EXPECT_TRUE(absl::IsFailedPrecondition(Take(&PaymentAuth::Stub::Void))) << "it was captured";
}

// Under each kind of waiting, calls in the process.
class RentConfigs : public MediaTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { Start(GetParam(), /*monolith=*/true); }
};

INSTANTIATE_TEST_SUITE_P(Configs, RentConfigs,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"}, {})));

TEST_P(RentConfigs, AWalletThatIsChargedAtOnceIsNeverBelow0) {
  std::atomic<int64_t> paid{0};
  apps::AllAtOnce(4, TestSeed(), [&](Rng& rng, size_t) {
    for (int i = 0; i < 10; ++i) {
      Rental rental;
      const absl::Status status =
          RentMovie(0, rng.Below(3), 1 + static_cast<uint32_t>(rng.Below(30)), &rental);
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      if (status.ok()) paid.fetch_add(rental.cents());
    }
  });
  EXPECT_EQ(CentsOf(0), kDeposit - paid);
  EXPECT_GE(CentsOf(0), 0);
  EXPECT_EQ(Audited(), 0);
}

}  // namespace
}  // namespace curtail::media
