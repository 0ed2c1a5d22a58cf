// SPDX-License-Identifier: Apache-2.0
//
// postgresql_values.h - rows and parameters in PostgreSQL's binary form.
#pragma once

#include <libpq-fe.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/store/sql/session.h"

namespace curtail::internal {

// Of PostgreSQL's catalogue, which libpq's headers do not have.
inline constexpr Oid kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25, kBytes = 17;

// A message of libpq as one line.
inline std::string LineOf(const char* message) {
  std::string line = message == nullptr ? "" : message;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

inline uint64_t NumberAt(const char* bytes, int size) {
  uint64_t number = 0;
  for (int i = 0; i < size; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// The first row of a result.
class PostgresqlRow final : public SqlRow {
 public:
  explicit PostgresqlRow(const PGresult* result) : result_(result) {}
  int64_t Integer(int column) const override {
    const char* const bytes = PQgetvalue(result_, 0, column);
    switch (PQftype(result_, column)) {
      case kInt8:
        return PQgetlength(result_, 0, column) == 8 ? static_cast<int64_t>(NumberAt(bytes, 8)) : 0;
      case kInt4:
        return PQgetlength(result_, 0, column) == 4 ? static_cast<int32_t>(NumberAt(bytes, 4)) : 0;
      case kInt2:
        return PQgetlength(result_, 0, column) == 2 ? static_cast<int16_t>(NumberAt(bytes, 2)) : 0;
      default:
        return 0;
    }
  }
  std::string_view Text(int column) const override {
    return {PQgetvalue(result_, 0, column), static_cast<size_t>(PQgetlength(result_, 0, column))};
  }

 private:
  const PGresult* const result_;
};

// The values of a row, and some for the row itself.
inline size_t BytesOfRow(const PGresult* result) {
  size_t bytes = 32;
  for (int column = 0; column < PQnfields(result); ++column) {
    bytes += static_cast<size_t>(PQgetlength(result, 0, column));
  }
  return bytes;
}

// Parameters in binary form.
class PostgresqlParameters {
 public:
  explicit PostgresqlParameters(std::span<const SqlValue> values) : numbers_(values.size()) {
    for (const SqlValue& value : values) {
      std::string& number = numbers_[types_.size()];
      std::string_view bytes = value.text();
      if (value.kind() == SqlValue::Kind::kInteger) {
        const auto integer = static_cast<uint64_t>(value.integer());
        for (int shift = 56; shift >= 0; shift -= 8) number.push_back(static_cast<char>(integer >> shift));
        bytes = number;
      }
      types_.push_back(TypeOf(value));
      // libpq takes null for NULL.
      values_.push_back(bytes.data() == nullptr ? "" : bytes.data());
      lengths_.push_back(static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX)));
      formats_.push_back(1);
    }
  }
  static Oid TypeOf(const SqlValue& value) {
    return value.kind() == SqlValue::Kind::kInteger ? kInt8
           : value.kind() == SqlValue::Kind::kText  ? kText
                                                    : kBytes;
  }
  int count() const { return static_cast<int>(types_.size()); }
  const Oid* types() const { return types_.data(); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  std::vector<std::string> numbers_;
  std::vector<Oid> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_, formats_;
};

}  // namespace curtail::internal
