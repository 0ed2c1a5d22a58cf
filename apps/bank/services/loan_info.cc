// SPDX-License-Identifier: Apache-2.0
//
// Loan info: the loans that the bank offers, and their instalments. Keeps nothing.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "apps/bank/common/interest.h"
#include "apps/bank/data.h"

namespace curtail::bank {

struct ProductOfLoans {
  std::string_view name;
  int64_t least_cents, most_cents;
  uint32_t least_months, most_months, rate_bp;
};
// REQUIRES: as Annuity().
constexpr std::array<ProductOfLoans, 2> kLoanProducts = {{
    {"personal", 100'000, 5'000'000, 6, 84, 790},
    {"mortgage", 1'000'000, 100'000'000, 60, 360, 380},
}};

struct LoanInfoService final : LoanInfo::CoroutineService {
  Coroutine Products(Context&, const apps::Nothing&, LoanProducts* reply) override {
    for (const ProductOfLoans& one : kLoanProducts) {
      LoanProduct* const product = reply->add_products();
      product->set_name(std::string(one.name));
      product->set_least_cents(one.least_cents);
      product->set_most_cents(one.most_cents);
      product->set_least_months(one.least_months);
      product->set_most_months(one.most_months);
      product->set_rate_bp(one.rate_bp);
    }
    co_return absl::OkStatus();
  }

  Coroutine Quote(Context&, const LoanQuoteRequest& request, LoanQuote* reply) override {
    const auto* const product =
        std::ranges::find(kLoanProducts, std::string_view(request.product()), &ProductOfLoans::name);
    if (product == kLoanProducts.end())
      co_return absl::InvalidArgumentError("there is no such loan; the product is personal or mortgage");
    if (request.cents() < product->least_cents || request.cents() > product->most_cents ||
        request.months() < product->least_months || request.months() > product->most_months)
      co_return absl::InvalidArgumentError(
          Join("a ", product->name, " loan has ", product->least_cents, " to ", product->most_cents,
               " cents and ", product->least_months, " to ", product->most_months, " months"));
    reply->set_product(request.product());
    reply->set_cents(request.cents());
    reply->set_months(request.months());
    reply->set_rate_bp(product->rate_bp);
    for (const Due& due : Annuity(request.cents(), request.months(), product->rate_bp)) {
      Instalment* const instalment = reply->add_instalments();
      instalment->set_cents(due.cents);
      instalment->set_interest_cents(due.interest);
      reply->set_interest_cents(reply->interest_cents() + due.interest);
    }
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Products", {}}, {"Quote", {}}}; }
};

HostedService HostedLoanInfo() {
  return {.name = "loan-info",
          .make = [](Env&) -> MadeService { return std::make_unique<LoanInfoService>(); }};
}

}  // namespace curtail::bank
