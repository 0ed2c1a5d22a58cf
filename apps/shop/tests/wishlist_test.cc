// SPDX-License-Identifier: Apache-2.0
//
// Wishlists, as the front end uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/shop/tests/customers_testing.h"

namespace curtail::shop {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WishlistTest : public ServicesTest {
 protected:
  WishlistTest() : ServicesTest({"catalogue", "wishlist"}) {}

  Wishlists::Stub wishes() { return Stub<Wishlists>("wishlist"); }
  absl::Status Add(uint64_t owner, uint64_t product, Wishlist* reply) {
    return Wish(&Wishlists::Stub::Add, owner, product, reply);
  }
  absl::Status Remove(uint64_t owner, uint64_t product, Wishlist* reply) {
    return Wish(&Wishlists::Stub::Remove, owner, product, reply);
  }
  template <class Call>
  absl::Status Wish(Call call, uint64_t owner, uint64_t product, Wishlist* reply) {
    WishOrder order;
    order.set_owner(owner), order.set_product(product);
    Context ctx(kMaxTestWait);
    return (wishes().*call)(ctx, order, reply, nullptr);
  }
  Wishlist List(uint64_t owner) {
    Wishlist list;
    Context ctx(kMaxTestWait);
    const absl::Status status = wishes().List(ctx, UserIdOf(owner), &list);
    EXPECT_TRUE(status.ok()) << status;
    return list;
  }
  absl::Status Shared(const std::string& share, Wishlist* reply) {
    SharedQuery query;
    query.set_share(share);
    Context ctx(kMaxTestWait);
    return wishes().Shared(ctx, query, reply);
  }
};

std::vector<uint64_t> ProductsOf(const Wishlist& list) {
  std::vector<uint64_t> products;
  for (const Wish& wish : list.wishes()) products.push_back(wish.product());
  return products;
}

TEST_F(WishlistTest, HasEachProductOnceTheNewestFirst) {
  const uint64_t bag = Enter("Bag", 100), boot = Enter("Boot", 100);
  Wishlist list;
  ASSERT_TRUE(Add(1, bag, &list).ok());
  ASSERT_TRUE(Add(1, boot, &list).ok());
  ASSERT_TRUE(Add(1, bag, &list).ok()) << "a repetition";
  ASSERT_EQ(list.wishes_size(), 2);
  EXPECT_GE(list.wishes(0).since_ms(), list.wishes(1).since_ms());
  EXPECT_THAT(std::set<uint64_t>({list.wishes(0).product(), list.wishes(1).product()}),
              ElementsAre(bag, boot));
  EXPECT_THAT(ProductsOf(List(1)), ProductsOf(list));
  EXPECT_THAT(ProductsOf(List(2)), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Add(1, boot + 1, &list)));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Remove(1, bag, &list).ok());
    EXPECT_THAT(ProductsOf(list), ElementsAre(boot));
  }
}

TEST_F(WishlistTest, IsSeenByThoseWhoHaveItsName) {
  const uint64_t bag = Enter("Bag", 100), boot = Enter("Boot", 100);
  Wishlist list, shared;
  ASSERT_TRUE(Add(1, bag, &list).ok());
  EXPECT_TRUE(list.share().empty());
  std::set<std::string> names;
  for (const uint64_t owner : {1, 1, 2}) {
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(wishes().Share(ctx, UserIdOf(owner), &list).ok());
    EXPECT_GE(list.share().size(), 20u);
    names.insert(list.share());
  }
  EXPECT_EQ(names.size(), 2u) << "one name a list";
  const std::string name = List(1).share();
  ASSERT_TRUE(Shared(name, &shared).ok());
  EXPECT_THAT(ProductsOf(shared), ElementsAre(bag));
  ASSERT_TRUE(Add(1, boot, &list).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  do {
    ASSERT_TRUE(Shared(name, &shared).ok());
    BetweenLooks();
  } while (shared.wishes_size() != 2 && !deadline.Expired());
  EXPECT_EQ(shared.SerializeAsString(), List(1).SerializeAsString());
  for (const std::string& wrong :
       {std::string(), name.substr(1), name + "x", std::string(1000, 'a'), std::string("a b\n")})
    EXPECT_TRUE(absl::IsNotFound(Shared(wrong, &shared))) << wrong;
}

// Property: whoever adds at once, a list has at most a hundred products, and all whose addition was acknowledged.
TEST_F(WishlistTest, HasAHundredProductsAtMost) {
  constexpr uint64_t kProducts = 120, kThreads = 4;
  std::vector<uint64_t> products;
  for (uint64_t i = 0; i < kProducts; ++i) products.push_back(Enter(Join("Product ", i), 1));
  std::vector<std::set<uint64_t>> added(kThreads);
  wishes();  // connects
  apps::AllAtOnce(kThreads, TestSeed(), [&](Rng&, size_t thread) {
    for (size_t i = thread; i < kProducts; i += kThreads) {
      Wishlist list;
      const absl::Status status = Add(1, products[i], &list);
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
      if (status.ok()) added[thread].insert(products[i]);
    }
  });
  std::set<uint64_t> all;
  for (const std::set<uint64_t>& one : added) all.insert(one.begin(), one.end());
  const std::vector<uint64_t> listed = ProductsOf(List(1));
  EXPECT_EQ(listed.size(), 100u);
  EXPECT_EQ(std::set<uint64_t>(listed.begin(), listed.end()), all);
}

TEST_F(WishlistTest, IsForgottenWithItsOwner) {
  const uint64_t bag = Enter("Bag", 100);
  Wishlist list;
  ASSERT_TRUE(Add(1, bag, &list).ok() && Add(2, bag, &list).ok());
  Context sharing(kMaxTestWait);
  ASSERT_TRUE(wishes().Share(sharing, UserIdOf(1), &list).ok());
  const std::string name = list.share();
  for (int i = 0; i < 2; ++i) {
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(wishes().Forget(ctx, UserIdOf(1), &nothing).ok());
  }
  EXPECT_TRUE(absl::IsNotFound(Shared(name, &list)));
  EXPECT_THAT(ProductsOf(List(1)), IsEmpty());
  EXPECT_TRUE(absl::IsUnauthenticated(Add(1, bag, &list))) << "it comes late";
  EXPECT_THAT(ProductsOf(List(2)), ElementsAre(bag));
}

}  // namespace
}  // namespace curtail::shop
