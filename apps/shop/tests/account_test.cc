// SPDX-License-Identifier: Apache-2.0
//
// Guests and users: whose basket it is, and what is left of a user who is deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/wall_clock.h"
#include "apps/shop/tests/customers_testing.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::shop {
namespace {

using Counts = std::map<uint64_t, uint32_t>;

class AccountTest : public ServicesTest {
 protected:
  AccountTest()
      : ServicesTest({"transaction-id", "login", "session", "account", "catalogue", "cart", "address-book",
                      "wishlist"}) {}

  static apps::Credentials EveAs(const std::string& password) {
    apps::Credentials eve;
    eve.set_name("eve"), eve.set_password(password);
    return eve;
  }
  absl::Status Register(apps::Session* session) {
    Context ctx(kMaxTestWait);
    return Stub<apps::User>("login").Register(ctx, EveAs("a password"), session);
  }
  apps::Session Guest() {
    apps::Session session;
    Context ctx(kMaxTestWait);
    const absl::Status status = Stub<Guests>("session").Open(ctx, {}, &session);
    EXPECT_TRUE(status.ok()) << status;
    return session;
  }
  absl::Status Adopt(uint64_t user, const std::string& guest_token, Basket* reply) {
    Adoption adoption;
    adoption.set_user(user), adoption.set_guest_token(guest_token);
    Context ctx(kMaxTestWait);
    return Stub<Guests>("session").Adopt(ctx, adoption, reply);
  }
  absl::Status Add(uint64_t owner, uint64_t product, uint32_t count) {
    BasketChange change;
    change.set_owner(owner);
    change.mutable_line()->set_product(product), change.mutable_line()->set_count(count);
    Basket basket;
    Context ctx(kMaxTestWait);
    return Stub<Cart>("cart").Add(ctx, change, &basket);
  }
  void Merge(uint64_t to, uint64_t from) {
    BasketMerge merge;
    merge.set_to(to), merge.set_from(from);
    Basket basket;
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(Stub<Cart>("cart").Merge(ctx, merge, &basket).ok());
  }
  // In a table of the cart's file.
  static int64_t RowsOf(SqlSession& file, const std::string& table) {
    int64_t rows = 0;
    EXPECT_TRUE(
        file.Query("SELECT count(*) FROM " + table, {}, [&](const SqlRow& row) { rows = row.Integer(0); })
            .ok());
    return rows;
  }
  static Counts CountsOf(const Basket& basket) {
    Counts counts;
    for (const Line& line : basket.lines()) counts[line.product()] = line.count();
    return counts;
  }
  Counts BasketOf(uint64_t owner) {
    Basket basket;
    Context ctx(kMaxTestWait);
    EXPECT_TRUE(Stub<Cart>("cart").Get(ctx, UserIdOf(owner), &basket).ok());
    return CountsOf(basket);
  }
  absl::Status CheckSession(const apps::Session& session, apps::Session* reply) {
    apps::SessionId id;
    id.set_user(session.user()), id.set_expires_s(session.expires_s());
    Context ctx(kMaxTestWait);
    return Stub<Guests>("session").Get(ctx, id, reply);
  }
  absl::Status Delete(const std::string& password) {
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    return Stub<Account>("account").Delete(ctx, EveAs(password), &nothing);
  }
  // Leaves something of the user at each service.
  void Live(uint64_t user) {
    const uint64_t product = Enter("Bag", 100);
    ASSERT_TRUE(Add(user, product, 2).ok());
    WishOrder wish;
    wish.set_owner(user), wish.set_product(product);
    Wishlist wishes;
    Context wishing(kMaxTestWait), moving(kMaxTestWait);
    ASSERT_TRUE(Stub<Wishlists>("wishlist").Add(wishing, wish, &wishes).ok());
    AddressOrder order;
    order.set_owner(user);
    Address& home = *order.mutable_address();
    home.set_name("Eve"), home.set_street("Main Street 1"), home.set_city("Berlin"), home.set_postcode("1"),
        home.set_country("DE");
    ASSERT_TRUE(Stub<AddressBook>("address-book").Add(moving, order, &home).ok());
  }
  void ExpectNothingLeft(uint64_t user) {
    Wishlist wishes;
    AddressList addresses;
    Context first(kMaxTestWait), second(kMaxTestWait);
    ASSERT_TRUE(Stub<Wishlists>("wishlist").List(first, UserIdOf(user), &wishes).ok());
    ASSERT_TRUE(Stub<AddressBook>("address-book").List(second, UserIdOf(user), &addresses).ok());
    EXPECT_TRUE(wishes.wishes().empty() && addresses.addresses().empty());
    EXPECT_TRUE(BasketOf(user).empty());
    EXPECT_FALSE(Add(user, 1, 1).ok()) << "it comes late";
  }
};

TEST_F(AccountTest, AUserAdoptsTheBasketOfTheGuestItWas) {
  apps::Session user, again;
  ASSERT_TRUE(Register(&user).ok());
  const apps::Session guest = Guest();
  EXPECT_NE(guest.user(), Guest().user());
  EXPECT_GT(guest.expires_s(), apps::NowMs() / 1000 + 3600);
  ASSERT_TRUE(CheckSession(guest, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), guest.SerializeAsString());
  ASSERT_TRUE(Add(guest.user(), 1, 2).ok() && Add(guest.user(), 2, 1).ok() && Add(user.user(), 1, 3).ok());
  for (int i = 0; i < 3; ++i) {
    Basket basket;
    const absl::Status status = Adopt(user.user(), guest.token(), &basket);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(CountsOf(basket), (Counts{{1, 5}, {2, 1}}));
  }
  EXPECT_EQ(BasketOf(user.user()), (Counts{{1, 5}, {2, 1}}));
  EXPECT_TRUE(BasketOf(guest.user()).empty());
  EXPECT_FALSE(Add(guest.user(), 1, 1).ok()) << "the basket moved";
  EXPECT_TRUE(absl::IsUnauthenticated(CheckSession(guest, &again))) << "the session has ended";
  Basket basket;
  for (const std::string& wrong : {std::string(), std::string("no token"), user.token(), guest.token() + "x"})
    EXPECT_TRUE(absl::IsUnauthenticated(Adopt(user.user(), wrong, &basket))) << wrong;
  ASSERT_TRUE(Adopt(77, guest.token(), &basket).ok());
  EXPECT_TRUE(basket.lines().empty()) << "it moves once";
}

// More than go at once. The session of one of them takes part of the hour more.
TEST_F(AccountTest, BasketsOfGuestsGoWhenTheirSessionsHaveEnded) {
  constexpr int kMany = 20, kHour = 3600;
  const uint64_t user = 77, late = Guest().user(), moved = Guest().user();
  ASSERT_TRUE(Add(user, 1, 1).ok() && Add(late, 1, 1).ok() && Add(moved, 1, 1).ok());
  for (int i = 1; i < kMany; ++i) ASSERT_TRUE(Add(Guest().user(), 1, 1).ok());
  Merge(/*to=*/user, /*from=*/moved);
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/cart.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto age = [&](int64_t s, uint64_t guest) {
    EXPECT_TRUE(
        (*kept)
            ->Execute("UPDATE guests SET since_s = since_s - ?1 WHERE owner = ?2 OR ?2 = 0", {s, guest})
            .ok());
  };
  age(24 * kHour + kHour / 2, 0);
  ASSERT_TRUE(Add(Guest().user(), 1, 1).ok());
  EXPECT_EQ(RowsOf(**kept, "baskets"), kMany + 3) << "each may be asked for still";
  EXPECT_FALSE(Add(moved, 1, 1).ok()) << "the basket moved";
  age(kHour / 2, 0);
  age(-kHour / 2, late);
  ASSERT_TRUE(Add(late, 1, 1).ok()) << "only new guests remove baskets";
  EXPECT_EQ(RowsOf(**kept, "baskets"), kMany + 3);
  for (const int left : {kMany + 3 - 16 + 1, 5, 6}) {
    ASSERT_TRUE(Add(Guest().user(), 1, 1).ok());
    EXPECT_EQ(RowsOf(**kept, "baskets"), left);
    EXPECT_EQ(RowsOf(**kept, "guests"), left - 1);
  }
  EXPECT_EQ(RowsOf(**kept, "lines"), 6);
  EXPECT_EQ(BasketOf(user), (Counts{{1, 2}}));
  EXPECT_EQ(BasketOf(late), (Counts{{1, 2}}));
}

// As the first version of the schema has left them.
TEST_F(AccountTest, BasketsOfGuestsOfBeforeGoLater) {
  const uint64_t user = 77, guest = Guest().user();
  ASSERT_TRUE(Add(user, 1, 1).ok() && Add(guest, 1, 1).ok());
  app_->Kill("cart");
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/cart.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  for (const char* const sql : {"DROP TABLE guests", "PRAGMA user_version = 1"})
    ASSERT_TRUE((*kept)->Execute(sql).ok());
  ASSERT_TRUE(app_->Restart("cart").ok());
  EXPECT_EQ(RowsOf(**kept, "guests"), 1);
  ASSERT_TRUE(Add(Guest().user(), 1, 1).ok());
  EXPECT_EQ(BasketOf(guest), (Counts{{1, 1}})) << "its session may be valid still";
  ASSERT_TRUE((*kept)->Execute("UPDATE guests SET since_s = since_s - 90000").ok());
  ASSERT_TRUE(Add(Guest().user(), 1, 1).ok());
  EXPECT_TRUE(BasketOf(guest).empty());
  EXPECT_EQ(BasketOf(user), (Counts{{1, 1}}));
}

// Property: the order in which baskets are adopted does not matter.
TEST_F(AccountTest, AdoptionsCommute) {
  std::vector<Counts> results;
  for (const auto& [user, first] : {std::pair<uint64_t, size_t>{100, 0}, {200, 1}}) {
    const apps::Session guests[] = {Guest(), Guest()};
    ASSERT_TRUE(Add(user, 1, 60).ok());
    ASSERT_TRUE(Add(guests[0].user(), 1, 30).ok() && Add(guests[0].user(), 2, 1).ok());
    ASSERT_TRUE(Add(guests[1].user(), 1, 30).ok() && Add(guests[1].user(), 3, 1).ok());
    Basket basket;
    ASSERT_TRUE(Adopt(user, guests[first].token(), &basket).ok());
    ASSERT_TRUE(Adopt(user, guests[1 - first].token(), &basket).ok());
    results.push_back(BasketOf(user));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], (Counts{{1, 99}, {2, 1}, {3, 1}})) << "99 at most";
}

