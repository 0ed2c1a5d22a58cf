// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/iban.h"

#include <gtest/gtest.h>

namespace curtail::bank {
namespace {

TEST(Iban, HasTheCheckSumOfTheStandard) {
  // Examples of the registry of ISO 13616.
  for (const char* iban : {"DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19", "no93 8601 1117 947",
                           "MT84MALT011000012345MTLCAST001S"})
    EXPECT_TRUE(CheckedIban(iban).ok()) << iban;
  EXPECT_EQ(*CheckedIban("de89 3704 0044 0532 0130 00"), "DE89370400440532013000");
}

TEST(Iban, EachOfThisBankIsRightAndNoOther) {
  for (const uint64_t number :
       {uint64_t{0}, uint64_t{1}, uint64_t{97}, uint64_t{4'711'000'815}, kMostNumber}) {
    const std::string iban = IbanOf(number);
    EXPECT_EQ(iban.size(), 22u);
    EXPECT_EQ(*CheckedIban(iban), iban);
    for (size_t i = 2; i < iban.size(); ++i) {
      std::string wrong = iban;
      wrong[i] = wrong[i] == '9' ? '0' : static_cast<char>(wrong[i] + 1);
      EXPECT_TRUE(absl::IsInvalidArgument(CheckedIban(wrong).status())) << wrong;
    }
  }
}

TEST(Iban, RefusesWhatHasNotTheForm) {
  for (const std::string& given :
       {std::string(), std::string("DE"), std::string("DE8937040044053201300"),
        std::string("8937DE04004405320130"), std::string("DE89-3704-0044-0532-0130-00"),
        "DE89" + std::string(31, '0'), std::string(1000, ' '), std::string("DE89\0", 5)})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckedIban(given).status())) << given;
}

}  // namespace
}  // namespace curtail::bank
