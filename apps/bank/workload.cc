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
#include "apps/bank/prices.h"
#include "bank.curtail.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/choice.h"

namespace curtail::bank {
namespace {

constexpr uint32_t kPageLength = 10;
constexpr std::string_view kSymbols[] = {"AAPL", "AMZN", "GOOG", "IBM", "MSFT"};
constexpr uint64_t kMostPaid = 100;  // cents: an opening deposit lasts for thousands

std::vector<std::string_view> Mixes() {
  return {"mixed", "balance", "activity", "pay", "card", "quote", "loan", "wealth"};
}

enum class Kind {
  kBalance,
  kActivity,
  kPay,
  kOwnTransfer,
  kPurchase,
  kPayCard,
  kQuote,
  kLoan,
  kPortfolio,
  kBuy
};

class BankWorkload final : public Workload {
 public:
  BankWorkload(std::vector<apps::LoadUser> users, std::string mix, uint64_t seed, ItemChoice choice)
      : users_(std::move(users)), mix_(std::move(mix)), seed_(seed), choice_(std::move(choice)) {}

  std::string_view method() const override { return Path(mix_ == "mixed" ? Kind::kBalance : Only()); }
  std::string_view MethodOf(uint64_t index) const override {
    Rng rng = RngOf(index);
    return Path(KindOf(rng));
  }

  std::string Request(uint64_t index) const override {
    Rng rng = RngOf(index);
    const apps::LoadUser& caller = users_[choice_.Index(index)];
    const Kind kind = KindOf(rng);
    if (kind == Kind::kQuote || kind == Kind::kLoan) return LoanRequestOf(rng, caller, kind);
    if (kind == Kind::kPortfolio) {
      apps::TokenRequest request;
      request.set_token(caller.token);
      return request.SerializeAsString();
    }
    const size_t number = rng.Below(caller.more.size() / 2);
    const uint64_t account = std::stoull(caller.more[2 * number]);
    if (kind == Kind::kBalance) {
      BalanceRequest request;
      request.set_token(caller.token);
      request.set_account(account);
      return request.SerializeAsString();
    }
    if (kind == Kind::kActivity) {
      ActivityRequest request;
      request.set_token(caller.token);
      request.set_account(account);
      request.set_limit(kPageLength);
      return request.SerializeAsString();
    }
    if (kind == Kind::kPurchase || kind == Kind::kPayCard) return CardRequestOf(rng, caller, number, kind);
    if (kind == Kind::kBuy) {
      TradeRequest request;
      request.set_token(caller.token);
      request.set_account(account);
      request.set_symbol(std::string(kSymbols[rng.Below(std::size(kSymbols))]));
      request.set_units(1);
      return request.SerializeAsString();
    }
    PayRequest request;
    request.set_token(caller.token);
    request.set_from(account);
    request.set_iban(PayeeOf(rng, caller, number, kind));
    request.set_cents(CentsOf(rng));
    request.set_text("load");
    return request.SerializeAsString();
  }

  // A page is right if its balances follow from its movements; a payment, if it has left the payer's account; a loan, if its
  // instalments sum to it and its interest; a trade, if it costs its unit; a portfolio, if it has units of each of its stocks.
  double Score(uint64_t index, std::string_view reply) const override {
    Rng rng = RngOf(index);
    const auto parsed = [&](auto& message) {
      return message.ParseFromArray(reply.data(), static_cast<int>(reply.size()));
    };
    const Kind kind = KindOf(rng);
    if (kind == Kind::kBalance) {
      Balance balance;
      return parsed(balance) && balance.cents() >= 0 ? 1 : 0;
    }
    if (kind == Kind::kActivity) {
      Movements page;
      return parsed(page) && IsWhole(page) ? 1 : 0;
    }
    if (kind == Kind::kQuote) {
      LoanQuote quote;
      return parsed(quote) && IsWhole(quote) ? 1 : 0;
    }
    if (kind == Kind::kLoan) {
      Loan loan;
      return parsed(loan) && loan.id() > 0 && IsWhole(loan.quote()) ? 1 : 0;
    }
    if (kind == Kind::kPortfolio) {
      Portfolio portfolio;
      const auto has = [](const Holding& one) { return one.units() > 0; };
      return parsed(portfolio) && std::ranges::all_of(portfolio.holdings(), has) ? 1 : 0;
    }
    if (kind == Kind::kBuy) {
      Trade trade;
      return parsed(trade) && trade.state() == Payment::BOOKED && trade.version() > 0 &&
                     trade.cents() == CostOfUnits(1, trade.share_cents())
                 ? 1
                 : 0;
    }
    Payment payment;
    return parsed(payment) && (payment.state() == Payment::BOOKED || payment.state() == Payment::ARRIVED) &&
                   payment.version() > 0
               ? 1
               : 0;
  }
  std::string_view score_name() const override { return "right"; }

 private:
  static std::string_view Path(Kind kind) {
    switch (kind) {
      case Kind::kBalance:
        return Bank::kGetBalance.path;
      case Kind::kActivity:
        return Bank::kListActivity.path;
      case Kind::kPurchase:
        return Bank::kPurchase.path;
      case Kind::kPayCard:
        return Bank::kPayCard.path;
      case Kind::kQuote:
        return Bank::kQuoteLoan.path;
      case Kind::kLoan:
        return Bank::kApplyForLoan.path;
      case Kind::kPortfolio:
        return Bank::kGetPortfolio.path;
      case Kind::kBuy:
        return Bank::kBuyUnits.path;
      default:
        return Bank::kPay.path;
    }
  }
  static bool IsWhole(const Movements& page) {
    for (int i = 1; i < page.movements_size(); ++i) {
      const Movement &later = page.movements(i - 1), &before = page.movements(i);
      if (later.version() != before.version() + 1 ||
          later.balance_cents() != before.balance_cents() + later.cents())
        return false;
    }
    return true;
  }