TEST_F(AccountTest, HasTheNameAndTheAgeOfAUser) {
  apps::Session user;
  const int64_t before_ms = apps::NowMs();
  ASSERT_TRUE(Register(&user).ok());
  shop::Profile profile;
  Context ctx(kMaxTestWait), other(kMaxTestWait);
  ASSERT_TRUE(Stub<Account>("account").Profile(ctx, UserIdOf(user.user()), &profile).ok());
  EXPECT_EQ(profile.name(), "eve");
  EXPECT_GE(profile.since_ms(), before_ms);
  EXPECT_LE(profile.since_ms(), apps::NowMs() + 10'000);
  EXPECT_TRUE(absl::IsUnauthenticated(Stub<Account>("account").Profile(other, UserIdOf(7), &profile)));
}

TEST_F(AccountTest, NothingIsLeftOfADeletedUser) {
  apps::Session user;
  ASSERT_TRUE(Register(&user).ok());
  Live(user.user());
  EXPECT_TRUE(absl::IsUnauthenticated(Delete("another password")));
  EXPECT_FALSE(BasketOf(user.user()).empty());
  const absl::Status deleted = Delete("a password");
  ASSERT_TRUE(deleted.ok()) << deleted;
  ExpectNothingLeft(user.user());
  EXPECT_TRUE(absl::IsUnauthenticated(Delete("a password"))) << "the name is free";
  apps::Session next;
  ASSERT_TRUE(Register(&next).ok());
  EXPECT_NE(next.user(), user.user());
}

TEST_F(AccountTest, ADeletionThatFailedHalfWayGoesOnByItself) {
  apps::Session user, next;
  ASSERT_TRUE(Register(&user).ok());
  Live(user.user());
  app_->Kill("wishlist");
  apps::Nothing nothing;
  Context brief(std::chrono::seconds(2));
  const absl::Status failed = Stub<Account>("account").Delete(brief, EveAs("a password"), &nothing);
  ASSERT_TRUE(absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed)) << failed;
  EXPECT_TRUE(absl::IsAlreadyExists(Register(&next))) << "the name is still taken";
  ASSERT_TRUE(app_->Restart("wishlist").ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status registered;
  do {
    registered = Register(&next);
    BetweenLooks();
  } while (absl::IsAlreadyExists(registered) && !deadline.Expired());
  ASSERT_TRUE(registered.ok()) << registered;
  ExpectNothingLeft(user.user());
}

}  // namespace
}  // namespace curtail::shop
