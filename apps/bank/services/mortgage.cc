// SPDX-License-Identifier: Apache-2.0
//
// Mortgages: loans on houses. Keeps nothing: `loan-request` has each application, also one that this service declines. The rule: a loan
// is at most four fifths of the value; above three fifths its repayment has to be more probable.
#include "apps/bank/common/credit.h"
#include "apps/bank/data.h"
#include "apps/kit/ledger/input.h"
#include "apps/kit/once.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

constexpr int64_t kMostOfValue = 80, kSafeOfValue = 60;  // percent
constexpr double kProbabilityAboveSafe = 0.75;

struct MortgageService final : Mortgages::CoroutineService {
  explicit MortgageService(Env& e) : env(e) {}

  Coroutine Quote(Context& ctx, const MortgageQuery& request, LoanQuote* reply) override {
    if (absl::Status status = apps::ledger::CheckCents(request.value_cents(), 1); !status.ok())
      co_return status;
    if (IsAbove(request.cents(), request.value_cents(), kMostOfValue))
      co_return absl::FailedPreconditionError(TooMuch());
    LoanQuoteRequest wanted;
    wanted.set_product(kProduct);
    wanted.set_cents(request.cents());
    wanted.set_months(request.months());
    co_return co_await call(ctx, loans.channel(), LoanInfo::kQuote, wanted, reply);
  }

  Coroutine Apply(Context& ctx, const MortgageOrder& request, Loan* reply) override {
    if (absl::Status status = apps::ledger::CheckCents(request.value_cents(), 1); !status.ok())
      co_return status;
    LoanOrder order;
    order.set_customer(request.customer());
    order.set_product(kProduct);
    order.set_cents(request.cents());
    order.set_months(request.months());
    *order.mutable_features() = request.features();
    if (IsAbove(request.cents(), request.value_cents(), kMostOfValue)) {
      order.set_refusal(TooMuch());
    } else if (IsAbove(request.cents(), request.value_cents(), kSafeOfValue)) {
      const absl::StatusOr<CreditFeatures> features = FeaturesOf(order);
      if (!features.ok()) co_return features.status();
      auto [score] = co_await WhenAll(ctx, Ask(scoring, CreditScoring::kScore, *features));
      if (!score.ok()) co_return score.status();
      if (score->probability() < kProbabilityAboveSafe)
        order.set_refusal(
            Join("repayment is not probable enough for a loan above ", kSafeOfValue, " % of the value"));
    }
    // The same answer to a repetition: the name of the request goes with it.
    apps::Once(ctx, request.customer()).HandOn(ctx);
    co_return co_await call(ctx, requests.channel(), LoanRequests::kApply, order, reply);
  }

  // REQUIRES: 0 < value <= 10^12.
  static bool IsAbove(int64_t cents, int64_t value, int64_t percent) { return cents > value * percent / 100; }
  static std::string TooMuch() { return Join("the loan is above ", kMostOfValue, " % of the value"); }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Quote", {loans}}, {"Apply", {scoring, requests}}};
  }

  static constexpr char kProduct[] = "mortgage";
  Env& env;
  const LoanInfo::Stub loans = env.Stub<LoanInfo>("loan-info");
  const CreditScoring::Stub scoring = env.Stub<CreditScoring>("credit-scoring");
  const LoanRequests::Stub requests = env.Stub<LoanRequests>("loan-request");
};

HostedService HostedMortgage() {
  return {.name = "mortgage",
          .make = [](Env& env) -> MadeService { return std::make_unique<MortgageService>(env); }};
}

}  // namespace curtail::bank
