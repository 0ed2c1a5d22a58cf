// SPDX-License-Identifier: Apache-2.0
//
// applicant.h - what applicants for loans say of themselves in tests and load tests.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include "bank.pb.h"

namespace curtail::bank {

// All features that an applicant states. The loans of a good one are probably repaid, and of a bad one probably not.
inline google::protobuf::RepeatedPtrField<CreditFeature> Applicant(bool good) {
  struct Feature {
    const char *name, *of_good, *of_bad;
  };
  static constexpr Feature kFeatures[] = {
      {"status_of_existing_checking_account", "no checking account", "... < 0 DM"},
      {"credit_history", "critical account/ other credits existing (not at this bank)",
       "no credits taken/ all credits paid back duly"},
      {"purpose", "car (used)", "education"},
      {"savings_account_and_bonds", "... >= 1000 DM", "... < 100 DM"},
      {"present_employment_since", "4 <= ... < 7 years", "unemployed"},
      {"installment_rate_in_percentage_of_disposable_income", "1", "4"},
      {"other_debtors_or_guarantors", "guarantor", "co-applicant"},
      {"present_residence_since", "1", "2"},
      {"property", "real estate", "unknown / no property"},
      {"other_installment_plans", "none", "bank"},
      {"housing", "own", "rent"},
      {"number_of_existing_credits_at_this_bank", "1", "2"},
      {"number_of_people_being_liable_to_provide_maintenance_for", "1", "2"},
      {"telephone", "yes, registered under the customers name", "none"}};
  google::protobuf::RepeatedPtrField<CreditFeature> all;
  for (const Feature& feature : kFeatures) {
    CreditFeature* const one = all.Add();
    one->set_name(feature.name), one->set_value(good ? feature.of_good : feature.of_bad);
  }
  return all;
}

}  // namespace curtail::bank
