// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/workload.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bank/applicant.h"
#include "apps/bank/data.h"
#include "apps/bank/fill.h"
#include "apps/bank/mixes.h"
#include "apps/bank/prices.h"
#include "apps/kit/mixed_workload.h"
#include "bank.curtail.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/choice.h"

namespace curtail::bank {
namespace {

constexpr uint32_t kPageLength = 10;
constexpr std::string_view kSymbols[] = {"AAPL", "AMZN", "GOOG", "IBM", "MSFT"};
constexpr std::string_view kBanks[] = {"DE89370400440532013000", "GB29NWBK60161331926819"};  // by an IBAN
constexpr std::string_view kBankNames[] = {"commerzbank berlin", "sparkasse", "barclays"};
constexpr uint64_t kRepresentatives = 100;  // whose half hours are asked for, by their ids from 1
constexpr uint64_t kMostPaid = 100;         // cents: an opening deposit lasts for thousands

std::vector<std::string_view> Mixes() {
  std::vector<std::string_view> names;
  for (const Mix& mix : AllMixes()) names.push_back(mix.name);
  return names;
}

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

bool HasLeft(const Payment& payment) {
  return (payment.state() == Payment::BOOKED || payment.state() == Payment::ARRIVED) && payment.version() > 0;
}
bool IsLoan(const Loan& loan) { return loan.id() > 0 && IsWhole(loan.quote()); }

// A page is right if its balances follow from its movements; a payment, if it has left the payer's account; a loan, if its
// instalments sum to it and its interest; a trade, if it costs its unit; a portfolio, if it has units of each of its stocks; a
// session, if it is the caller's; a card, if it was issued or declined with a reason.
std::map<Kind, apps::RequestKind> KindsOf(const apps::Senders<Caller>& all, uint64_t merchants) {
  std::map<Kind, apps::RequestKind> kinds;
  const auto add = [&](Kind kind, const auto& method, auto fill, auto is_right) {
    kinds[kind] = apps::KindOf(all, method, fill, is_right);
  };
  const auto any = [](const auto&) { return true; };
  const auto token_only = [](Rng&, const Caller&, const auto&) {};
  // Merchants are the first accounts of the first customers, and get one cent, so that payers last for long.
  const auto pay = [](uint64_t account, const std::string& iban, int64_t cents, PayRequest& request) {
    request.set_from(account);
    request.set_cents(cents);
    request.set_text("load");
    request.set_iban(iban);
  };
  add(
      Kind::kBalance, Bank::kGetBalance,
      [](Rng& rng, const Caller& caller, BalanceRequest& request) {
        request.set_account(AccountOf(rng, caller));
      },
      [](const Balance& of) { return of.cents() >= 0; });
  add(
      Kind::kActivity, Bank::kListActivity,
      [](Rng& rng, const Caller& caller, ActivityRequest& request) {
        request.set_account(AccountOf(rng, caller));
        request.set_limit(kPageLength);
      },
      [](const Movements& page) { return IsWhole(page); });
  add(
      Kind::kPay, Bank::kPay,
      [=](Rng& rng, const Caller& caller, PayRequest& request) {
        const uint64_t account = AccountOf(rng, caller);
        const int64_t cents = CentsOf(rng);
        pay(account, PayeeOf(rng, account, AnyOf(rng, *all)), cents, request);
      },
      HasLeft);
  add(
      Kind::kOwnTransfer, Bank::kPay,
      [=](Rng& rng, const Caller& caller, PayRequest& request) {
        const uint64_t account = AccountOf(rng, caller);
        const int64_t cents = CentsOf(rng);
        pay(account, PayeeOf(rng, account, caller), cents, request);
      },
      HasLeft);
  add(
      Kind::kPayMerchant, Bank::kPay,
      [=](Rng& rng, const Caller& caller, PayRequest& request) {
        uint64_t account = AccountOf(rng, caller);
        const Account& merchant = (*all)[rng.Below(merchants)].accounts.front();
        if (merchant.id() == account) account = caller.accounts[1].id();
        pay(account, merchant.iban(), 1, request);
      },
      HasLeft);
  add(
      Kind::kPurchase, Bank::kPurchase,
      [=](Rng& rng, const Caller& caller, PurchaseRequest& request) {
        request.set_card(caller.card);
        request.set_iban(PayeeOf(rng, AccountOf(rng, caller), AnyOf(rng, *all)));
        request.set_cents(CentsOf(rng));
        request.set_text("load");
      },
      HasLeft);
  add(
      Kind::kPayCard, Bank::kPayCard,
      [](Rng& rng, const Caller& caller, PayCardRequest& request) {
        request.set_card(caller.card);
        request.set_from(AccountOf(rng, caller));
        request.set_cents(CentsOf(rng));
      },
      HasLeft);
  add(
      Kind::kApplyForCard, Bank::kApplyForCard,
      [](Rng&, const Caller&, CardApplication& request) {
        request.set_income_cents(100'000);
        request.set_limit_cents(100'000);
      },
      [](const Application& one) {
        return one.id() > 0 && (one.state() == Application::ISSUED ? one.has_card() : !one.reason().empty());
      });
  const auto whole = [](const LoanQuote& quote) { return IsWhole(quote); };
  add(Kind::kQuote, Bank::kQuoteLoan, FillLoan<LoanQuoteRequest>, whole);
  add(Kind::kLoan, Bank::kApplyForLoan, FillLoan<LoanApplication>, IsLoan);
  add(Kind::kQuoteMortgage, Bank::kQuoteMortgage, FillLoan<MortgageQuoteRequest>, whole);
  add(Kind::kMortgage, Bank::kApplyForMortgage, FillLoan<MortgageApplication>, IsLoan);
  add(
      Kind::kDeposit, Bank::kOpenDeposit,
      [](Rng& rng, const Caller& caller, DepositRequest& request) {
        request.set_from(AccountOf(rng, caller));
        request.set_cents(1);
        request.set_days(30);
      },
      [](const Deposit& one) { return one.id() > 0 && one.cents() == 1; });
  add(Kind::kPortfolio, Bank::kGetPortfolio, token_only, [](const Portfolio& of) {
    return std::ranges::all_of(of.holdings(), [](const Holding& one) { return one.units() > 0; });
  });
  add(
      Kind::kBuy, Bank::kBuyUnits,
      [](Rng& rng, const Caller& caller, TradeRequest& request) {
        request.set_account(AccountOf(rng, caller));
        request.set_symbol(std::string(AnyOf(rng, kSymbols)));
        request.set_units(1);
      },
      [](const Trade& trade) {
        return trade.state() == Payment::BOOKED && trade.version() > 0 &&
               trade.cents() == CostOfUnits(1, trade.share_cents());
      });
  add(Kind::kBranches, Bank::kListBranches, FillNear<BranchQuery>,
      [](const BranchList& list) { return list.branches_size() == kPageLength; });
  add(Kind::kRepresentatives, Bank::kListRepresentatives, FillNear<RepresentativeQuery>,
      [](const RepresentativeList& list) { return list.representatives_size() == kPageLength; });
  const auto some_banks = [](const BankList& list) { return list.banks_size() > 0; };
  add(
      Kind::kFindBank, Bank::kFindBank,
      [](Rng& rng, const Caller&, BankQuery& request) { request.set_iban(std::string(AnyOf(rng, kBanks))); },
      some_banks);
  add(
      Kind::kSearchBanks, Bank::kSearchBanks,
      [](Rng& rng, const Caller&, BankSearchQuery& request) {
        request.set_text(std::string(AnyOf(rng, kBankNames)));
        request.set_limit(kPageLength);
      },
      some_banks);
  add(
      Kind::kSlots, Bank::kListSlots,
      [](Rng& rng, const Caller&, SlotQuery& request) {
        request.set_representative(1 + rng.Below(kRepresentatives));
      },
      [](const SlotList& list) { return std::ranges::is_sorted(list.starts_ms()); });
  add(Kind::kBookings, Bank::kListBookings, token_only, any);
  add(
      Kind::kMessages, Bank::kListMessages,
      [](Rng&, const Caller&, MessagePage& request) { request.set_limit(kPageLength); }, any);
  add(Kind::kCustomer, Bank::kGetCustomer, token_only,
      [](Rng&, const Caller& caller, const Customer& one) { return one.id() == caller.id; });
  add(Kind::kOffers, Bank::kListOffers, token_only, any);
  add(
      Kind::kLogin, Bank::kLogin,
      [](Rng&, const Caller& caller, apps::Credentials& request) {
        request.set_name(caller.name);
        request.set_password(caller.password);
      },
      [](Rng&, const Caller& caller, const apps::Session& session) {
        return session.user() == caller.id && !session.token().empty();
      });
  // Logouts end a few sessions that nobody uses, again and again: the services do the same.
  std::vector<std::string> spared;
  for (const Caller& caller : *all)
    if (!caller.other_token.empty()) spared.push_back(caller.other_token);
  add(
      Kind::kLogout, Bank::kLogout,
      [spared](Rng& rng, const Caller&, apps::TokenRequest& request) {
        request.set_token(AnyOf(rng, spared));
      },
      any);
  return kinds;
}

// `users` were left by Fill(). Errors: INVALID_ARGUMENT, for the options or for users without two accounts and a card.
absl::StatusOr<std::unique_ptr<Workload>> MakeBankWorkload(std::vector<apps::LoadUser> users,
                                                           const apps::UserWorkloadOptions& options) {
  absl::StatusOr<std::vector<Caller>> customers = CallersOf(users);
  if (!customers.ok()) return customers.status();
  absl::StatusOr<ItemChoice> choice = apps::SendersOf(options, Mixes(), users.size());
  if (!choice.ok()) return choice.status();
  const absl::StatusOr<uint64_t> merchants = options.given.Number("merchants", 1);
  if (!merchants.ok()) return merchants.status();
  if (*merchants < 1 || *merchants > users.size())
    return absl::InvalidArgumentError(
        Join("--merchants is 1 to ", users.size(), ", the number of customers"));
  const auto kinds = KindsOf(std::make_shared<const std::vector<Caller>>(*std::move(customers)), *merchants);
  apps::MixedWorkload::Mix mix;
  for (const auto& [kind, weight] : std::ranges::find(AllMixes(), options.mix, &Mix::name)->weights)
    mix.emplace_back(kinds.at(kind), weight);
  return std::make_unique<apps::MixedWorkload>(std::move(mix), options.seed, *std::move(choice));
}

}  // namespace

std::string_view PathOf(Kind kind) {
  return KindsOf(std::make_shared<const std::vector<Caller>>(), 1).at(kind).path;
}

apps::AppRequests Requests() {
  apps::AppRequests requests =
      apps::UserRequests("curtail.bank.Bank", kApplication, Mixes(), MakeBankWorkload);
  requests.options.push_back({"merchants", "how many customers the mix hot pays [1]"});
  return requests;
}

}  // namespace curtail::bank
