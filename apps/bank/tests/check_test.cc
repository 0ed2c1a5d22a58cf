// SPDX-License-Identifier: Apache-2.0
//
// `bank check` finds nothing at the bank, and finds faults of a server that has some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/bank/tests/bank_testing.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/server.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

enum class Fault { kNone, kBalance, kForgetsKeys, kTakesAnyCents, kTellsOfAnothers, kHidesMovements };

// Has the bank answer, but for the fault.
struct FaultyBank final : Bank::Service {
  FaultyBank(Channel* bank, Fault f) : stub(bank), fault(f) {}

  template <class Call, class Request, class Reply>
  absl::Status Ask(Context& ctx, Call call, const Request& request, Reply* reply) const {
    Context asking(kMaxTestWait);
    const auto key = ctx.metadata().Find("idempotency-key");
    if (key && fault != Fault::kForgetsKeys) asking.AddMetadata("idempotency-key", *key);
    return (stub.*call)(asking, request, reply, nullptr);
  }

  absl::Status Register(Context& ctx, const apps::Credentials& request, apps::Session* reply) override {
    return Ask(ctx, &Bank::Stub::Register, request, reply);
  }
  absl::Status ApplyForCard(Context& ctx, const CardApplication& request, Application* reply) override {
    return Ask(ctx, &Bank::Stub::ApplyForCard, request, reply);
  }
  absl::Status OpenAccount(Context& ctx, const apps::TokenRequest& request, Account* reply) override {
    return Ask(ctx, &Bank::Stub::OpenAccount, request, reply);
  }
  absl::Status ListAccounts(Context& ctx, const apps::TokenRequest& request, AccountList* reply) override {
    return Ask(ctx, &Bank::Stub::ListAccounts, request, reply);
  }
  absl::Status GetBalance(Context& ctx, const BalanceRequest& request, Balance* reply) override {
    absl::Status status = Ask(ctx, &Bank::Stub::GetBalance, request, reply);
    if (fault == Fault::kBalance) reply->set_cents(reply->cents() + 1);
    if (fault == Fault::kTellsOfAnothers && absl::IsNotFound(status))
      status = absl::PermissionDeniedError(Join("account ", request.account(), " is another's"));
    return status;
  }
  absl::Status Pay(Context& ctx, const PayRequest& request, Payment* reply) override {
    PayRequest sent = request;
    if (fault == Fault::kTakesAnyCents && sent.cents() <= 0) sent.set_cents(1);
    return Ask(ctx, &Bank::Stub::Pay, sent, reply);
  }
  absl::Status GetPayment(Context& ctx, const PaymentRequest& request, Payment* reply) override {
    return Ask(ctx, &Bank::Stub::GetPayment, request, reply);
  }
  absl::Status ListActivity(Context& ctx, const ActivityRequest& request, Movements* reply) override {
    absl::Status status = Ask(ctx, &Bank::Stub::ListActivity, request, reply);
    if (fault == Fault::kHidesMovements && reply->movements_size() > 1)
      reply->mutable_movements()->RemoveLast();
    return status;
  }
  absl::Status Purchase(Context& ctx, const PurchaseRequest& request, Payment* reply) override {
    return Ask(ctx, &Bank::Stub::Purchase, request, reply);
  }
  absl::Status GetPurchase(Context& ctx, const PaymentRequest& request, Payment* reply) override {
    return Ask(ctx, &Bank::Stub::GetPurchase, request, reply);
  }
  absl::Status PayCard(Context& ctx, const PayCardRequest& request, Payment* reply) override {
    return Ask(ctx, &Bank::Stub::PayCard, request, reply);
  }
  absl::Status GetCardPayment(Context& ctx, const PaymentRequest& request, Payment* reply) override {
    return Ask(ctx, &Bank::Stub::GetCardPayment, request, reply);
  }
  absl::Status GetCardBalance(Context& ctx, const CardRequest& request, CardBalance* reply) override {
    return Ask(ctx, &Bank::Stub::GetCardBalance, request, reply);
  }
  absl::Status GetStatement(Context& ctx, const CardRequest& request, Movements* reply) override {
    return Ask(ctx, &Bank::Stub::GetStatement, request, reply);
  }

  const Bank::Stub stub;
  const Fault fault;
};

class CheckTest : public BankTest {
 protected:
  static constexpr int kOperations = kSanitized ? 60 : 200;

  // Returns the exit code of `bank check`, and sets `*text` to what it prints.
  int Check(const std::string& address, uint64_t seed, int operations, std::string* text) const {
    const std::string file = dir_.File("check");
    const int how = std::system(Join(BANK_PROGRAM, " check --target ", address, " --seed ", seed,
                                     " --operations ", operations, " > ", file, " 2>&1")
                                    .c_str());
    std::ifstream in(file);
    text->assign(std::istreambuf_iterator<char>(in), {});
    return WEXITSTATUS(how);
  }
};

using PartedCheckTest = Parted<CheckTest>;

TEST_F(CheckTest, TheBankAnswersAsItsModel) {
  const uint64_t seed = TestSeed();
  std::string text;
  EXPECT_EQ(Check(app_->AddressOf("front-end"), seed, kOperations, &text), 0) << text;
  EXPECT_THAT(text, HasSubstr(Join(kOperations, " operations of 3 customers")));
  EXPECT_EQ(Check(app_->AddressOf("front-end"), seed, kOperations, &text), 104) << "its customers are there";
  EXPECT_EQ(Audit(), 0);
}

TEST_F(PartedCheckTest, TheBankAnswersAsItsModelWhileServicesAreKilled) {
  const uint64_t seed = TestSeed();
  std::string text;
  int how = -1;
  std::atomic<bool> ended{false};
  std::thread checks([&] {
    how = Check(app_->AddressOf("front-end"), seed, kOperations, &text);
    ended.store(true);
  });
  for (int i = 0; i < 3; ++i) {
    for (const char* const service :
         {"posting", "payments", "credit-card", "accounts", "activity", "card-payment"}) {
      if (ended.load()) break;
      app_->Kill(service);
      EXPECT_TRUE(app_->Restart(service).ok());
    }
  }
  checks.join();
  EXPECT_EQ(how, 0) << text;
  EXPECT_EQ(Audit(), 0);
}

TEST_F(CheckTest, FindsTheFaultsOfAServer) {
  uint64_t seed = TestSeed();
  for (const auto& [fault, found] :
       std::vector<std::pair<Fault, const char*>>{{Fault::kNone, " 0 differences"},
                                                  {Fault::kBalance, " cents, "},
                                                  {Fault::kForgetsKeys, "repetition"},
                                                  {Fault::kTakesAnyCents, ", not with INVALID_ARGUMENT"},
                                                  {Fault::kTellsOfAnothers, "ended with PERMISSION_DENIED"},
                                                  {Fault::kHidesMovements, "movement"}}) {
    ServerOptions options;
    options.listen = {"127.0.0.1:0"};
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<FaultyBank>(front_.get(), fault));
    const auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    std::string text;
    int how = 0;  // a check without the operation that shows the fault ends with 0
    for (int i = 0; how == 0 && i < (fault == Fault::kNone ? 1 : 100); ++i)
      how = Check((*server)->addresses()[0], ++seed, kOperations / 2, &text);
    EXPECT_EQ(how, fault == Fault::kNone ? 0 : 99) << text;
    EXPECT_THAT(text, HasSubstr(found));
    EXPECT_THAT(text, HasSubstr(Join("seed ", seed)));
  }
}

}  // namespace
}  // namespace curtail::bank
