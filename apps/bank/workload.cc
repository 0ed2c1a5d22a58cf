// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/workload.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bank/applicant.h"
#include "apps/bank/data.h"
#include "apps/bank/fill.h"
#include "apps/bank/mixes.h"
#include "apps/bank/prices.h"
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
std::string_view AnyOf(Rng& rng, const Of& all) {
  return all[rng.Below(std::size(all))];
}

// A quote or an application, for a personal loan or a mortgage. The bank declines it: a customer has few open offers.
std::string LoanRequestOf(Rng& rng, const std::string& token, Kind kind) {
  const auto cents = static_cast<int64_t>(100'000 * (1 + rng.Below(50)));
  const auto months = static_cast<uint32_t>(6 + rng.Below(79));
  const auto of = [&](auto request) {
    request.set_cents(cents);
    request.set_months(months);
    if constexpr (requires { request.set_product("personal"); }) request.set_product("personal");
    if constexpr (requires { request.set_value_cents(cents); }) {
      request.set_cents(10 * cents);
      request.set_months(10 * (6 + months % 25));
      request.set_value_cents(20 * cents);
    }
    if constexpr (requires { request.set_token(token); }) {
      request.set_token(token);
      *request.mutable_features() = Applicant(/*good=*/false);
    }
    return request.SerializeAsString();
  };
  switch (kind) {
    case Kind::kQuote:
      return of(LoanQuoteRequest());
    case Kind::kLoan:
      return of(LoanApplication());
    case Kind::kQuoteMortgage:
      return of(MortgageQuoteRequest());
    default:
      return of(MortgageApplication());
  }
}

// Questions that need no session.
std::string InfoRequestOf(Rng& rng, Kind kind) {
  const auto near = [&](auto request) {
    request.mutable_near()->set_latitude(47 + rng.Uniform01() * 8);
    request.mutable_near()->set_longitude(6 + rng.Uniform01() * 9);
    request.set_limit(kPageLength);
    return request.SerializeAsString();
  };
  if (kind == Kind::kBranches) return near(BranchQuery());
  if (kind == Kind::kRepresentatives) return near(RepresentativeQuery());
  if (kind == Kind::kFindBank) {
    BankQuery request;
    request.set_iban(std::string(AnyOf(rng, kBanks)));
    return request.SerializeAsString();
  }
  if (kind == Kind::kSlots) {
    SlotQuery request;
    request.set_representative(1 + rng.Below(kRepresentatives));
    return request.SerializeAsString();
  }
  BankSearchQuery request;
  request.set_text(std::string(AnyOf(rng, kBankNames)));
  request.set_limit(kPageLength);
  return request.SerializeAsString();
}

class BankWorkload final : public Workload {
 public:
  BankWorkload(std::vector<Caller> customers, const Mix& mix, uint64_t merchants, uint64_t seed,
               ItemChoice choice)
      : customers_(std::move(customers)),
        mix_(mix),
        merchants_(merchants),
        seed_(seed),
        choice_(std::move(choice)) {
    for (const Caller& customer : customers_)
      if (!customer.other_token.empty()) other_tokens_.push_back(customer.other_token);
  }

  std::string_view method() const override { return PathOf(mix_.weights.front().first); }
  std::string_view MethodOf(uint64_t index) const override {
    Rng rng = RngOf(index);
    return PathOf(KindOf(rng));
  }

  std::string Request(uint64_t index) const override {
    Rng rng = RngOf(index);
    const Caller& caller = customers_[choice_.Index(index)];
    const Kind kind = KindOf(rng);
    switch (kind) {
      case Kind::kQuote:
      case Kind::kLoan:
      case Kind::kQuoteMortgage:
      case Kind::kMortgage:
        return LoanRequestOf(rng, caller.token, kind);
      case Kind::kBranches:
      case Kind::kFindBank:
      case Kind::kSearchBanks:
      case Kind::kRepresentatives:
      case Kind::kSlots:
        return InfoRequestOf(rng, kind);
      case Kind::kLogin:
      case Kind::kLogout:
      case Kind::kPortfolio:
      case Kind::kBookings:
      case Kind::kMessages:
      case Kind::kCustomer:
      case Kind::kOffers:
      case Kind::kApplyForCard:
        return CustomerRequestOf(rng, caller, kind);
      case Kind::kPay:
      case Kind::kOwnTransfer:
      case Kind::kPayMerchant:
        return PaymentOf(rng, caller, kind);
      default:
        return AccountRequestOf(rng, caller, kind);
    }
  }

  // A page is right if its balances follow from its movements; a payment, if it has left the payer's account; a loan, if its
  // instalments sum to it and its interest; a trade, if it costs its unit; a portfolio, if it has units of each of its stocks; a
  // session, if it is the caller's; a card, if it was issued or declined with a reason.
  double Score(uint64_t index, std::string_view reply) const override {
    Rng rng = RngOf(index);
    const Kind kind = KindOf(rng);
    const auto right = [&](auto message, auto is_right) {
      return message.ParseFromArray(reply.data(), static_cast<int>(reply.size())) && is_right(message) ? 1.0
                                                                                                       : 0.0;
    };
    const auto any = [](const auto&) { return true; };
    switch (kind) {
      case Kind::kBalance:
        return right(Balance(), [](const Balance& of) { return of.cents() >= 0; });
      case Kind::kActivity:
        return right(Movements(), [](const Movements& page) { return IsWhole(page); });
      case Kind::kQuote:
      case Kind::kQuoteMortgage:
        return right(LoanQuote(), [](const LoanQuote& quote) { return IsWhole(quote); });
      case Kind::kLoan:
      case Kind::kMortgage:
        return right(Loan(), [](const Loan& loan) { return loan.id() > 0 && IsWhole(loan.quote()); });
      case Kind::kApplyForCard:
        return right(Application(), [](const Application& one) {
          return one.id() > 0 &&
                 (one.state() == Application::ISSUED ? one.has_card() : !one.reason().empty());
        });
      case Kind::kDeposit:
        return right(Deposit(), [](const Deposit& one) { return one.id() > 0 && one.cents() == 1; });
      case Kind::kPortfolio:
        return right(Portfolio(), [](const Portfolio& of) {
          return std::ranges::all_of(of.holdings(), [](const Holding& one) { return one.units() > 0; });
        });
      case Kind::kBuy:
        return right(Trade(), [](const Trade& trade) {
          return trade.state() == Payment::BOOKED && trade.version() > 0 &&
                 trade.cents() == CostOfUnits(1, trade.share_cents());
        });
      case Kind::kBranches:
        return right(BranchList(),
                     [](const BranchList& list) { return list.branches_size() == kPageLength; });
      case Kind::kFindBank:
      case Kind::kSearchBanks:
        return right(BankList(), [](const BankList& list) { return list.banks_size() > 0; });
      case Kind::kRepresentatives:
        return right(RepresentativeList(), [](const RepresentativeList& list) {
          return list.representatives_size() == kPageLength;
        });
      case Kind::kSlots:
        return right(SlotList(),
                     [](const SlotList& list) { return std::ranges::is_sorted(list.starts_ms()); });
      case Kind::kBookings:
        return right(BookingList(), any);
      case Kind::kMessages:
        return right(MessageList(), any);
      case Kind::kCustomer:
        return right(Customer(),
                     [&](const Customer& one) { return one.id() == customers_[choice_.Index(index)].id; });
      case Kind::kOffers:
        return right(OfferList(), any);
      case Kind::kLogin:
        return right(apps::Session(), [&](const apps::Session& session) {
          return session.user() == customers_[choice_.Index(index)].id && !session.token().empty();
        });
      case Kind::kLogout:
        return right(apps::Changed(), any);
      default:
        return right(Payment(), [](const Payment& payment) {
          return (payment.state() == Payment::BOOKED || payment.state() == Payment::ARRIVED) &&
                 payment.version() > 0;
        });
    }
  }
  std::string_view score_name() const override { return "right"; }

 private:
  // Requests that name an account of the caller.
  std::string AccountRequestOf(Rng& rng, const Caller& caller, Kind kind) const {
    const uint64_t account = caller.accounts[rng.Below(caller.accounts.size())].id();
    const auto of = [&](auto request, auto fill) {
      request.set_token(caller.token);
      fill(request);
      return request.SerializeAsString();
    };
    switch (kind) {
      case Kind::kBalance:
        return of(BalanceRequest(), [&](BalanceRequest& request) { request.set_account(account); });
      case Kind::kActivity:
        return of(ActivityRequest(), [&](ActivityRequest& request) {
          request.set_account(account);
          request.set_limit(kPageLength);
        });
      case Kind::kBuy:
        return of(TradeRequest(), [&](TradeRequest& request) {
          request.set_account(account);
          request.set_symbol(std::string(AnyOf(rng, kSymbols)));
          request.set_units(1);
        });
      case Kind::kDeposit:
        return of(DepositRequest(), [&](DepositRequest& request) {
          request.set_from(account);
          request.set_cents(1);
          request.set_days(30);
        });
      case Kind::kPurchase:
        return of(PurchaseRequest(), [&](PurchaseRequest& request) {
          request.set_card(caller.card);
          request.set_iban(PayeeOf(rng, account, customers_[rng.Below(customers_.size())]));
          request.set_cents(CentsOf(rng));
          request.set_text("load");
        });
      default:
        return of(PayCardRequest(), [&](PayCardRequest& request) {
          request.set_card(caller.card);
          request.set_from(account);
          request.set_cents(CentsOf(rng));
        });
    }
  }

  // A payment to anyone, to another account of the caller, or to a merchant: the first account of one of the first customers. Merchants
  // get one cent, so that payers last for long.
  std::string PaymentOf(Rng& rng, const Caller& caller, Kind kind) const {
    const uint64_t account = caller.accounts[rng.Below(caller.accounts.size())].id();
    PayRequest request;
    request.set_token(caller.token);
    request.set_from(account);
    request.set_cents(kind == Kind::kPayMerchant ? 1 : CentsOf(rng));
    request.set_text("load");
    if (kind == Kind::kPayMerchant) {
      const Account& merchant = customers_[rng.Below(merchants_)].accounts.front();
      request.set_iban(merchant.iban());
      if (merchant.id() == account) request.set_from(caller.accounts[1].id());
    } else {
      request.set_iban(
          PayeeOf(rng, account, kind == Kind::kPay ? customers_[rng.Below(customers_.size())] : caller));
    }
    return request.SerializeAsString();
  }

  // An account of `payee`, but not `account`.
  static const std::string& PayeeOf(Rng& rng, uint64_t account, const Caller& payee) {
    size_t number = rng.Below(payee.accounts.size());
    if (payee.accounts[number].id() == account) number = (number + 1) % payee.accounts.size();
    return payee.accounts[number].iban();
  }

  // Requests that name only the caller. Logouts end a few sessions that nobody uses, again and again: the services do the same.
  std::string CustomerRequestOf(Rng& rng, const Caller& caller, Kind kind) const {
    if (kind == Kind::kLogin) {
      apps::Credentials request;
      request.set_name(caller.name);
      request.set_password(caller.password);
      return request.SerializeAsString();
    }
    if (kind == Kind::kMessages) {
      MessagePage request;
      request.set_token(caller.token);
      request.set_limit(kPageLength);
      return request.SerializeAsString();
    }
    if (kind == Kind::kApplyForCard) {
      CardApplication request;
      request.set_token(caller.token);
      request.set_income_cents(100'000);
      request.set_limit_cents(100'000);
      return request.SerializeAsString();
    }
    apps::TokenRequest request;
    request.set_token(kind == Kind::kLogout ? other_tokens_[rng.Below(other_tokens_.size())] : caller.token);
    return request.SerializeAsString();
  }

  // The first choice that a request makes.
  Kind KindOf(Rng& rng) const {
    double all = 0;
    for (const auto& [kind, weight] : mix_.weights) all += weight;
    double share = rng.Uniform01() * all;
    for (const auto& [kind, weight] : mix_.weights) {
      if (share < weight) return kind;
      share -= weight;
    }
    return mix_.weights.front().first;
  }
  Rng RngOf(uint64_t index) const { return Rng(seed_ * 0x9E3779B97F4A7C15u + index); }

  // Immutable after construction.
  const std::vector<Caller> customers_;
  std::vector<std::string> other_tokens_;
  const Mix& mix_;
  const uint64_t merchants_;
  const uint64_t seed_;
  const ItemChoice choice_;
};

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
  const auto mix = std::ranges::find(AllMixes(), options.mix, &Mix::name);
  return std::make_unique<BankWorkload>(*std::move(customers), *mix, *merchants, options.seed,
                                        *std::move(choice));
}

}  // namespace

apps::AppRequests Requests() {
  apps::AppRequests requests =
      apps::UserRequests("curtail.bank.Bank", kApplication, Mixes(), MakeBankWorkload);
  requests.options.push_back({"merchants", "how many customers the mix hot pays [1]"});
  return requests;
}

}  // namespace curtail::bank
