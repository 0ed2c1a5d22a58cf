// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/load/workload.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bank/common/prices.h"
#include "apps/bank/data.h"
#include "apps/bank/load/applicant.h"
#include "apps/bank/load/fill.h"
#include "apps/kit/load/mixed_workload.h"
#include "bank.curtail.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

constexpr uint32_t kPageLength = 10;
constexpr std::string_view kSymbols[] = {"AAPL", "AMZN", "GOOG", "IBM", "MSFT"};
constexpr std::string_view kBanks[] = {"DE89370400440532013000", "GB29NWBK60161331926819"};  // by an IBAN
constexpr std::string_view kBankNames[] = {"commerzbank berlin", "sparkasse", "barclays"};
constexpr uint64_t kRepresentatives = 100;  // whose half hours are asked for, by their ids from 1
constexpr uint64_t kMostPaid = 100;         // cents: an opening deposit lasts for thousands

constexpr apps::NamedMix kMixes[] = {
    {"mixed",
     "balance 38, activity 24, pay 16, transfer 8, find-bank 3, branches 1, search-banks 1, purchase 1.5, "
     "pay-card 1.5,"
     " quote 2, portfolio 1.5, buy 0.5, login 1.5, slots 0.1, bookings 0.1, messages 0.1, loan 0.1, new-card "
     "0.1"},
    // The weights of Bank of Anthos's load generator. Its page "home" has the balance and the last movements.
    {"anthos", "balance 10, activity 10, pay 5, transfer 5, login 5, logout 1"},
    {"balance", "balance 1"},
    {"activity", "activity 1"},
    {"pay", "pay 1"},
    {"transfer", "transfer 1"},
    {"hot", "pay-merchant 1"},
    {"card", "purchase 1, pay-card 1"},
    {"new-card", "new-card 1"},
    {"quote", "quote 1"},
    {"loan", "loan 1"},
    {"mortgage", "quote-mortgage 1, mortgage 1"},
    {"deposit", "deposit 1"},
    {"wealth", "portfolio 1, buy 1"},
    {"info", "find-bank 3, branches 1, search-banks 1"},
    {"contact", "representatives 1, slots 1, bookings 1, messages 1"},
    {"customer", "customer 1"},
    {"offers", "offers 1"},
    {"login", "login 1"}};

// A customer as Fill() has left it.
struct Caller {
  uint64_t id = 0;
  std::string name, token;
  std::vector<Account> accounts;
  uint64_t card = 0;
  std::string password;
  std::string other_token;  // of a session that may end; empty: it has none
};

absl::StatusOr<std::vector<Caller>> CallersOf(const std::vector<apps::LoadUser>& users) {
  std::vector<Caller> customers;
  for (const apps::LoadUser& user : users) {
    const std::vector<std::string>& words = user.more;
    const size_t accounts = words.size() < kWordsBeside ? 0 : (words.size() - kWordsBeside) / 2;
    if (accounts < 2 || words.size() != 2 * accounts + kWordsBeside)
      return absl::InvalidArgumentError(
          "a customer has fewer than two accounts, or no card: run bank fill --accounts 2 or more");
    Caller& customer = customers.emplace_back(user.id, user.name, user.token);
    for (size_t i = 0; i < accounts; ++i) {
      Account& account = customer.accounts.emplace_back();
      account.set_id(std::stoull(words[2 * i]));
      account.set_iban(words[2 * i + 1]);
    }
    customer.card = std::stoull(words[2 * accounts]);
    customer.password = words[2 * accounts + 1];
    if (words.back() != kNoSession) customer.other_token = words.back();
  }
  return customers;
}

bool IsWhole(const Movements& page) {
  for (int i = 1; i < page.movements_size(); ++i) {
    const Movement &later = page.movements(i - 1), &before = page.movements(i);
    if (later.version() != before.version() + 1 ||
        later.balance_cents() != before.balance_cents() + later.cents())
      return false;
  }
  return true;
}

bool IsWhole(const LoanQuote& quote) {
  int64_t rest = quote.cents() + quote.interest_cents();
  for (const Instalment& one : quote.instalments()) rest -= one.cents();
  return rest == 0 && quote.instalments_size() > 0;
}

int64_t CentsOf(Rng& rng) { return static_cast<int64_t>(1 + rng.Below(kMostPaid)); }

template <class Of>
const auto& AnyOf(Rng& rng, const Of& all) {
  return all[rng.Below(std::size(all))];
}

uint64_t AccountOf(Rng& rng, const Caller& caller) { return AnyOf(rng, caller.accounts).id(); }

// An account of `payee`, but not `account`.
const std::string& PayeeOf(Rng& rng, uint64_t account, const Caller& payee) {
  size_t number = rng.Below(payee.accounts.size());
  if (payee.accounts[number].id() == account) number = (number + 1) % payee.accounts.size();
  return payee.accounts[number].iban();
}