  static bool IsWhole(const LoanQuote& quote) {
    int64_t rest = quote.cents() + quote.interest_cents();
    for (const Instalment& one : quote.instalments()) rest -= one.cents();
    return rest == 0 && quote.instalments_size() > 0;
  }

  static int64_t CentsOf(Rng& rng) { return static_cast<int64_t>(1 + rng.Below(kMostPaid)); }

  // A purchase at anyone, or a payment of the card's debt from the caller's account.
  std::string CardRequestOf(Rng& rng, const apps::LoadUser& caller, size_t number, Kind kind) const {
    const uint64_t card = std::stoull(caller.more.back());
    if (kind == Kind::kPurchase) {
      PurchaseRequest request;
      request.set_token(caller.token);
      request.set_card(card);
      request.set_iban(PayeeOf(rng, caller, number, Kind::kPay));
      request.set_cents(CentsOf(rng));
      request.set_text("load");
      return request.SerializeAsString();
    }
    PayCardRequest request;
    request.set_token(caller.token);
    request.set_card(card);
    request.set_from(std::stoull(caller.more[2 * number]));
    request.set_cents(CentsOf(rng));
    return request.SerializeAsString();
  }

  // A quote of a personal loan, or an application for one. The bank declines it: a customer has few open offers.
  static std::string LoanRequestOf(Rng& rng, const apps::LoadUser& caller, Kind kind) {
    const auto cents = static_cast<int64_t>(100'000 * (1 + rng.Below(50)));
    const auto months = static_cast<uint32_t>(6 + rng.Below(79));
    if (kind == Kind::kQuote) {
      LoanQuoteRequest request;
      request.set_product("personal");
      request.set_cents(cents);
      request.set_months(months);
      return request.SerializeAsString();
    }
    LoanApplication request;
    request.set_token(caller.token);
    request.set_product("personal");
    request.set_cents(cents);
    request.set_months(months);
    *request.mutable_features() = Applicant(/*good=*/false);
    return request.SerializeAsString();
  }

  // Another account: of the caller, or of anyone.
  const std::string& PayeeOf(Rng& rng, const apps::LoadUser& caller, size_t number, Kind kind) const {
    const apps::LoadUser& payee = kind == Kind::kPay ? users_[rng.Below(users_.size())] : caller;
    const size_t accounts = payee.more.size() / 2;
    size_t other = rng.Below(accounts);
    if (&payee == &caller && other == number) other = (other + 1) % accounts;
    return payee.more[2 * other + 1];
  }

  Kind Only() const {
    if (mix_ == "balance") return Kind::kBalance;
    if (mix_ == "card") return Kind::kPurchase;
    if (mix_ == "quote") return Kind::kQuote;
    if (mix_ == "loan") return Kind::kLoan;
    if (mix_ == "wealth") return Kind::kPortfolio;
    return mix_ == "activity" ? Kind::kActivity : Kind::kPay;
  }
  // The first choice that a request makes.
  Kind KindOf(Rng& rng) const {
    const double share = rng.Uniform01();
    if (mix_ == "card") return share < 0.5 ? Kind::kPurchase : Kind::kPayCard;
    if (mix_ == "wealth") return share < 0.5 ? Kind::kPortfolio : Kind::kBuy;
    if (mix_ != "mixed") return Only();
    if (share < 0.40) return Kind::kBalance;
    if (share < 0.649) return Kind::kActivity;
    if (share < 0.659) return Kind::kPortfolio;
    if (share < 0.669) return Kind::kBuy;
    if (share < 0.689) return Kind::kQuote;
    if (share < 0.69) return Kind::kLoan;
    if (share < 0.87) return Kind::kPay;
    if (share < 0.95) return Kind::kOwnTransfer;
    return share < 0.98 ? Kind::kPurchase : Kind::kPayCard;
  }
  Rng RngOf(uint64_t index) const { return Rng(seed_ * 0x9E3779B97F4A7C15u + index); }

  // Immutable after construction.
  const std::vector<apps::LoadUser> users_;
  const std::string mix_;
  const uint64_t seed_;
  const ItemChoice choice_;
};

// `users` were left by Fill(). Errors: INVALID_ARGUMENT, for the options or for users without two accounts and a card.
absl::StatusOr<std::unique_ptr<Workload>> MakeBankWorkload(std::vector<apps::LoadUser> users,
                                                           const apps::UserWorkloadOptions& options) {
  if (std::ranges::any_of(users, [](const apps::LoadUser& user) { return user.more.size() < 5; }))
    return absl::InvalidArgumentError(
        "a customer has fewer than two accounts, or no card: run bank fill --accounts 2 or more");
  absl::StatusOr<ItemChoice> choice = apps::SendersOf(options, Mixes(), users.size());
  if (!choice.ok()) return choice.status();
  return std::make_unique<BankWorkload>(std::move(users), options.mix, options.seed, *std::move(choice));
}

}  // namespace

apps::AppRequests Requests() {
  return apps::UserRequests("curtail.bank.Bank", kApplication, Mixes(), MakeBankWorkload);
}

}  // namespace curtail::bank
