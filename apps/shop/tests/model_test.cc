// SPDX-License-Identifier: Apache-2.0
//
// Random customers at once, beside a model of what each was told: while nothing fails, and while services die, stand still and have no
// room.
//
// Property, of all that they are told meanwhile (model_testing.h), and once the shop is idle:
//  1. On hand and sold, and not sent back, are what was delivered. No product is sold that is not there.
//  2. An order is COMMITTED with one charge of what was shown, one invoice and one shipment, or REJECTED with none. A REFUNDED one has
//     its charge and its products given back once.
//  3. Numbers of orders and invoices have no gaps, and ascend in the order of the orders.
//  4. A total is goods less discount and shipping, at prices that were valid when it was shown.
//  5. A basket has what was acknowledged, once; an order takes what it has bought; a guest's basket becomes the user's.
//  6. A code is used at most its limit.
//  7. Another's order, invoice, shipment, address and card are as ones that do not exist.
// 1, 2 and 6 are what `shop audit` finds, too.
//
// With CURTAIL_TEST_POLYGLOT services run in other languages, where they are built.
#include <gtest/gtest.h>

#include "apps/kit/testing/faults.h"
#include "apps/shop/tests/model_testing.h"

namespace curtail::shop {
namespace {

constexpr size_t kActors = 4;

using ShopModel = ShopModelTest;

TEST_F(ShopModel, CustomersAreToldWhatIsTrueStress) {
  const int acts = Repeats(150, 600);
  apps::AllAtOnce(kActors, seed_, [&](Rng& rng, size_t) {
    for (int i = 0; i < acts && !HasFailure(); ++i) Act(rng);
  });
  JudgeAll();
}

TEST_F(ShopModel, CustomersAreToldWhatIsTrueWhileServicesFailStress) {
  faults_ = true;
  apps::Actors actors;
  apps::FaultSchedule schedule(seed_, &actors);
  const auto kill = [&](const char* service) { return apps::KillOf(app_.get(), service); };
  const auto stall = [&](const char* service) { return apps::StallOf(app_.get(), service); };
  for (const char* kept : {"orders", "order-queue", "queue-master", "inventory", "payment", "cart"})
    schedule.Add(kill(kept));
  schedule.AddOneOf({kill("payment-auth"), kill("transaction-id"), kill("catalogue"), kill("address-book"),
                     kill("front-end"), kill("session"), kill("login"), kill("discounts")});
  schedule.AddOneOf({kill("invoice"), kill("shipping"), kill("wishlist")});
  schedule.AddOneOf({stall("queue-master"), stall("order-queue")});
  schedule.AddOneOf({stall("inventory"), stall("payment"), stall("discounts"), stall("cart")});
  schedule.AddOneOf({apps::FullDiskOf(app_.get(), "orders", /*refuses=*/true),
                     apps::FullDiskOf(app_.get(), "order-queue", /*refuses=*/false),
                     apps::FullDiskOf(app_.get(), "inventory", /*refuses=*/false)});
  for (size_t i = 0; i < kActors; ++i) actors.Begin(seed_ + i, [&](Rng& rng) { actors.Note(Act(rng)); });
  schedule.Run();
  actors.Rest();
  JudgeAll();
}

}  // namespace
}  // namespace curtail::shop
