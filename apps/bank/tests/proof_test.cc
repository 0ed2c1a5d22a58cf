// SPDX-License-Identifier: Apache-2.0
//
// Who may do what at the bank: second proofs, wrong passwords, and payments from another's account.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "access.pb.h"
#include "apps/bank/data.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/accounts/one_time_code.h"
#include "apps/kit/load/fill.h"
#include "apps/kit/testing/preload.h"
#include "bank.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"
#include "google/protobuf/descriptor.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

// The code that an app shows for a secret in base 32.
std::string CodeNow(const std::string& secret) {
  std::string bytes;
  uint32_t held = 0;
  int bits = 0;
  for (const char c : secret) {
    held = held << 5 | static_cast<uint32_t>(c < 'A' ? c - '2' + 26 : c - 'A');
    if ((bits += 5) < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits);
  }
  return apps::CodeOf(bytes, apps::NowMs() / 1000 / apps::kCodeStepS);
}

TEST_F(BankTest, MuchMoneyTakesASecondProof) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/true);
  const Bank::Stub bank(front_.get());
  PayRequest much = PaymentOf(from, to, 100'001);
  EXPECT_TRUE(absl::IsPermissionDenied(Pay(much)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(PaymentOf(from, to, 100'000)))) << "it has less";

  apps::Credentials user;
  user.set_name(from.name), user.set_password(apps::PasswordOf(/*seed=*/1, /*user=*/0));
  apps::CodeSecret codes, replaced;
  apps::CodeRequest code;
  code.set_token(from.token);
  apps::Session proved;
  const auto step_up = [&] {
    Context ctx(kMaxTestWait);
    return bank.StepUp(ctx, code, &proved);
  };
  Context ctx(kMaxTestWait);
  EXPECT_TRUE(absl::IsFailedPrecondition(step_up())) << "not enrolled";
  ASSERT_TRUE(bank.EnrolCodes(ctx, user, &replaced).ok());
  ASSERT_TRUE(bank.EnrolCodes(ctx, user, &codes).ok()) << "as no code has come, it may be lost";
  EXPECT_NE(codes.secret(), replaced.secret());
  EXPECT_THAT(codes.uri(), HasSubstr(codes.secret()));
  for (const char* wrong : {"", "12345", "1234567", "abcdef"}) {
    code.set_code(wrong);
    EXPECT_TRUE(absl::IsPermissionDenied(step_up())) << wrong;
  }
  code.set_code(CodeNow(codes.secret()));
  const absl::Status done = step_up();
  ASSERT_TRUE(done.ok()) << done;
  EXPECT_LE(proved.expires_s(), apps::NowMs() / 1000 + 300);
  EXPECT_TRUE(absl::IsPermissionDenied(step_up())) << "a code is taken once";
  EXPECT_TRUE(absl::IsAlreadyExists(bank.EnrolCodes(ctx, user, &replaced)));
  much.set_token(proved.token());
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(much))) << "it has less";

  PurchaseRequest purchase;
  purchase.set_card(from.card), purchase.set_iban(to.iban), purchase.set_cents(100'001);
  GrantRequest grant;
  grant.set_account(from.id), grant.set_name(to.name), grant.set_cents(100'001);
  Payment bought;
  apps::Changed changed;
  for (const std::string& token : {from.token, proved.token()}) {
    purchase.set_token(token), grant.set_token(token);
    const absl::Status charged = Send(&Bank::Stub::Purchase, purchase, &bought, "much");
    const absl::Status granted = Send(&Bank::Stub::GrantPayments, grant, &changed);
    if (token == from.token) {
      EXPECT_TRUE(absl::IsPermissionDenied(charged)) << charged;
      EXPECT_TRUE(absl::IsPermissionDenied(granted)) << granted;
    } else {
      EXPECT_TRUE(charged.ok()) << charged;
      EXPECT_TRUE(granted.ok()) << granted;
    }
  }
  purchase.set_token(from.token);
  EXPECT_TRUE(absl::IsPermissionDenied(Send(&Bank::Stub::Purchase, purchase, &bought, "much")))
      << "a repetition";
  code.set_token(proved.token());
  code.set_code("000000");
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(step_up().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(step_up())) << "five were wrong";
  EXPECT_EQ(Audit(), 0);
}

using PartedProofTest = Parted<BankTest>;

// The token of StepUp() expires long before the session's own.
TEST_F(PartedProofTest, ASessionThatItsSecondTokenEndsStaysEnded) {
  const apps::SetClock clock;
  if (clock.Words().empty())
    GTEST_SKIP() << "2026-11-30: with a sanitizer, programs go without a preloaded clock";
  ASSERT_TRUE(app_->Restart("user", {.wrapper = clock.Words()}).ok());
  const Own &own = all_[0], &other = Other(own, /*same_shard=*/true);
  apps::Credentials user;
  user.set_name(own.name), user.set_password(apps::PasswordOf(/*seed=*/1, /*user=*/0));
  apps::CodeSecret codes;
  ASSERT_TRUE(Send(&Bank::Stub::EnrolCodes, user, &codes).ok());
  apps::CodeRequest code;
  code.set_token(own.token), code.set_code(CodeNow(codes.secret()));
  apps::Session proved;
  ASSERT_TRUE(Send(&Bank::Stub::StepUp, code, &proved).ok());
  Balance balance;
  apps::TokenRequest ended;
  apps::Changed changed;
  ended.set_token(proved.token());
  ASSERT_TRUE(Send(&Bank::Stub::Logout, ended, &changed).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(GetBalance(own.token, own.id, &balance)));
  clock.SetAhead(2 * 3600);
  ended.set_token(other.token);
  ASSERT_TRUE(Send(&Bank::Stub::Logout, ended, &changed).ok()) << "it forgets the ends of long ago";
  EXPECT_TRUE(absl::IsUnauthenticated(GetBalance(own.token, own.id, &balance)));
}

// A method that gives a customer's money away, or lets another, has `stepped_up`. One that is new has it, or is named here.
TEST(BankProto, MethodsThatGiveMoneyAwayTakeASecondProof) {
  const std::set<std::string> keep_it = {
      // They move no money.
      "StepUp", "UpdateCustomer", "CloseCustomer", "OpenAccount", "CancelPayment", "ApplyForCard",
      "ApplyForLoan", "ApplyForMortgage", "ListOffers", "AnswerOffer", "BookSlot", "CancelBooking",
      "WriteMessage",
      // It stays the customer's: on its accounts, in its deposits and its stocks.
      "AcceptLoan", "OpenDeposit", "BreakDeposit", "BuyUnits", "SellUnits"};
  const auto* const bank =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("curtail.bank.Bank");
  ASSERT_NE(bank, nullptr);
  int proved = 0;
  for (int i = 0; i < bank->method_count(); ++i) {
    const auto& options = bank->method(i)->options();
    if (options.idempotency_level() == google::protobuf::MethodOptions::NO_SIDE_EFFECTS ||
        options.GetExtension(apps::access) == apps::PUBLIC)
      continue;
    const bool takes_it = !options.GetExtension(apps::forward).stepped_up().empty();
    EXPECT_NE(takes_it, keep_it.contains(bank->method(i)->name())) << bank->method(i)->name();
    proved += takes_it ? 1 : 0;
  }
  EXPECT_GE(proved, 5);
}

TEST_F(BankTest, PasswordsAreNotGuessed) {
  const Own &own = all_[0], &other = Other(own, /*same_shard=*/true);
  const auto login = [&](const std::string& name, const std::string& password, const std::string& from) {
    apps::Credentials credentials;
    credentials.set_name(name), credentials.set_password(password);
    Context ctx(kMaxTestWait);
    if (!from.empty()) ctx.AddMetadata("x-forwarded-for", from);
    apps::Session session;
    return Bank::Stub(front_.get()).Login(ctx, credentials, &session);
  };
  const std::string right = apps::PasswordOf(/*seed=*/1, /*user=*/0);
  const auto wrong = [&](const std::string& name, const std::string& from) {
    return login(name, "a wrong password", from);
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(absl::IsUnauthenticated(wrong(own.name, "192.0.2.1")));
  EXPECT_TRUE(login(own.name, right, "192.0.2.1").ok()) << "it clears what was wrong before";
  for (const std::string& name : {own.name, std::string("nobody")}) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(absl::IsUnauthenticated(wrong(name, "192.0.2.1"))) << i;
    EXPECT_TRUE(absl::IsResourceExhausted(wrong(name, "192.0.2.1"))) << name;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(login(own.name, right, "192.0.2.1")));
  EXPECT_TRUE(login(own.name, right, "192.0.2.2").ok()) << "from elsewhere";
  EXPECT_TRUE(login(own.name, right, "").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(wrong(other.name, "192.0.2.1"))) << "another name";
}

// With no bound but the places: a login that sleeps would have one of auto's threads, which are fewer.
class CrowdTest : public BankTest {
  apps::Deployed Form() const override {
    apps::Deployed form = WholeBank(Folder());
    form.config = "FIB1";
    return form;
  }
};

TEST_F(CrowdTest, LoginsOfOneAddressLeavePlacesToOthers) {
  constexpr int kCrowd = 120, kRefused = 20;  // more at once than one address has places
  const auto login = [&](const std::string& name, const std::string& from) {
    apps::Credentials credentials;
    credentials.set_name(name), credentials.set_password(apps::PasswordOf(/*seed=*/1, /*user=*/0));
    Context ctx(kMaxTestWait);
    ctx.AddMetadata("x-forwarded-for", from);
    apps::Session session;
    return Bank::Stub(front_.get()).Login(ctx, credentials, &session);
  };
  std::atomic<int> refused{0};
  std::vector<std::thread> crowd;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  for (int i = 0; i < kCrowd; ++i) {
    crowd.emplace_back([&, i] {
      // Another name each time: a name is closed after five wrong passwords.
      for (int n = 0; refused < kRefused && !deadline.Expired(); ++n)
        if (absl::IsResourceExhausted(login(Join("other_", i, "_", n), "192.0.2.1"))) ++refused;
    });
  }
  while (refused < kRefused && !deadline.Expired()) BetweenLooks();
  EXPECT_GE(refused, kRefused);
  const absl::Status status = login(all_[0].name, "192.0.2.2");
  EXPECT_TRUE(status.ok()) << status;
  for (std::thread& one : crowd) one.join();
}

TEST_F(BankTest, AnOwnerLetsAnotherPay) {
  const Own &from = all_[0], &to = Other(from, /*same_shard=*/false),
            &helper = Other(from, /*same_shard=*/true);
  const Bank::Stub bank(front_.get());
  GrantRequest grant;
  grant.set_token(from.token), grant.set_account(from.id), grant.set_name(helper.name), grant.set_cents(50);
  apps::Changed changed;
  const auto allow = [&] {
    Context ctx(kMaxTestWait);
    return bank.GrantPayments(ctx, grant, &changed);
  };
  PayRequest pay = PaymentOf(from, to, 50);
  pay.set_token(helper.token);
  EXPECT_TRUE(absl::IsNotFound(Pay(pay)));
  ASSERT_TRUE(allow().ok());
  Payment paid;
  const absl::Status status = Pay(pay, "", &paid);
  ASSERT_TRUE(status.ok()) << status;
  AwaitArrival(helper.token, paid.id());
  EXPECT_EQ(CentsOf(from), kDeposit - 50);
  pay.set_cents(51);
  EXPECT_TRUE(absl::IsPermissionDenied(Pay(pay)));
  // An order of the time in which it was allowed is not paid once the owner has ended that.
  grant.set_cents(kDeposit);
  ASSERT_TRUE(allow().ok());
  PayRequest all = pay, later = pay;
  all.set_cents(kDeposit);
  later.set_at_ms(apps::NowMs() + 1500);
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(all, "all", &paid)));
  Payment scheduled;
  ASSERT_TRUE(Pay(later, "", &scheduled).ok());
  grant.set_cents(0);
  ASSERT_TRUE(allow().ok());
  ASSERT_TRUE(Pay(PaymentOf(to, from, 50)).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (CentsOf(from) < kDeposit && !deadline.Expired()) BetweenLooks();
  EXPECT_TRUE(absl::IsPermissionDenied(Pay(all, "all", &paid)));
  while (Look(helper.token, scheduled.id(), &paid).ok() && paid.state() != Payment::REFUSED &&
         !deadline.Expired())
    BetweenLooks();
  EXPECT_EQ(paid.state(), Payment::REFUSED);
  EXPECT_EQ(CentsOf(from), kDeposit);
  pay.set_cents(50);
  EXPECT_TRUE(absl::IsNotFound(Pay(pay))) << "the owner has ended it";
  grant.set_name(from.name);
  EXPECT_TRUE(absl::IsInvalidArgument(allow())) << "to oneself";
  grant.set_token(to.token);
  EXPECT_TRUE(absl::IsNotFound(allow())) << "it is another's";
  grant.set_token(from.token), grant.set_name("nobody");
  EXPECT_TRUE(absl::IsNotFound(allow()));
  EXPECT_EQ(Audit(), 0);
}

}  // namespace
}  // namespace curtail::bank