// Of a personal loan or a mortgage. The bank declines an application: a customer has few open offers.
template <class Request>
void FillLoan(Rng& rng, const Caller&, Request& request) {
  const auto cents = static_cast<int64_t>(100'000 * (1 + rng.Below(50)));
  const auto months = static_cast<uint32_t>(6 + rng.Below(79));
  request.set_cents(cents);
  request.set_months(months);
  if constexpr (requires { request.set_product("personal"); }) request.set_product("personal");
  if constexpr (requires { request.set_value_cents(cents); }) {
    request.set_cents(10 * cents);
    request.set_months(10 * (6 + months % 25));
    request.set_value_cents(20 * cents);
  }
  if constexpr (requires { request.mutable_features(); })
    *request.mutable_features() = Applicant(/*good=*/false);
}

template <class Request>
void FillNear(Rng& rng, const Caller&, Request& request) {
  request.mutable_near()->set_latitude(47 + rng.Uniform01() * 8);
  request.mutable_near()->set_longitude(6 + rng.Uniform01() * 9);
  request.set_limit(kPageLength);
}

int LengthOf(const BranchList& list) { return list.branches_size(); }
int LengthOf(const RepresentativeList& list) { return list.representatives_size(); }

bool HasLeft(const Payment& payment) {
  return (payment.state() == Payment::BOOKED || payment.state() == Payment::ARRIVED) && payment.version() > 0;
}
bool IsLoan(const Loan& loan) { return loan.id() > 0 && IsWhole(loan.quote()); }

// A page is right if its balances follow from its movements; a payment, if it has left the payer's account; a loan, if its
// instalments sum to it and its interest; a trade, if it costs its unit; a portfolio, if it has units of each of its stocks; a
// session, if it is the caller's; a card, if it was issued or declined with a reason. Merchants are the first accounts of the first
// customers, and get one cent, so that payers last for long. Logouts end a few sessions that nobody uses, again and again: the services
// do the same.
apps::Kinds KindsOf(const apps::Senders<Caller>& all, uint64_t merchants) {
  using Of = const Caller&;
  apps::Kinds kinds;
  const auto add = [&](std::string_view name, const auto& method, auto fill, auto is_right) {
    kinds[name] = apps::KindOf(all, method, fill, is_right);
  };
  const auto pay = [](uint64_t from, const std::string& iban, int64_t cents, PayRequest& r) {
    r.set_from(from), r.set_iban(iban), r.set_cents(cents), r.set_text("load");
  };
  const auto pay_any_of = [=](Rng& rng, Of caller, Of payee, PayRequest& r) {
    const uint64_t from = AccountOf(rng, caller);
    pay(from, PayeeOf(rng, from, payee), CentsOf(rng), r);
  };
  const auto pay_any = [=](Rng& rng, Of caller, PayRequest& r) {
    pay_any_of(rng, caller, AnyOf(rng, *all), r);
  };
  const auto pay_own = [=](Rng& rng, Of caller, PayRequest& r) { pay_any_of(rng, caller, caller, r); };
  const auto pay_merchant = [=](Rng& rng, Of caller, PayRequest& r) {
    const uint64_t from = AccountOf(rng, caller);
    const Account& merchant = (*all)[rng.Below(merchants)].accounts.front();
    pay(merchant.id() == from ? caller.accounts[1].id() : from, merchant.iban(), 1, r);
  };
  const auto purchase = [=](Rng& rng, Of caller, PurchaseRequest& r) {
    r.set_card(caller.card), r.set_iban(PayeeOf(rng, AccountOf(rng, caller), AnyOf(rng, *all)));
    r.set_cents(CentsOf(rng)), r.set_text("load");
  };
  const auto pay_card = [](Rng& rng, Of caller, PayCardRequest& r) {
    r.set_card(caller.card), r.set_from(AccountOf(rng, caller)), r.set_cents(CentsOf(rng));
  };
  const auto balance = [](Rng& rng, Of caller, BalanceRequest& r) { r.set_account(AccountOf(rng, caller)); };
  const auto activity = [](Rng& rng, Of caller, ActivityRequest& r) {
    r.set_account(AccountOf(rng, caller)), r.set_limit(kPageLength);
  };
  const auto deposit = [](Rng& rng, Of caller, DepositRequest& r) {
    r.set_from(AccountOf(rng, caller)), r.set_cents(1), r.set_days(30);
  };
  const auto buy = [](Rng& rng, Of caller, TradeRequest& r) {
    r.set_account(AccountOf(rng, caller)), r.set_symbol(std::string(AnyOf(rng, kSymbols))), r.set_units(1);
  };
  const auto apply = [](Rng&, Of, CardApplication& r) {
    r.set_income_cents(100'000), r.set_limit_cents(100'000);
  };
  const auto find_bank = [](Rng& rng, Of, BankQuery& r) { r.set_iban(std::string(AnyOf(rng, kBanks))); };
  const auto search = [](Rng& rng, Of, BankSearchQuery& r) {
    r.set_text(std::string(AnyOf(rng, kBankNames))), r.set_limit(kPageLength);
  };
  const auto slots = [](Rng& rng, Of, SlotQuery& r) {
    r.set_representative(1 + rng.Below(kRepresentatives));
  };
  const auto login = [](Rng&, Of caller, apps::Credentials& r) {
    r.set_name(caller.name), r.set_password(caller.password);
  };
  std::vector<std::string> spared;
  for (Of caller : *all)
    if (!caller.other_token.empty()) spared.push_back(caller.other_token);
  const auto logout = [spared](Rng& rng, Of, apps::TokenRequest& r) { r.set_token(AnyOf(rng, spared)); };
  const auto token_only = [](Rng&, Of, const auto&) {};

  const auto any = [](const auto&) { return true; };
  const auto whole = [](const auto& one) { return IsWhole(one); };
  const auto some_banks = [](const BankList& list) { return list.banks_size() > 0; };
  const auto bought = [](const Trade& one) {
    return one.state() == Payment::BOOKED && one.version() > 0 &&
           one.cents() == CostOfUnits(1, one.share_cents());
  };
  const auto held = [](const Portfolio& of) {
    return std::ranges::all_of(of.holdings(), [](const Holding& one) { return one.units() > 0; });
  };
  const auto decided = [](const Application& one) {
    return one.id() > 0 && (one.state() == Application::ISSUED ? one.has_card() : !one.reason().empty());
  };
  const auto own_session = [](Rng&, Of caller, const apps::Session& session) {
    return session.user() == caller.id && !session.token().empty();
  };
  const auto own = [](Rng&, Of caller, const Customer& one) { return one.id() == caller.id; };
  const auto whole_page = [](const auto& list) { return LengthOf(list) == kPageLength; };
  const auto ordered = [](const SlotList& list) { return std::ranges::is_sorted(list.starts_ms()); };

  add("balance", Bank::kGetBalance, balance, [](const Balance& of) { return of.cents() >= 0; });
  add("activity", Bank::kListActivity, activity, whole);
  add("pay", Bank::kPay, pay_any, HasLeft);
  add("transfer", Bank::kPay, pay_own, HasLeft);
  add("pay-merchant", Bank::kPay, pay_merchant, HasLeft);
  add("purchase", Bank::kPurchase, purchase, HasLeft);
  add("pay-card", Bank::kPayCard, pay_card, HasLeft);
  add("new-card", Bank::kApplyForCard, apply, decided);
  add("quote", Bank::kQuoteLoan, FillLoan<LoanQuoteRequest>, whole);
  add("loan", Bank::kApplyForLoan, FillLoan<LoanApplication>, IsLoan);
  add("quote-mortgage", Bank::kQuoteMortgage, FillLoan<MortgageQuoteRequest>, whole);
  add("mortgage", Bank::kApplyForMortgage, FillLoan<MortgageApplication>, IsLoan);
  add("deposit", Bank::kOpenDeposit, deposit,
      [](const Deposit& of) { return of.id() > 0 && of.cents() == 1; });
  add("portfolio", Bank::kGetPortfolio, token_only, held);
  add("buy", Bank::kBuyUnits, buy, bought);
  add("branches", Bank::kListBranches, FillNear<BranchQuery>, whole_page);
  add("find-bank", Bank::kFindBank, find_bank, some_banks);
  add("search-banks", Bank::kSearchBanks, search, some_banks);
  add("representatives", Bank::kListRepresentatives, FillNear<RepresentativeQuery>, whole_page);
  add("slots", Bank::kListSlots, slots, ordered);
  add("bookings", Bank::kListBookings, token_only, any);
  add("messages", Bank::kListMessages, [](Rng&, Of, MessagePage& r) { r.set_limit(kPageLength); }, any);
  add("customer", Bank::kGetCustomer, token_only, own);
  add("offers", Bank::kListOffers, token_only, any);
  add("login", Bank::kLogin, login, own_session);
  add("logout", Bank::kLogout, logout, any);
  return kinds;
}

// `users` were left by Fill(). Errors: INVALID_ARGUMENT, for the options or for users without two accounts and a card.
absl::StatusOr<apps::Kinds> MakeKinds(const std::vector<apps::LoadUser>& users,
                                      const apps::UserWorkloadOptions& options) {
  absl::StatusOr<std::vector<Caller>> customers = CallersOf(users);
  if (!customers.ok()) return customers.status();
  const absl::StatusOr<uint64_t> merchants = options.given.Number("merchants", 1);
  if (!merchants.ok()) return merchants.status();
  if (*merchants < 1 || *merchants > users.size())
    return absl::InvalidArgumentError(
        Join("--merchants is 1 to ", users.size(), ", the number of customers"));
  return KindsOf(std::make_shared<const std::vector<Caller>>(*std::move(customers)), *merchants);
}

}  // namespace

std::span<const apps::NamedMix> AllMixes() { return kMixes; }

std::string_view PathOf(std::string_view kind) {
  return KindsOf(std::make_shared<const std::vector<Caller>>(), 1).at(kind).path;
}

apps::AppRequests Requests() {
  apps::AppRequests requests = apps::MixedRequests("curtail.bank.Bank", kApplication, kMixes, MakeKinds);
  requests.options.push_back({"merchants", "how many customers the mix hot pays [1]"});
  return requests;
}

}  // namespace curtail::bank
