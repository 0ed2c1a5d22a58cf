// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/credit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::bank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Generated loans, whose verdicts follow `housing` and the months, and no other column.
std::string Generated(int loans) {
  Rng rng(3);
  std::string text = "housing,duration_in_month,telephone,age_in_years,creditability\n";
  for (int i = 0; i < loans; ++i) {
    const bool owns = rng.Below(2) == 0;
    const uint64_t months = 6 + rng.Below(48);
    const double good = 0.2 + (owns ? 0.4 : 0) + (months < 30 ? 0.3 : 0);
    // In an order that no compiler changes.
    const char* const telephone = rng.Below(2) == 0 ? "none" : "yes";
    const uint64_t age = 20 + rng.Below(40);
    const char* const verdict = rng.Uniform01() < good ? "good" : "bad";
    text +=
        Join(owns ? "own" : "\"rent, or less\"", ",", months, ",", telephone, ",", age, ",", verdict, "\n");
  }
  return text;
}

class CreditTest : public testing::Test {
 protected:
  static CreditFeatures Of(const std::string& housing, const std::string& months,
                           const std::string& telephone) {
    CreditFeatures all;
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {"housing", housing}, {"duration_in_month", months}, {"telephone", telephone}}) {
      CreditFeature* const feature = all.add_features();
      feature->set_name(name), feature->set_value(value);
    }
    return all;
  }
  CreditModel Learned() {
    dir_.Write("loans.csv", Generated(2000));
    const auto loans = ReadLoans(dir_.File("loans.csv"));
    EXPECT_TRUE(loans.ok()) << loans.status();
    EXPECT_THAT(loans->features, ElementsAre("housing", "duration_in_month", "telephone"));
    auto model = TrainCredit(*loans);
    EXPECT_TRUE(model.ok()) << model.status();
    return *model;
  }

  const TempDir dir_;
};

TEST_F(CreditTest, FindsWhatVerdictsFollow) {
  const CreditModel model = Learned();
  EXPECT_GT(model.held_out_auc(), 0.7);
  CreditScore good, bad;
  ASSERT_TRUE(ScoreCredit(model, Of("own", "12", "none"), &good).ok());
  ASSERT_TRUE(ScoreCredit(model, Of("rent, or less", "48", "none"), &bad).ok());
  EXPECT_NEAR(good.probability(), 0.9, 0.1);
  EXPECT_NEAR(bad.probability(), 0.2, 0.1);
  ASSERT_GE(bad.reasons_size(), 2);
  EXPECT_EQ(bad.reasons(0), "housing");
  EXPECT_EQ(bad.reasons(1), "duration_in_month");
  for (const std::string& reason : good.reasons()) EXPECT_EQ(reason, "telephone");
  EXPECT_EQ(TextOf(Learned()), TextOf(model));
  EXPECT_EQ(TextOf(*ParseCreditModel(TextOf(model))), TextOf(model));
}

TEST_F(CreditTest, RefusesAScoreOfAnythingButAllFeatures) {
  const CreditModel model = Learned();
  CreditScore score;
  const auto refused = [&](const CreditFeatures& features, const std::string& words) {
    const absl::Status status = ScoreCredit(model, features, &score);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr(words));
  };
  CreditFeatures features = Of("own", "12", "none");
  features.mutable_features()->RemoveLast();
  refused(features, "telephone is missing");
  refused({}, "housing is missing");
  refused(Of("tent", "12", "none"), "housing is one of \"own\", \"rent, or less\"");
  refused(Of("own", "1.5", "none"), "duration_in_month is a whole number");
  refused(Of("own", "-1", "none"), "duration_in_month is a whole number");
  refused(Of("own", "", "none"), "duration_in_month is a whole number");
  features = Of("own", "12", "none");
  *features.add_features() = features.features(0);
  refused(features, "housing is given twice");
  features.mutable_features(3)->set_name("age_in_years");
  refused(features, "no score takes the feature age_in_years");
}

TEST_F(CreditTest, RefusesWhatCannotBeLearned) {
  const auto refused = [&](const std::string& text, const std::string& words) {
    dir_.Write("loans.csv", text);
    const auto loans = ReadLoans(dir_.File("loans.csv"));
    const absl::Status status = loans.ok() ? TrainCredit(*loans).status() : loans.status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.ToString(), HasSubstr(words));
  };
  refused("", "no columns");
  refused("housing,creditability\nown\n", "line 2");
  refused("housing,creditability\nown,fine\n", "it is good or bad");
  refused(Generated(99), "at least 100");
  EXPECT_TRUE(absl::IsNotFound(ReadLoans(dir_.File("none")).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseCreditModel("").status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseCreditModel("model").status()));
  EXPECT_TRUE(absl::IsDataLoss(
      ParseCreditModel("features { name: 'age_in_years' levels { value: '20' } }").status()));
}

}  // namespace
}  // namespace curtail::bank
