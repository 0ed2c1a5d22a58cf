// SPDX-License-Identifier: Apache-2.0
//
// Branches and banks, as customers of the bank look for them, and payments to other banks.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "apps/bank/common/books.h"
#include "apps/bank/common/branches.h"
#include "apps/bank/data.h"
#include "apps/bank/tests/bank_testing.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

class BankInfoTest : public BankFaultTest {
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
  // That the accounts for a bank have in all shards.
  int64_t NostroCents(const std::string& bic) const {
    int64_t cents = 0;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      const auto books =
          internal::SqliteSession::Open({.path = Join(Folder(), "/", BooksOf({shard, kShards}), ".db")});
      EXPECT_TRUE(books.ok()) << books.status();
      const absl::Status status =
          (*books)->Query("SELECT balance FROM accounts WHERE id = ?1", {NostroOf(bic, shard, kShards)},
                          [&](const SqlRow& row) { cents += row.Integer(0); });
      EXPECT_TRUE(status.ok()) << status;
    }
    return cents;
  }
};

using PartedBankInfoTest = Parted<BankInfoTest>;

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
  ASSERT_TRUE(Search("bank bank bank bank bank bank bank bank bank", 1, &list).ok()) << "it is one word";
  for (const std::string& wrong :
       {std::string(), std::string("  "), std::string(101, 'a'), std::string("a b c d e f g h i")})
    EXPECT_TRUE(absl::IsInvalidArgument(Search(wrong, 0, &list)));
}

TEST_F(BankInfoTest, APaymentToAnotherBankGoesToItsAccountHere) {
  const Own& from = all_[0];
  PayRequest request = PaymentOf(from, from, 250);
  request.set_iban("de89 3704 0044 0532 0130 00");
  Payment first, again;
  ASSERT_TRUE(Pay(request, "a", &first).ok());
  EXPECT_EQ(first.state(), Payment::ARRIVED);
  EXPECT_EQ(first.iban(), "DE89370400440532013000");
  ASSERT_TRUE(Pay(request, "a", &again).ok());
  EXPECT_EQ(first.SerializeAsString(), again.SerializeAsString());
  request.set_cents(251);
  EXPECT_TRUE(absl::IsAlreadyExists(Pay(request, "a", &again)));
  request.set_cents(kDeposit);
  EXPECT_TRUE(absl::IsFailedPrecondition(Pay(request))) << "it has less";
  EXPECT_EQ(CentsOf(from), kDeposit - 250);
  EXPECT_EQ(NostroCents("COBADEFF"), 250);
  EXPECT_EQ(Audit(), 0);
}

TEST_F(PartedBankInfoTest, PaymentsToAnotherBankOutliveTheServices) {
  const size_t accounts = all_.size() / 6;  // of each customer
  std::array<int64_t, kCustomers> paid{};
  ActWhileKilled({"payments", "posting", "bank-info-search", "payments"}, [&](int customer) {
    const std::unique_ptr<Channel> channel = Connect();
    const Own& own = all_[static_cast<size_t>(customer) * accounts];
    PayRequest request = PaymentOf(own, own, 1);
    request.set_iban("GB29NWBK60161331926819");
    for (int i = 0; !stop_.load(); ++i) {
      Payment payment;
      const absl::Status status =
          Answered([&] { return Pay(request, Join("abroad ", i), &payment, channel.get(), kPatience); });
      ASSERT_TRUE(status.ok()) << status;
      ++paid[static_cast<size_t>(customer)];
    }
  });
  int64_t all = 0;
  for (size_t i = 0; i < paid.size(); ++i) {
    EXPECT_EQ(CentsOf(all_[i * accounts]), kDeposit - paid[i]);
    all += paid[i];
  }
  EXPECT_EQ(NostroCents("NWBKGB2L"), all);
  EXPECT_EQ(Audit(), 0);
}

TEST(Nostro, EachBankHasAnAccountInEachShardBelowIdsThatAreGiven) {
  constexpr uint64_t kGiven = uint64_t{86'400'000} * 366 << 22;  // from 2025 on
  std::set<uint64_t> all;
  for (const char* bic :
       {"AAAAAAAA", "AAAAAAAB", "COBADEFF", "COBADEFFXXX", "NWBKGB2L", "ZZZZZZZZ", "00000000"}) {
    for (size_t shard = 0; shard < 64; ++shard) {
      const uint64_t id = NostroOf(bic, shard, 64);
      EXPECT_EQ(apps::PartOf(id, 64), shard);
      EXPECT_TRUE(IsNostro(id));
      EXPECT_LT(id, kGiven);
      all.insert(id);
    }
  }
  EXPECT_EQ(all.size(), 6u * 64);  // a branch has its bank's
}

}  // namespace
}  // namespace curtail::bank
