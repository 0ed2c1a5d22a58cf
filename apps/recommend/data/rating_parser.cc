// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/data/rating_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

constexpr size_t kMaxColumns = 4096;

// The part of the data that an error quotes: not all of a long line, and nothing a terminal would obey.
std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, 60)) quoted += c == '\t' || (c >= ' ' && c != 0x7f) ? c : '?';
  return quoted + (text.size() > 60 ? "...'" : "'");
}

absl::Status Bad(std::string_view why) { return absl::InvalidArgumentError(std::string(why)); }

absl::Status ReadId(std::string_view text, std::string_view what, uint32_t* id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *id);
  if (error == std::errc() && end == text.data() + text.size()) return absl::OkStatus();
  return Bad(Join("want a ", what, " number from 0 to 4294967295, got ", Quote(text)));
}

absl::Status ReadValue(std::string_view text, float* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size() && std::fabs(*value) <= kMaxRating) {
    return absl::OkStatus();
  }
  return Bad(Join("want a rating from -1000000 to 1000000, got ", Quote(text)));
}

bool IsInteger(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string Lower(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// Takes the next field off `rest`, which *more says there is; quotes and doubled quotes inside them are
// undone in `buffer`.
absl::Status NextCsvField(std::string_view* rest, std::string* buffer, std::string_view* field, bool* more) {
  if (!rest->starts_with('"')) {
    const size_t comma = rest->find(',');
    *field = rest->substr(0, comma);
    *more = comma != std::string_view::npos;
    rest->remove_prefix(*more ? comma + 1 : rest->size());
    return absl::OkStatus();
  }
  buffer->clear();
  rest->remove_prefix(1);
  for (;;) {
    const size_t quote = rest->find('"');
    if (quote == std::string_view::npos) return Bad("a quoted field does not end on its line");
    buffer->append(rest->substr(0, quote));
    rest->remove_prefix(quote + 1);
    if (!rest->starts_with('"')) break;
    buffer->push_back('"');
    rest->remove_prefix(1);
  }
  *field = *buffer;
  *more = rest->starts_with(',');
  if (!*more && !rest->empty()) return Bad(Join("want a comma after a quoted field, got ", Quote(*rest)));
  if (*more) rest->remove_prefix(1);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CsvFields(std::string_view line) {
  std::vector<std::string> fields;
  std::string buffer;
  std::string_view field;
  for (bool more = true; more;) {
    if (absl::Status status = NextCsvField(&line, &buffer, &field, &more); !status.ok()) return status;
    if (fields.size() == kMaxColumns) return Bad(Join("more than ", kMaxColumns, " columns"));
    fields.emplace_back(field);
  }
  return fields;
}

// The column with one of these names, or one past the last.
size_t FindColumn(const std::vector<std::string>& header, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (Lower(header[i]) == name) return i;
    }
  }
  return header.size();
}

absl::StatusOr<size_t> NamedColumn(const std::vector<std::string>& header, std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return Bad(Join("the header names no column ", Quote(name)));
  if (std::find(found + 1, header.end(), name) != header.end()) {
    return Bad(Join("the header names two columns ", Quote(name)));
  }
  return static_cast<size_t>(found - header.begin());
}

}  // namespace

absl::StatusOr<RatingParser> RatingParser::ForFirstLine(const DataSpec& spec, std::string_view line) {
  RatingParser parser;
  const bool csv = spec.format == DataSpec::Format::kColumns;
  if (!csv && line.find("::") != std::string_view::npos) {
    parser.format_ = Format::kColons;
    return parser;
  }
  if (!csv && line.find('\t') != std::string_view::npos) return parser;
  parser.format_ = Format::kCsv;
  absl::StatusOr<std::vector<std::string>> header = CsvFields(line);
  if (!header.ok()) return header.status();
  parser.columns_ = header->size();
  if (csv) {
    for (const auto& [name, column] : {std::pair{&spec.user, &parser.user_},
                                       {&spec.item, &parser.item_},
                                       {&spec.rating, &parser.rating_}}) {
      absl::StatusOr<size_t> found = NamedColumn(*header, *name);
      if (!found.ok()) return found.status();
      *column = *found;
    }
    return parser;
  }
  parser.user_ = FindColumn(*header, {"userid", "user_id", "user"});
  parser.item_ = FindColumn(*header, {"movieid", "movie_id", "movie", "itemid", "item_id", "item"});
  parser.rating_ = FindColumn(*header, {"rating"});
  if (std::max({parser.user_, parser.item_, parser.rating_}) < header->size()) return parser;
  return Bad(
      Join("want user<TAB>item<TAB>rating<TAB>timestamp, user::item::rating::timestamp, or the header "
           "userId,movieId,rating,timestamp, got ",
           Quote(line), "; for another CSV say csv:FILE,user=COLUMN,item=COLUMN,rating=COLUMN"));
}

absl::Status RatingParser::Parse(std::string_view line, Rating* rating) const {
  switch (format_) {
    case Format::kTabs:
      return ParseSeparated(line, "\t", rating);
    case Format::kColons:
      return ParseSeparated(line, "::", rating);
    case Format::kCsv:
      return ParseCsv(line, rating);
  }
  return Bad("no format");
}

absl::Status RatingParser::ParseSeparated(std::string_view line, std::string_view separator,
                                          Rating* rating) const {
  std::string_view fields[4];
  size_t count = 0;
  for (std::string_view rest = line; count < 4; ++count) {
    const size_t end = rest.find(separator);
    fields[count] = count == 3 ? rest : rest.substr(0, end);
    if (end == std::string_view::npos) {
      ++count;
      break;
    }
    rest.remove_prefix(end + separator.size());
  }
  if (count < 3 || (count == 4 && !IsInteger(fields[3]))) {
    const std::string_view by = separator == "\t" ? "<TAB>" : separator;
    return Bad(Join("want user", by, "item", by, "rating", by, "timestamp, got ", Quote(line)));
  }
  if (absl::Status status = ReadId(fields[0], "user", &rating->user); !status.ok()) return status;
  if (absl::Status status = ReadId(fields[1], "item", &rating->item); !status.ok()) return status;
  return ReadValue(fields[2], &rating->value);
}

absl::Status RatingParser::ParseCsv(std::string_view line, Rating* rating) const {
  std::string buffer;
  std::string_view field, rest = line;
  size_t column = 0;
  for (bool more = true; more; ++column) {
    absl::Status status = NextCsvField(&rest, &buffer, &field, &more);
    if (status.ok() && column == user_) status = ReadId(field, "user", &rating->user);
    if (status.ok() && column == item_) status = ReadId(field, "item", &rating->item);
    if (status.ok() && column == rating_) status = ReadValue(field, &rating->value);
    if (!status.ok()) return status;
  }
  if (column == columns_) return absl::OkStatus();
  return Bad(Join("want ", columns_, " columns as in the header, got ", column, ": ", Quote(line)));
}

}  // namespace curtail::recommend
