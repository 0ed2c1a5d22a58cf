// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/data_spec.h"

#include <charconv>
#include <cmath>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("data '", text, "': ", why));
}

bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

template <class Number>
bool ReadNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Takes the text before the next comma, and the comma, off `rest`.
std::string_view NextField(std::string_view* rest) {
  const size_t comma = rest->find(',');
  const std::string_view field = rest->substr(0, comma);
  rest->remove_prefix(comma == std::string_view::npos ? rest->size() : comma + 1);
  return field;
}

// Whether `field` is "NAME=NUMBER" for one of the options; sets it.
bool Assign(std::string_view field, SyntheticOptions* s) {
  const size_t equals = field.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
  if (name == "users") return ReadNumber(value, &s->users);
  if (name == "items") return ReadNumber(value, &s->items);
  if (name == "ratings") return ReadNumber(value, &s->ratings);
  if (name == "rank") return ReadNumber(value, &s->rank);
  if (name == "noise") return ReadNumber(value, &s->noise);
  if (name == "seed") return ReadNumber(value, &s->seed);
  return false;
}

absl::StatusOr<DataSpec> ParseSynthetic(std::string_view text, std::string_view rest) {
  DataSpec spec;
  spec.text = text;
  spec.format = DataSpec::Format::kSynthetic;
  SyntheticOptions& s = spec.synthetic;
  while (!rest.empty()) {
    const std::string_view field = NextField(&rest);
    if (!Assign(field, &s)) {
      return Bad(text,
                 Join("'", field,
                      "' is none of users=, items=, ratings=, rank=, noise=, seed= with a number that fits"));
    }
  }
  if (s.users == 0 || s.users > kMaxSyntheticIds) return Bad(text, "users must be 1 to 10000000");
  if (s.items == 0 || s.items > kMaxSyntheticIds) return Bad(text, "items must be 1 to 10000000");
  const uint64_t most = (uint64_t{s.users} * s.items + 1) / 2;
  if (s.ratings > kMaxSyntheticRatings) {
    return Bad(text, Join("ratings must be 1 to ", kMaxSyntheticRatings));
  }
  if (s.ratings == 0 || s.ratings > most) {
    return Bad(text, Join("ratings must be 1 to ", most, ", half of users times items"));
  }
  if (s.rank > 256) return Bad(text, "rank must be at most 256");
  if (!(s.noise >= 0 && s.noise <= 100)) return Bad(text, "noise must be 0 to 100");
  return spec;
}

absl::StatusOr<DataSpec> ParseColumns(std::string_view text, std::string_view rest) {
  DataSpec spec;
  spec.text = text;
  spec.format = DataSpec::Format::kColumns;
  // From the end: a path may hold commas.
  for (int i = 0; i < 3; ++i) {
    const size_t comma = rest.rfind(',');
    if (comma == std::string_view::npos) break;
    std::string_view field = rest.substr(comma + 1);
    std::string* column = ConsumePrefix(&field, "user=")     ? &spec.user
                          : ConsumePrefix(&field, "item=")   ? &spec.item
                          : ConsumePrefix(&field, "rating=") ? &spec.rating
                                                             : nullptr;
    if (column == nullptr) break;
    *column = field;
    rest = rest.substr(0, comma);
  }
  spec.path = rest;
  if (spec.path.empty() || spec.user.empty() || spec.item.empty() || spec.rating.empty()) {
    return Bad(text, "want csv:FILE,user=COLUMN,item=COLUMN,rating=COLUMN");
  }
  return spec;
}

}  // namespace

absl::StatusOr<DataSpec> DataSpec::Parse(std::string_view text) {
  std::string_view rest = text;
  if (text == "synthetic") return ParseSynthetic(text, "");
  if (ConsumePrefix(&rest, "synthetic:")) return ParseSynthetic(text, rest);
  if (ConsumePrefix(&rest, "csv:")) return ParseColumns(text, rest);
  if (text.empty()) {
    return Bad(text,
               "want a file, csv:FILE,user=COLUMN,item=COLUMN,rating=COLUMN or synthetic:NAME=NUMBER,...");
  }
  DataSpec spec;
  spec.text = spec.path = text;
  return spec;
}

}  // namespace curtail::recommend
