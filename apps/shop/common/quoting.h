// SPDX-License-Identifier: Apache-2.0
//
// quoting.h - what an order would cost.
#pragma once

#include <cstdint>
#include <vector>

#include "accounts.curtail.h"
#include "buying.curtail.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/host.h"
#include "customers.curtail.h"
#include "goods.curtail.h"

namespace curtail::shop {

inline constexpr int64_t kQuoteMs = 600'000;

// Asks the services that know prices, addresses and rates. Thread-safe.
class Quoting {
 public:
  explicit Quoting(Env& env) : env_(env) {}

  // Sets the quote, and the token of the card. Errors: as Orders.Quote().
  Coroutine Make(Context& ctx, const QuoteOrder& request, KeptOrder* kept) const;
  // The request for the same again.
  static QuoteOrder Again(uint64_t owner, const Quote& quote);
  std::vector<PathCall> Calls() const { return {catalogue_, cart_, shipping_, discounts_, addresses_, ids_}; }

 private:
  // Sets prices and the goods' sum, and their weight. NOT_FOUND: one is not there.
  static absl::Status Price(const google::protobuf::RepeatedPtrField<Line>& lines,
                            const ProductList& products, Quote* quote, uint64_t* grams);
  Coroutine AddRates(Context& ctx, const QuoteOrder& request, uint64_t grams, Quote* quote) const;

  Env& env_;
  const Catalogue::Stub catalogue_ = env_.Stub<Catalogue>("catalogue");
  const Cart::Stub cart_ = env_.Stub<Cart>("cart");
  const Shipping::Stub shipping_ = env_.Stub<Shipping>("shipping");
  const Discounts::Stub discounts_ = env_.Stub<Discounts>("discounts");
  const AddressBook::Stub addresses_ = env_.Stub<AddressBook>("address-book");
  const apps::UniqueId::Stub ids_ = env_.Stub<apps::UniqueId>("transaction-id");
};

}  // namespace curtail::shop
