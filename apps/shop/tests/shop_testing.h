// SPDX-License-Identifier: Apache-2.0
//
// shop_testing.h - the application in processes of its own, or as a monolith, for tests that use it as its clients do.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/kit/load/fill.h"
#include "apps/kit/testing/start_app.h"
#include "apps/shop/load/products.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/app_under_test.h"
#include "curtail/rpc/channel.h"
#include "shop.curtail.h"

namespace curtail::shop {

class ShopTest : public testing::Test {
 protected:
  static constexpr size_t kUsers = 4, kProducts = 12;
  static constexpr int64_t kStock = 50, kCardLimit = 1'000'000;

  void SetUp() override { Start(/*config=*/{}, /*monolith=*/false); }
  void TearDown() override;
  static apps::Deployed Form(const std::string& folder, const std::string& config, bool monolith);
  // `set` are more variables of the topology.
  void Start(const std::string& config, bool monolith, const std::vector<std::string>& set = {});

  std::string Folder() const { return dir_.File("data"); }
  std::unique_ptr<Channel> Connect(const std::string& service) {
    ChannelOptions patient;
    patient.wait_for_ready = true;
    return std::make_unique<Channel>(&client_, app_->AddressOf(service), patient);
  }
  Shop::Stub shop() const { return Shop::Stub(front_.get()); }

  static Line LineOf(uint64_t product, uint32_t count) {
    Line line;
    line.set_product(product), line.set_count(count);
    return line;
  }
  // A purchase of a user, to its first address by its first card.
  BuyRequest PurchaseOf(size_t user, const std::vector<Line>& lines, const std::string& code = {}) const;
  QuoteRequest QuoteOf(size_t user, const std::vector<Line>& lines, const std::string& code = {}) const;

  absl::Status Buy(const BuyRequest& request, Order* order, const std::string& key = {},
                   Nanos patience = kMaxTestWait) const;
  absl::Status MakeQuote(const QuoteRequest& request, Quote* quote) const;
  absl::Status Place(size_t user, uint64_t quote, Order* order, const std::string& key = {},
                     Nanos patience = kMaxTestWait) const;
  absl::Status Refund(const std::string& token, uint64_t order, Order* reply) const;
  absl::Status Add(size_t user, uint64_t product, uint32_t count, Basket* basket, const std::string& key = {},
                   Nanos patience = kMaxTestWait) const;

  // Fail the test if they fail.
  BasketPage BasketOf(size_t user) const;
  std::vector<Order> OrdersOf(size_t user) const;
  Order OrderOf(size_t user, uint64_t order) const;
  int64_t AvailableOf(uint64_t product) const;
  // Once the order is decided.
  Order Decided(size_t user, uint64_t order) const;
  // A token of the clerk.
  std::string Clerk() const;
  // Returns how `shop audit` exits.
  int Audited(bool quiet = false) const;
  // Waits until all orders are at their end.
  void ExpectAuditedWhenIdle() const;

  const TempDir dir_;
  Client client_;
  std::unique_ptr<deploy::AppUnderTest> app_;
  std::unique_ptr<Channel> front_;
  std::vector<apps::LoadUser> users_;
  std::vector<KnownProduct> products_;
};

}  // namespace curtail::shop
