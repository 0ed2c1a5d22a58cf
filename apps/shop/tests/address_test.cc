// SPDX-License-Identifier: Apache-2.0
//
// Addresses and cards, as the front end and `orders` use them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "apps/kit/luhn.h"
#include "apps/shop/tests/customers_testing.h"

namespace curtail::shop {
namespace {

// Numbers that card schemes publish for tests.
constexpr char kVisa[] = "4111111111111111", kAmex[] = "378282246310005";

class AddressTest : public ServicesTest {
 protected:
  AddressTest() : ServicesTest({"address-book"}) {}

  AddressBook::Stub book() { return Stub<AddressBook>("address-book"); }
  static Address Home() {
    Address address;
    address.set_name("Eve Müller"), address.set_street("Main Street 1"), address.set_city("Berlin");
    address.set_postcode("10115"), address.set_country("DE");
    return address;
  }
  absl::Status Add(uint64_t owner, const Address& address, Address* reply) {
    AddressOrder order;
    order.set_owner(owner), *order.mutable_address() = address;
    Context ctx(kMaxTestWait);
    return book().Add(ctx, order, reply);
  }
  absl::Status AddCard(uint64_t owner, const std::string& number, const std::string& expires, Card* reply) {
    CardOrder order;
    order.set_owner(owner), order.set_number(number), order.set_expires(expires);
    Context ctx(kMaxTestWait);
    return book().AddCard(ctx, order, reply);
  }
  absl::Status Look(uint64_t owner, uint64_t address, uint64_t card, DeliveryPlace* reply) {
    DeliveryQuery query;
    query.set_owner(owner), query.set_address(address), query.set_card(card);
    Context ctx(kMaxTestWait);
    return book().Look(ctx, query, reply);
  }
  template <class Call>
  absl::Status Remove(Call call, uint64_t owner, uint64_t id) {
    OwnedId one;
    one.set_owner(owner), one.set_id(id);
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    return (book().*call)(ctx, one, &nothing, nullptr);
  }
  std::vector<Address> Addresses(uint64_t owner) {
    AddressList list;
    Context ctx(kMaxTestWait);
    EXPECT_TRUE(book().List(ctx, UserIdOf(owner), &list).ok());
    return {list.addresses().begin(), list.addresses().end()};
  }
  std::vector<Card> Cards(uint64_t owner) {
    CardList list;
    Context ctx(kMaxTestWait);
    EXPECT_TRUE(book().ListCards(ctx, UserIdOf(owner), &list).ok());
    return {list.cards().begin(), list.cards().end()};
  }
};

TEST_F(AddressTest, KeepsTheAddressesOfEachOwner) {
  Address home, work, others;
  ASSERT_TRUE(Add(1, Home(), &home).ok());
  Address given = Home();
  given.set_street("Side Street 2"), given.set_id(home.id());
  ASSERT_TRUE(Add(1, given, &work).ok());
  EXPECT_NE(work.id(), home.id());
  ASSERT_TRUE(Add(2, Home(), &others).ok());
  ASSERT_EQ(Addresses(1).size(), 2u);
  EXPECT_EQ(Addresses(1)[0].SerializeAsString(), home.SerializeAsString());
  EXPECT_EQ(Addresses(1)[1].street(), "Side Street 2");
  EXPECT_TRUE(absl::IsNotFound(Remove(&AddressBook::Stub::Remove, 1, others.id())));
  ASSERT_TRUE(Remove(&AddressBook::Stub::Remove, 1, home.id()).ok());
  EXPECT_TRUE(absl::IsNotFound(Remove(&AddressBook::Stub::Remove, 1, home.id())));
  EXPECT_EQ(Addresses(1).size(), 1u);
  EXPECT_EQ(Addresses(2).size(), 1u);
}

TEST_F(AddressTest, RefusesAddressesThatLackAPart) {
  Address ignored;
  const auto refuses = [&](auto change) {
    Address wrong = Home();
    change(wrong);
    const absl::Status status = Add(1, wrong, &ignored);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << wrong.ShortDebugString();
  };
  refuses([](Address& a) { a.clear_name(); });
  refuses([](Address& a) { a.clear_street(); });
  refuses([](Address& a) { a.set_city(std::string(101, 'x')); });
  refuses([](Address& a) { a.set_postcode("1\n2"); });
  for (const char* country : {"", "de", "D", "DEU", "D1"})
    refuses([&](Address& a) { a.set_country(country); });
  EXPECT_TRUE(Addresses(1).empty());
}

TEST_F(AddressTest, HasTwentyOfEachAtMost) {
  Address address;
  Card card;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Add(1, Home(), &address).ok());
    // 12 digits and the one that checks.
    std::string number = Join(400'000'000'000 + i);
    number += apps::LuhnDigit(number);
    ASSERT_TRUE(AddCard(1, number, "2090-12", &card).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Add(1, Home(), &address)));
  EXPECT_TRUE(absl::IsResourceExhausted(AddCard(1, kVisa, "2090-12", &card)));
  ASSERT_TRUE(Remove(&AddressBook::Stub::RemoveCard, 1, card.id()).ok());
  EXPECT_TRUE(AddCard(1, kVisa, "2090-12", &card).ok());
  EXPECT_TRUE(AddCard(2, kVisa, "2090-12", &card).ok());
}

TEST_F(AddressTest, KnowsACardByATokenAndItsLastDigits) {
  Card visa, again, others, amex;
  ASSERT_TRUE(AddCard(1, kVisa, "2090-12", &visa).ok());
  EXPECT_EQ(visa.last_four(), "1111");
  EXPECT_TRUE(visa.token().empty()) << "customers have no use for it";
  ASSERT_TRUE(AddCard(1, kVisa, "2091-01", &again).ok());
  EXPECT_EQ(again.id(), visa.id()) << "the card was there";
  ASSERT_TRUE(AddCard(2, kVisa, "2090-12", &others).ok());
  ASSERT_TRUE(AddCard(1, kAmex, "2090-12", &amex).ok());
  ASSERT_EQ(Cards(1).size(), 2u);
  EXPECT_EQ(Cards(1)[0].expires(), "2091-01");

  Address home;
  ASSERT_TRUE(Add(1, Home(), &home).ok());
  DeliveryPlace of_visa, of_amex, none;
  ASSERT_TRUE(Look(1, home.id(), visa.id(), &of_visa).ok());
  ASSERT_TRUE(Look(1, home.id(), amex.id(), &of_amex).ok());
  EXPECT_EQ(of_visa.address().street(), "Main Street 1");
  EXPECT_EQ(of_visa.card().token().size(), 32u);
  EXPECT_NE(of_visa.card().token(), of_amex.card().token());
  Address other_home;
  ASSERT_TRUE(Add(2, Home(), &other_home).ok());
  DeliveryPlace same;
  ASSERT_TRUE(Look(2, other_home.id(), others.id(), &same).ok());
  EXPECT_EQ(same.card().token(), of_visa.card().token()) << "a card is one, whoever has it";
  EXPECT_TRUE(absl::IsNotFound(Look(1, other_home.id(), visa.id(), &none)));
  EXPECT_TRUE(absl::IsNotFound(Look(1, home.id(), others.id(), &none)));
  EXPECT_TRUE(absl::IsNotFound(Look(1, 0, 0, &none)));
  EXPECT_TRUE(absl::IsNotFound(Remove(&AddressBook::Stub::RemoveCard, 1, others.id())));
}

TEST_F(AddressTest, RefusesWhatIsNotACard) {
  Card card;
  for (const char* number : {"", "4111111111111112", "411111111111111x", "4111 1111 1111 1111", "00000000000",
                             "41111111111111111111", "-111111111111111"}) {
    const absl::Status status = AddCard(1, number, "2090-12", &card);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string given(number);
    EXPECT_TRUE(given.empty() || Message(status).find(given) == std::string_view::npos) << status;
  }
  for (const char* expires :
       {"", "2090", "2090-00", "2090-13", "2090-1", "12-2090", "2090/12", "90-12-01", "2020-01", "20x0-12"})
    EXPECT_TRUE(absl::IsInvalidArgument(AddCard(1, kVisa, expires, &card))) << expires;
  EXPECT_TRUE(Cards(1).empty());
}

TEST_F(AddressTest, IsForgottenWithItsOwner) {
  Address home;
  Card card;
  ASSERT_TRUE(Add(1, Home(), &home).ok() && Add(2, Home(), &home).ok() &&
              AddCard(1, kVisa, "2090-12", &card).ok());
  for (int i = 0; i < 2; ++i) {
    apps::Nothing nothing;
    Context ctx(kMaxTestWait);
    ASSERT_TRUE(book().Forget(ctx, UserIdOf(1), &nothing).ok());
  }
  EXPECT_TRUE(Addresses(1).empty() && Cards(1).empty());
  EXPECT_EQ(Addresses(2).size(), 1u);
  EXPECT_TRUE(absl::IsUnauthenticated(Add(1, Home(), &home))) << "it comes late";
  EXPECT_TRUE(absl::IsUnauthenticated(AddCard(1, kVisa, "2090-12", &card)));
}

}  // namespace
}  // namespace curtail::shop
