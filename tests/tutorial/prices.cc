// SPDX-License-Identifier: Apache-2.0
//
// prices.cc - the mid-tier of docs/tutorial.md: the best of what all suppliers ask.
// [prices]
#include "curtail/rpc/server_main.h"
#include "market.curtail.h"

class PricesService final : public market::Prices::Service {
 public:
  explicit PricesService(std::vector<curtail::Channel*> suppliers) : suppliers_(std::move(suppliers)) {}

  absl::Status Best(curtail::Context& ctx, const market::Item& item, market::BestOffer* best) override {
    curtail::Context part(&ctx);  // what the suppliers get of this request's time
    part.ShortenDeadline(curtail::Deadline::In(std::chrono::milliseconds(50)));
    for (const auto& offer : part.Broadcast(suppliers_, market::Supplier::kQuote, item)) {
      if (absl::IsInvalidArgument(offer.status())) return offer.status();
      if (!offer.ok()) continue;  // late, or not there
      if (best->answered() == 0 || offer->cents() < best->offer().cents()) *best->mutable_offer() = *offer;
      best->set_answered(best->answered() + 1);
    }
    return best->answered() > 0 ? absl::OkStatus() : absl::UnavailableError("no supplier answered");
  }

 private:
  const std::vector<curtail::Channel*> suppliers_;
};

int main(int argc, char** argv) {
  return curtail::ServerMain(argc, argv, [](curtail::Env& env) -> curtail::MadeService {
    const auto& suppliers = env.Channels("supplier");
    if (suppliers.empty())
      return absl::InvalidArgumentError("no supplier: name one with --peer supplier=ADDRESS");
    return std::make_unique<PricesService>(suppliers);
  });
}
// [/prices]
