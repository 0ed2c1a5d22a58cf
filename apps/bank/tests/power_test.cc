// SPDX-License-Identifier: Apache-2.0
//
// The bank loses its power: files have what had reached the disk, and of later writes some blocks or none.
//
// Property: what a customer was told is so. That `payments` has booked an order is written without waiting for the disk, and may be
// lost; the shard that decided it knows it still. So nobody pays twice, and nothing that was acknowledged is undone.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/testing/preload.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

class BankPowerTest : public BankFaultTest {
 protected:
  struct Order {
    size_t customer = 0;
    std::string key;
    PayRequest request;
    Payment told;  // without an id: nothing was
  };

  BankPowerTest() { std::filesystem::create_directory(dir_.File("disk")); }

  apps::Deployed Form() const override {
    power_.Settle(Folder());
    apps::Deployed form = WholeBank(Folder());
    form.options.flags.clear();  // writes wait for the disk
    form.options.launch.wrapper = power_.Words();
    return form;
  }
  void LosePower(double kept) {
    app_->Kill("front-end");  // one process is all services
    power_.Lose(Folder(), kept, rng_);
  }
  absl::Status PowerOn() {
    power_.Settle(Folder());
    return app_->Restart("front-end");
  }
  // The state of an order in the file of `payments`.
  int StateInFile(uint64_t id) const {
    const auto file = internal::SqliteSession::Open({.path = Folder() + "/payments.db"});
    EXPECT_TRUE(file.ok()) << file.status();
    int state = -1;
    const absl::Status read =
        (*file)->Query("SELECT state FROM payments WHERE id = ?1", {id},
                       [&](const SqlRow& row) { state = static_cast<int>(row.Integer(0)); });
    EXPECT_TRUE(read.ok()) << read;
    return state;
  }
  // Orders of a customer, one after the other, until the bank is gone. All are from its first account.
  std::vector<Order> PayUntilGone(size_t customer, int round, uint64_t seed) {
    Rng rng(seed);
    const std::unique_ptr<Channel> channel = Connect();
    const Own& from = all_[customer * kAccounts];
    std::vector<Order> orders;
    absl::Status status;
    while (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
      const Own& to = all_[rng.Below(all_.size())];
      if (to.id == from.id) continue;
      Order& order = orders.emplace_back();
      order.customer = customer;
      order.key = Join("round ", round, ", ", orders.size());
      order.request = PaymentOf(from, to, static_cast<int64_t>(1 + rng.Below(3)));
      status = Pay(order.request, order.key, &order.told, channel.get(), kPatience);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      if (!status.ok()) order.told.Clear();
      else answered_.fetch_add(1);
    }
    return orders;
  }

  static constexpr size_t kAccounts = 4;  // of each customer
  Rng rng_{TestSeed()};
  const apps::Power power_{dir_.File("disk")};
};

TEST_F(BankPowerTest, ThatAPaymentIsBookedIsFoundAgain) {
  for (const bool same_shard : {true, false}) {
    const Own &from = all_[0], &to = Other(from, same_shard);
    const int64_t before = CentsOf(from);
    const std::string key = same_shard ? "to the same shard" : "to another";
    Payment told, again;
    ASSERT_TRUE(Pay(PaymentOf(from, to, 100), key, &told).ok());
    EXPECT_EQ(CentsOf(from, told.version()), before - 100);
    LosePower(/*kept=*/0);
    EXPECT_EQ(StateInFile(told.id()), Payment::PENDING) << "the lazy write was not lost: this tests nothing";
    ASSERT_TRUE(PowerOn().ok());
    EXPECT_EQ(CentsOf(from, told.version()), before - 100);
    ASSERT_TRUE(Pay(PaymentOf(from, to, 100), key, &again).ok());
    EXPECT_EQ(again.id(), told.id());
    EXPECT_EQ(again.version(), told.version());
    AwaitArrival(from.token, told.id());
    EXPECT_EQ(CentsOf(from), before - 100);
    EXPECT_EQ(Audit(), 0);
  }
}

TEST_F(BankPowerTest, WhatWasAcknowledgedIsNotUndoneStress) {
  std::array<int64_t, kCustomers> left;
  left.fill(kDeposit);
  int round = 0;
  for (const double kept : {0.0, 0.5, 1.0}) {
    std::array<std::vector<Order>, kCustomers> orders;
    std::vector<std::thread> customers;
    for (size_t i = 0; i < kCustomers; ++i)
      customers.emplace_back([&, i, seed = rng_.Next()] { orders[i] = PayUntilGone(i, round, seed); });
    AwaitAnswers();
    LosePower(kept);
    for (std::thread& customer : customers) customer.join();
    ASSERT_TRUE(PowerOn().ok());
    for (size_t i = 0; i < kCustomers; ++i) {
      for (const Order& order : orders[i]) {
        Payment again;
        const absl::Status status = Answered([&] { return Pay(order.request, order.key, &again); });
        ASSERT_TRUE(status.ok()) << order.key << ": " << status;
        if (order.told.id() != 0) {
          EXPECT_EQ(again.id(), order.told.id()) << order.key;
          EXPECT_EQ(again.version(), order.told.version()) << order.key;
        }
        left[i] -= order.request.cents();
        AwaitArrival(order.request.token(), again.id());
      }
    }
    ++round;
  }
  for (size_t i = 0; i < kCustomers; ++i) {
    int64_t sent = 0;
    for (const Movement& movement : AwaitMovements(all_[i * kAccounts]))
      if (movement.cents() < 0) sent -= movement.cents();
    EXPECT_EQ(sent, kDeposit - left[i]) << "customer " << i;
  }
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
