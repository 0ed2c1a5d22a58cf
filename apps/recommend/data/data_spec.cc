// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/data/data_spec.h"

#include "absl/status/status.h"
#include "apps/kit/number_options.h"
#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

absl::StatusOr<DataSpec> ParseSynthetic(std::string_view text, std::string_view fields) {
  DataSpec spec;
  spec.text = text;
  spec.format = DataSpec::Format::kSynthetic;
  SyntheticOptions& s = spec.synthetic;
  const NumberOption options[] = {{"users", &s.users, 1, kMaxSyntheticIds},
                                  {"items", &s.items, 1, kMaxSyntheticIds},
                                  {"ratings", &s.ratings, 1, kMaxSyntheticRatings},
                                  {"rank", &s.rank, 0, 256},
                                  {"noise", &s.noise, 0, 100},
                                  {"seed", &s.seed}};
  const absl::Status read = ReadNumberOptions(fields, options);
  if (!read.ok()) return BadData(text, Message(read));
  const uint64_t most = (uint64_t{s.users} * s.items + 1) / 2;
  if (s.ratings > most) {
    return BadData(text, Join("ratings must be 1 to ", most, ", half of users times items"));
  }
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
    return BadData(text, "write csv:FILE,user=COLUMN,item=COLUMN,rating=COLUMN");
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
    return BadData(
        text, "write a file, csv:FILE,user=COLUMN,item=COLUMN,rating=COLUMN or synthetic:NAME=NUMBER,...");
  }
  DataSpec spec;
  spec.text = spec.path = text;
  return spec;
}

}  // namespace curtail::recommend
