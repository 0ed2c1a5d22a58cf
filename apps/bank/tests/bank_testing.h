// SPDX-License-Identifier: Apache-2.0
//
// bank_testing.h - a bank in processes of its own, for tests that use it as its customers do.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/bank/data.h"
#include "apps/kit/testing/start_app.h"
#include "bank.curtail.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/app_under_test.h"
#include "curtail/rpc/channel.h"

namespace curtail::bank {

inline constexpr int64_t kDeposit = 10'000;
inline constexpr size_t kShards = 2;

// A customer's account, as a load test knows it.
struct Own {
  uint64_t owner = 0;
  std::string name;
  std::string token;
  uint64_t id = 0;
  std::string iban;
  uint64_t card = 0;  // of the customer
  size_t shard() const { return apps::PartOf(id, kShards); }
};

// In one process, with acknowledged writes that are lost with the machine's power.
apps::Deployed WholeBank(const std::string& folder);
// In a process for each service.
apps::Deployed PartedBank(const std::string& folder);
// Fills the bank behind an address, whose stores are in `folder`.
void FillBank(const std::string& target, const std::string& folder);

// A bank with 6 customers of 4 accounts each, in one process. It begins with a copy of files that are filled once.
class BankTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  // How SetUp() starts the bank.
  virtual apps::Deployed Form() const { return WholeBank(Folder()); }
  virtual bool InFiles() const { return true; }

  std::string Folder() const { return dir_.File("data"); }
  std::unique_ptr<Channel> Connect() {
    ChannelOptions patient;
    patient.wait_for_ready = true;
    return std::make_unique<Channel>(&client_, app_->AddressOf("front-end"), patient);
  }
  // Returns the exit code of `bank audit`, and sets `*text` to what it writes.
  int Audit(std::string* text = nullptr) const;

  // Another account than `own`, in the same shard or in another.
  const Own& Other(const Own& own, bool same_shard, bool same_customer = false) const;

  template <class Call, class Request, class Reply>
  absl::Status Send(Call call, const Request& request, Reply* reply, const std::string& key = {},
                    Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    Context ctx(patience);
    if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
    const Bank::Stub stub(by == nullptr ? front_.get() : by);
    return (stub.*call)(ctx, request, reply, nullptr);
  }

  static PayRequest PaymentOf(const Own& from, const Own& to, int64_t cents) {
    PayRequest request;
    request.set_token(from.token), request.set_from(from.id);
    request.set_iban(to.iban), request.set_cents(cents), request.set_text("rent");
    return request;
  }
  absl::Status Pay(const PayRequest& request, const std::string& key, Payment* reply, Channel* by = nullptr,
                   Nanos patience = kMaxTestWait) const {
    Context ctx(patience);
    if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
    return Bank::Stub(by == nullptr ? front_.get() : by).Pay(ctx, request, reply);
  }
  absl::Status Pay(const PayRequest& request) const {
    Payment ignored;
    return Pay(request, "", &ignored);
  }
  absl::Status Look(const std::string& token, uint64_t id, Payment* reply) const {
    PaymentRequest request;
    request.set_token(token), request.set_id(id);
    Context ctx(kMaxTestWait);
    return Bank::Stub(front_.get()).GetPayment(ctx, request, reply);
  }
  absl::Status Cancel(const std::string& token, uint64_t id, Payment* reply) const {
    PaymentRequest request;
    request.set_token(token), request.set_id(id);
    Context ctx(kMaxTestWait);
    return Bank::Stub(front_.get()).CancelPayment(ctx, request, reply);
  }
  void AwaitArrival(const std::string& token, uint64_t id) const;
  absl::Status GetBalance(const std::string& token, uint64_t account, Balance* reply,
                          uint64_t at_least = 0) const {
    BalanceRequest request;
    request.set_token(token), request.set_account(account), request.set_at_least(at_least);
    Context ctx(kMaxTestWait);
    return Bank::Stub(front_.get()).GetBalance(ctx, request, reply);
  }
  int64_t CentsOf(const Own& own, uint64_t at_least = 0) const {
    Balance balance;
    const absl::Status status = GetBalance(own.token, own.id, &balance, at_least);
    EXPECT_TRUE(status.ok()) << status;
    return balance.cents();
  }
  // Money from another shard comes a moment later.
  void AwaitCents(const Own& own, int64_t cents) const;
  absl::Status List(const std::string& token, uint64_t account, uint64_t before, Movements* reply) const {
    ActivityRequest request;
    request.set_token(token), request.set_account(account), request.set_before(before), request.set_limit(7);
    Context ctx(kMaxTestWait);
    return Bank::Stub(front_.get()).ListActivity(ctx, request, reply);
  }
  // All movements of an account, the newest first, once there are as many as the ledger has.
  std::vector<Movement> AwaitMovements(const Own& own) const;

  void ReadUsers();

  const TempDir dir_;
  Client client_;
  std::unique_ptr<deploy::AppUnderTest> app_;
  std::unique_ptr<Channel> front_;
  std::vector<Own> all_;
};

// A test of a process for each service, which it kills, or calls past the front end.
template <class Test>
class Parted : public Test {
 protected:
  apps::Deployed Form() const override { return PartedBank(this->Folder()); }
};

// Returns the text of an error without `number`, so that the errors of two numbers can be compared.
std::string WordsOf(const absl::Status& status, uint64_t number);

// Customers act, if it is Parted while services are killed, and repeat what has no answer.
class BankFaultTest : public BankTest {
 protected:
  static constexpr int kCustomers = 4, kAnswersBetween = 40;
  static constexpr Nanos kPatience = std::chrono::seconds(2);

  // Runs act(customer) of each customer until `stop_`, and kills the services one after the other meanwhile.
  void ActWhileKilled(const std::vector<std::string>& services, const std::function<void(int)>& act);
  // Repeats a call until it has an answer, and returns that.
  template <class Call>
  absl::Status Answered(Call call) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    absl::Status status;
    while (true) {
      status = call();
      if (!(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) || deadline.Expired()) break;
      // Without a pause, tens of thousands of repeats a second take the CPUs from the end and the start of the service.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    answered_.fetch_add(1);
    return status;
  }
  void AwaitAnswers() const;

  std::atomic<bool> stop_{false};
  std::atomic<int> answered_{0};
};

}  // namespace curtail::bank
