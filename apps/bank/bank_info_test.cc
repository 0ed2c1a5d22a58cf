// SPDX-License-Identifier: Apache-2.0
//
// Branches and banks, as customers of the bank look for them.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "apps/bank/bank_testing.h"
#include "apps/bank/branches.h"

namespace curtail::bank {
namespace {

class BankInfoTest : public BankTest {
 protected:
  absl::Status Find(const std::string& bic, const std::string& iban, BankList* reply) const {
    BankQuery query;
    query.set_bic(bic), query.set_iban(iban);
    return Send(&Bank::Stub::FindBank, query, reply);
  }
  absl::Status Search(const std::string& text, uint32_t limit, BankList* reply) const {
    BankSearchQuery query;
    query.set_text(text), query.set_limit(limit);
    return Send(&Bank::Stub::SearchBanks, query, reply);
  }
};

TEST_F(BankInfoTest, ListsTheNearestBranches) {
  BranchQuery query;
  *query.mutable_near() = AllBranches()[99].place();
  query.set_limit(3);
  BranchList list;
  ASSERT_TRUE(Send(&Bank::Stub::ListBranches, query, &list).ok());
  ASSERT_EQ(list.branches_size(), 3);
  EXPECT_EQ(list.branches(0).id(), AllBranches()[99].id());
  EXPECT_LE(KilometresBetween(query.near(), list.branches(1).place()),
            KilometresBetween(query.near(), list.branches(2).place()));
  query.mutable_near()->set_latitude(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(absl::IsInvalidArgument(Send(&Bank::Stub::ListBranches, query, &list)));
}

TEST_F(BankInfoTest, FindsBanksByBicAndIban) {
  struct Known {
    std::string iban, bic;
  };
  // The examples of the registry of IBANs.
  for (const Known& known : {Known{"DE89 3704 0044 0532 0130 00", "COBADEFFXXX"},
                             {"gb29nwbk60161331926819", "NWBKGB2LXXX"},
                             {"ES91 2100 0418 4502 0005 1332", "CAIXESBBXXX"},
                             {"NL91ABNA0417164300", "ABNANL2AXXX"}}) {
    BankList by_iban, by_bic;
    const absl::Status found = Find("", known.iban, &by_iban);
    ASSERT_TRUE(found.ok()) << known.iban << found;
    EXPECT_EQ(by_iban.banks(0).bic(), known.bic);
    EXPECT_EQ(by_iban.banks(0).country(), known.bic.substr(4, 2));
    ASSERT_TRUE(Find(known.bic.substr(0, 8), "", &by_bic).ok());
    EXPECT_EQ(by_bic.banks(0).bic(), known.bic);
    EXPECT_FALSE(by_bic.banks(0).name().empty());
  }
  BankList none;
  EXPECT_TRUE(absl::IsNotFound(Find("ZZZZZZZZ", "", &none)));
  EXPECT_TRUE(absl::IsNotFound(Find("", all_[0].iban, &none))) << "no real bank has its code";
  for (const char* wrong : {"COBADEF", "COBADEFFX", "COBA-EFF", "COBADEFFXXXX"})
    EXPECT_TRUE(absl::IsInvalidArgument(Find(wrong, "", &none))) << wrong;
  for (const char* wrong :
       {"DE88370400440532013000", "DE8937040044053201300", "ZZ89370400440532013000", "DE"})
    EXPECT_TRUE(absl::IsInvalidArgument(Find("", wrong, &none))) << wrong;
  EXPECT_TRUE(absl::IsInvalidArgument(Find("", "", &none)));
  EXPECT_TRUE(absl::IsInvalidArgument(Find("COBADEFF", "DE89370400440532013000", &none)));
}

TEST_F(BankInfoTest, SearchesNames) {
  BankList list;
  ASSERT_TRUE(Search("berliner  VOLKSBANK", 100, &list).ok());
  ASSERT_FALSE(list.banks().empty());
  for (const BankInfo& bank : list.banks()) EXPECT_NE(bank.name().find("olksbank"), std::string::npos);
  ASSERT_TRUE(Search("bank", 0, &list).ok());
  EXPECT_EQ(list.banks_size(), 20);
  ASSERT_TRUE(Search("xyzzyx", 0, &list).ok());
  EXPECT_TRUE(list.banks().empty());
  for (const std::string& wrong : {std::string(), std::string("  "), std::string(101, 'a')})
    EXPECT_TRUE(absl::IsInvalidArgument(Search(wrong, 0, &list)));
}

}  // namespace
}  // namespace curtail::bank
