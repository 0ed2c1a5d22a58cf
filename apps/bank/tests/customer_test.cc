// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/customer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "apps/bank/tests/bank_testing.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

CustomerOrder Ann() {
  CustomerOrder ann;
  ann.set_customer(7);
  PostalAddress& address = *ann.mutable_address();
  address.set_street("Bäckerstraße 1"), address.set_city("Köln");
  address.set_postcode("50667"), address.set_country("DE");
  ann.set_email("ann.b+bank@mail.example.org");
  ann.set_phone("+49 (221) 12-34 56");
  return ann;
}

TEST(Customer, TakesWhatIsWellFormed) {
  const auto ann = CheckedCustomer(Ann());
  ASSERT_TRUE(ann.ok()) << ann.status();
  EXPECT_EQ(ann->phone(), "+49221123456");
  EXPECT_EQ(ann->id(), 7u);
  EXPECT_TRUE(CheckedCustomer({}).ok()) << "nothing is known";
  CustomerOrder order = Ann();
  order.mutable_address()->set_postcode("SW1A 1AA");
  EXPECT_TRUE(CheckedCustomer(order).ok());
}

TEST(Customer, NamesTheFieldThatIsWrong) {
  const auto refused = [](const char* field, const std::function<void(CustomerOrder*)>& spoil) {
    CustomerOrder order = Ann();
    spoil(&order);
    const absl::Status status = CheckedCustomer(order).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << order.ShortDebugString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(field)) << order.ShortDebugString();
  };
  const std::string long_text(101, 'a');
  for (const std::string& text : {std::string(), std::string("  "), long_text, std::string("a\nb")}) {
    refused("address.street", [&](auto* o) { o->mutable_address()->set_street(text); });
    refused("address.city", [&](auto* o) { o->mutable_address()->set_city(text); });
  }
  for (const char* const code : {"", "1", "12345678901", "--", "50667\n", "ab1"})
    refused("address.postcode", [&](auto* o) { o->mutable_address()->set_postcode(code); });
  for (const char* const country : {"", "D", "DEU", "de", "D1"})
    refused("address.country", [&](auto* o) { o->mutable_address()->set_country(country); });
  for (const std::string& email :
       {std::string("ann"), std::string("@a.b"), std::string("ann@"), std::string("ann@org"),
        std::string("a@b@c.org"), std::string("a..b@c.org"), std::string(".a@c.org"),
        std::string("a b@c.org"), std::string("a@-c.org"), std::string("a@c..org"), std::string("a@c.org."),
        std::string("a@c.org\n"), long_text + "@c.org", "a@" + long_text + ".org"})
    refused("email", [&](auto* o) { o->set_email(email); });
  for (const char* const phone :
       {"+", "0221123456", "+0221123456", "+491234", "+1234567890123456", "+49a1234567"})
    refused("phone", [&](auto* o) { o->set_phone(phone); });
}

class CustomerTest : public BankTest {
 protected:
  absl::Status Know(const Own& own, Customer* customer) const {
    apps::TokenRequest request;
    request.set_token(own.token);
    return Send(&Bank::Stub::GetCustomer, request, customer);
  }
};

TEST_F(CustomerTest, KeepsWhatTheBankKnows) {
  const Own& own = all_[0];
  Customer customer, again;
  ASSERT_TRUE(Know(own, &customer).ok());
  EXPECT_EQ(customer.id(), own.owner);
  EXPECT_FALSE(customer.has_address());
  CustomerUpdate update;
  update.set_token(own.token);
  *update.mutable_address() = Ann().address();
  update.set_phone(Ann().phone());
  ASSERT_TRUE(Send(&Bank::Stub::UpdateCustomer, update, &customer, "a").ok());
  EXPECT_EQ(customer.address().city(), "Köln");
  update.set_email(Ann().email());
  EXPECT_TRUE(absl::IsAlreadyExists(Send(&Bank::Stub::UpdateCustomer, update, &again, "a")));
  update.clear_address();
  ASSERT_TRUE(Send(&Bank::Stub::UpdateCustomer, update, &customer).ok());
  ASSERT_TRUE(Know(own, &again).ok());
  EXPECT_EQ(again.SerializeAsString(), customer.SerializeAsString());
  EXPECT_FALSE(again.has_address()) << "it was left out";
  EXPECT_EQ(again.email(), Ann().email());
  update.set_email("ann");
  EXPECT_TRUE(absl::IsInvalidArgument(Send(&Bank::Stub::UpdateCustomer, update, &again)));
  ASSERT_TRUE(Know(Other(own, true), &again).ok());
  EXPECT_EQ(again.email(), "") << "another customer's";
}

}  // namespace
}  // namespace curtail::bank
