// SPDX-License-Identifier: Apache-2.0
//
// Payment auth: the bank of the cards. A card pays up to a limit at once, and so often in a minute. What it has counted ends with
// the process.
#include <chrono>
#include <string>
#include <unordered_map>

#include "apps/kit/page.h"
#include "apps/shop/data.h"
#include "curtail/base/mutex.h"

namespace curtail::shop {

struct CardLimits {
  int64_t cents = 0;      // of a payment
  uint64_t payments = 0;  // of a card in a minute
};

// Counts payments of cards in the minute that runs. Thread-safe.
class Velocity {
 public:
  // Returns how often the card has paid in this minute, with this payment.
  uint64_t Count(const std::string& card) {
    const MutexLock lock(mu_);
    const auto now = std::chrono::steady_clock::now();
    if (now - began_ > std::chrono::minutes(1) || counts_.size() >= kMostCards) {
      counts_.clear();
      began_ = now;
    }
    return ++counts_[card];
  }

 private:
  static constexpr size_t kMostCards = 1'000'000;

  Mutex mu_;
  std::chrono::steady_clock::time_point began_ CURTAIL_GUARDED_BY(mu_) = std::chrono::steady_clock::now();
  std::unordered_map<std::string, uint64_t> counts_ CURTAIL_GUARDED_BY(mu_);
};

struct PaymentAuthService final : PaymentAuth::CoroutineService {
  explicit PaymentAuthService(const CardLimits& l) : limits(l) {}

  Coroutine Decide(Context&, const Charges& request, Outcomes* reply) override {
    absl::Status status = apps::CheckCount(request.charges_size(), kMostOrders, "charges");
    if (!status.ok()) co_return status;
    for (const Charge& charge : request.charges()) AddOutcome(charge.order(), Judge(charge), reply);
    co_return absl::OkStatus();
  }

  absl::Status Judge(const Charge& charge) {
    if (charge.cents() > limits.cents)
      return absl::FailedPreconditionError("the card was declined: the amount is above its limit");
    if (velocity.Count(charge.card_token()) > limits.payments)
      return absl::FailedPreconditionError("the card was declined: it has paid too often in this minute");
    return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Decide", {}}}; }

  const CardLimits limits;
  Velocity velocity;
};

HostedService HostedPaymentAuth() {
  struct Options {
    uint64_t cents = 1'000'000;
    uint64_t payments = 1'000'000;
  };
  const auto options = std::make_shared<Options>();
  return {.name = "payment-auth",
          .flags =
              [options](Flags& flags) {
                flags.Add("--card-limit", &options->cents, "payment-auth: cents that a card pays at once",
                          {0, 1e12});
                flags.Add("--card-payments", &options->payments,
                          "payment-auth: payments of a card in a minute", {0, 1e12});
              },
          .make = [options](Env&) -> MadeService {
            return std::make_unique<PaymentAuthService>(
                CardLimits{static_cast<int64_t>(options->cents), options->payments});
          }};
}

}  // namespace curtail::shop
