// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/credit.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "apps/kit/digits.h"
#include "apps/kit/line_reader.h"
#include "apps/kit/logistic.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

// `job` tells apart residents and others.
constexpr std::array<std::string_view, 4> kNever = {"personal_status_and_sex", "age_in_years",
                                                    "foreign_worker", "job"};
constexpr size_t kFewestLoans = 100, kFolds = 10;
constexpr size_t kMostCategories = 10;  // a number of more values counts by its quartile
constexpr int kQuartiles = 4, kMostReasons = 4;
constexpr double kDigits = 1e4;  // weights have four digits

bool IsNever(std::string_view feature) { return std::ranges::find(kNever, feature) != kNever.end(); }

// The fields of a line; a field in quotes may have commas.
std::vector<std::string> FieldsOf(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) fields.emplace_back();
    else fields.back() += c;
  }
  return fields;
}

// How the loans say it: each level of a feature is one feature of the regression, behind the one that all loans have.
CreditModel LevelsOf(const PastLoans& loans, const std::vector<size_t>& used) {
  CreditModel model;
  for (size_t f = 0; f < loans.features.size(); ++f) {
    CreditModel::Feature* const feature = model.add_features();
    feature->set_name(loans.features[f]);
    std::set<std::string> names;
    std::vector<uint64_t> numbers;
    for (const size_t i : used) {
      names.insert(loans.values[i][f]);
      if (const auto number = apps::ParseDigits(loans.values[i][f])) numbers.push_back(*number);
    }
    feature->set_number(numbers.size() == used.size() && names.size() > kMostCategories);
    if (!feature->number()) {
      for (const std::string& name : names) feature->add_levels()->set_value(name);
      continue;
    }
    std::ranges::sort(numbers);
    std::set<uint64_t> bounds = {0};
    for (size_t q = 1; q < kQuartiles; ++q) bounds.insert(numbers[numbers.size() * q / kQuartiles]);
    for (const uint64_t bound : bounds) feature->add_levels()->set_at_least(bound);
  }
  return model;
}

// The level that a value has, or null.
const CreditModel::Level* LevelOf(const CreditModel::Feature& feature, const std::string& value) {
  const std::optional<uint64_t> number = apps::ParseDigits(value);
  const CreditModel::Level* found = nullptr;
  for (const CreditModel::Level& level : feature.levels())
    if (feature.number() ? number && *number >= level.at_least() : value == level.value()) found = &level;
  return found;
}

// The weights are around 0 for the loans on average, so that a negative one has lowered a score.
CreditModel Train(const PastLoans& loans, const std::vector<size_t>& used) {
  CreditModel model = LevelsOf(loans, used);
  std::map<const CreditModel::Level*, uint32_t> places;
  for (const CreditModel::Feature& feature : model.features())
    for (const CreditModel::Level& level : feature.levels())
      places.emplace(&level, static_cast<uint32_t>(places.size() + 1));
  std::vector<std::vector<uint32_t>> features;
  for (const size_t i : used) {
    features.push_back({0});
    for (size_t f = 0; f < loans.features.size(); ++f)
      features.back().push_back(places.at(LevelOf(model.features(static_cast<int>(f)), loans.values[i][f])));
  }
  std::vector<apps::LogisticCases> cases;
  for (size_t i = 0; i < used.size(); ++i) cases.push_back({features[i], 1, loans.good[used[i]] ? 1u : 0u});
  const std::vector<double> weights =
      apps::TrainLogistic(cases, places.size() + 1, {.passes = 30, .regularization = 0.03, .seed = 1});
  double intercept = weights[0];
  for (size_t f = 0; f < loans.features.size(); ++f) {
    double mean = 0;
    for (const auto& one : features) mean += weights[one[f + 1]] / static_cast<double>(features.size());
    intercept += mean;
    for (CreditModel::Level& level : *model.mutable_features(static_cast<int>(f))->mutable_levels())
      level.set_weight(std::round((weights[places.at(&level)] - mean) * kDigits) / kDigits);
  }
  model.set_intercept(std::round(intercept * kDigits) / kDigits);
  model.set_loans(static_cast<uint32_t>(used.size()));
  return model;
}

// The sum of the weights of a loan. A value that the model has not seen counts as the average.
double SumOf(const CreditModel& model, const std::vector<std::string>& values) {
  double sum = model.intercept();
  for (size_t f = 0; f < values.size(); ++f) {
    const CreditModel::Level* const level = LevelOf(model.features(static_cast<int>(f)), values[f]);
    if (level != nullptr) sum += level->weight();
  }
  return sum;
}

// How often a good loan scores above a bad one.
std::optional<double> AreaUnderCurve(const CreditModel& model, const PastLoans& loans,
                                     const std::vector<size_t>& judged) {
  std::vector<double> good, bad;
  for (const size_t i : judged) (loans.good[i] ? good : bad).push_back(SumOf(model, loans.values[i]));
  if (good.empty() || bad.empty()) return std::nullopt;
  double right = 0;
  for (const double g : good)
    for (const double b : bad) right += g > b ? 1 : g == b ? 0.5 : 0;
  return right / static_cast<double>(good.size() * bad.size());
}

}  // namespace

absl::StatusOr<PastLoans> ReadLoans(const std::string& path) {
  auto reader = apps::LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  const auto wrong = [&](const std::string& why) {
    return absl::InvalidArgumentError(Join((*reader)->Where(), ": ", why));
  };
  PastLoans loans;
  std::vector<std::string> columns;
  std::string_view line;
  absl::StatusOr<bool> more = false;
  while ((more = (*reader)->Next(&line)).ok() && *more) {
    std::vector<std::string> fields = FieldsOf(line);
    if (columns.empty()) {
      columns = std::move(fields);
      for (size_t i = 0; i + 1 < columns.size(); ++i)
        if (!IsNever(columns[i])) loans.features.push_back(columns[i]);
      continue;
    }
    if (fields.size() != columns.size())
      return wrong(Join(fields.size(), " fields, but the first line names ", columns.size()));
    if (fields.back() != "good" && fields.back() != "bad")
      return wrong(Join("the last field is \"", fields.back(), "\"; it is good or bad"));
    loans.good.push_back(fields.back() == "good");
    loans.values.emplace_back();
    for (size_t i = 0; i + 1 < fields.size(); ++i)
      if (!IsNever(columns[i])) loans.values.back().push_back(std::move(fields[i]));
  }
  if (!more.ok()) return more.status();
  if (loans.features.empty()) return wrong("no columns of features");
  return loans;
}

absl::StatusOr<CreditModel> TrainCredit(const PastLoans& loans) {
  if (loans.good.size() < kFewestLoans)
    return absl::InvalidArgumentError(
        Join(loans.good.size(), " loans; at least ", kFewestLoans, " are needed"));
  double area = 0;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<size_t> used, judged;
    for (size_t i = 0; i < loans.good.size(); ++i) (i % kFolds == fold ? judged : used).push_back(i);
    const std::optional<double> of_fold = AreaUnderCurve(Train(loans, used), loans, judged);
    if (!of_fold)
      return absl::InvalidArgumentError("a tenth of the loans has only good or only bad ones; give more");
    area += *of_fold / kFolds;
  }
  std::vector<size_t> all(loans.good.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  CreditModel model = Train(loans, all);
  model.set_held_out_auc(std::round(area * kDigits) / kDigits);
  return model;
}

std::string TextOf(const CreditModel& model) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(model, &text);
  return text;
}

absl::StatusOr<CreditModel> ParseCreditModel(const std::string& text) {
  CreditModel model;
  if (!google::protobuf::TextFormat::ParseFromString(text, &model) || model.features().empty())
    return absl::DataLossError("not a model of credits; bank train writes one");
  for (const CreditModel::Feature& feature : model.features()) {
    if (IsNever(feature.name()))
      return absl::DataLossError(Join("the model judges by ", feature.name(), "; train it again"));
    if (feature.levels().empty()) return absl::DataLossError(Join(feature.name(), " has no levels"));
  }
  return model;
}

absl::Status ScoreCredit(const CreditModel& model, const CreditFeatures& features, CreditScore* score) {
  std::map<std::string, std::string> given;
  for (const CreditFeature& feature : features.features()) {
    if (!given.emplace(feature.name(), feature.value()).second)
      return absl::InvalidArgumentError(Join("the feature ", feature.name(), " is given twice"));
  }
  double sum = model.intercept();
  std::vector<std::pair<double, std::string>> lowered;
  for (const CreditModel::Feature& feature : model.features()) {
    const auto value = given.extract(feature.name());
    if (value.empty()) return absl::InvalidArgumentError(Join("the feature ", feature.name(), " is missing"));
    const CreditModel::Level* const level = LevelOf(feature, value.mapped());
    if (level == nullptr) {
      std::string levels;
      for (const CreditModel::Level& one : feature.levels())
        levels += Join(levels.empty() ? "" : ", ", "\"", one.value(), "\"");
      return absl::InvalidArgumentError(Join("the feature ", feature.name(), " is ",
                                             feature.number() ? "a whole number" : Join("one of ", levels)));
    }
    sum += level->weight();
    if (level->weight() < 0) lowered.emplace_back(level->weight(), feature.name());
  }
  if (!given.empty())
    return absl::InvalidArgumentError(Join("no score takes the feature ", given.begin()->first));
  score->set_probability(apps::Logistic(sum));
  std::ranges::sort(lowered);
  for (size_t i = 0; i < std::min<size_t>(lowered.size(), kMostReasons); ++i)
    score->add_reasons(lowered[i].second);
  return absl::OkStatus();
}

absl::StatusOr<CreditFeatures> FeaturesOf(const LoanOrder& order) {
  constexpr int64_t kCents = 100;  // of a unit
  CreditFeatures all;
  for (const CreditFeature& feature : order.features()) {
    if (feature.name() == kMonthsFeature || feature.name() == kAmountFeature)
      return absl::InvalidArgumentError(
          Join("the feature ", feature.name(), " follows from the loan; leave it out"));
    *all.add_features() = feature;
  }
  CreditFeature& months = *all.add_features();
  months.set_name(kMonthsFeature);
  months.set_value(Join(order.months()));
  CreditFeature& amount = *all.add_features();
  amount.set_name(kAmountFeature);
  amount.set_value(Join(order.cents() / kCents));
  return all;
}

}  // namespace curtail::bank
