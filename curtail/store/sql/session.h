// SPDX-License-Identifier: Apache-2.0
//
// session.h - statements within one transaction of a database: what a work of a SqlDatabase sees.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail {

// The value of a parameter. Text and bytes are borrowed until the statement has ended.
class SqlValue {
 public:
  enum class Kind { kInteger, kText, kBytes };

  SqlValue(int value) : integer_(value) {}
  SqlValue(int64_t value) : integer_(value) {}
  // REQUIRES: less than 2^63.
  SqlValue(uint64_t value) : integer_(static_cast<int64_t>(value)) {}
  SqlValue(std::string_view text) : kind_(Kind::kText), text_(text) {}
  SqlValue(const std::string& text) : kind_(Kind::kText), text_(text) {}
  SqlValue(const char* text) : kind_(Kind::kText), text_(text) {}
  static SqlValue Bytes(std::string_view bytes) {
    SqlValue value(bytes);
    value.kind_ = Kind::kBytes;
    return value;
  }

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  std::string_view text() const { return text_; }

 private:
  Kind kind_ = Kind::kInteger;
  int64_t integer_ = 0;
  std::string_view text_;
};

// A row of an answer, while the function that gets it runs. Columns count from 0. NULL is 0 and
// empty.
class SqlRow {
 public:
  virtual ~SqlRow() = default;
  virtual int64_t Integer(int column) const = 0;
  uint64_t Unsigned(int column) const { return static_cast<uint64_t>(Integer(column)); }
  // Text or bytes.
  virtual std::string_view Text(int column) const = 0;
};

// A SqlSession is one connection, with its prepared statements. For one thread at a time.
// All statements may fail with ALREADY_EXISTS (a key that must be unique), FAILED_PRECONDITION
// (another constraint), DEADLINE_EXCEEDED, INTERNAL (a mistake in the statement) or DATA_LOSS (the
// database is damaged). RESOURCE_EXHAUSTED: the disk is full, or what the database may hold.
// UNAVAILABLE: another process holds the lock for too long, the disk fails, the server is away.
class SqlSession {
 public:
  virtual ~SqlSession() = default;

  // Runs one statement with values for its parameters, "?1" first, and calls `row` for each row of
  // its answer. `row` does not use the session. REQUIRES: `sql` is one of at most kMaxStatements
  // texts of the program, never made of input.
  [[nodiscard]] absl::Status Query(std::string_view sql, std::initializer_list<SqlValue> values,
                                   absl::FunctionRef<void(const SqlRow& row)> row) {
    return QueryEach(sql, values.size(), std::span(values.begin(), values.size()),
                     [&](size_t, const SqlRow& one) { row(one); });
  }
  // The same for each `width` of the values, in few round trips where there is a server. `row`
  // hears which run has the row, from 0. Ends with the first error.
  [[nodiscard]] virtual absl::Status QueryEach(
      std::string_view sql, size_t width, std::span<const SqlValue> values,
      absl::FunctionRef<void(size_t run, const SqlRow& row)> row) = 0;
  // The same for one that has no answer.
  [[nodiscard]] absl::Status Execute(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return Query(sql, values, [](const SqlRow&) {});
  }
  // Rows that the last statement inserted, changed or deleted.
  virtual int64_t changes() const = 0;

  static constexpr size_t kMaxStatements = 256;

  // For SqlDatabase, as what follows: brings the schema to the newest version. steps[i] leads from
  // version i to i + 1.
  [[nodiscard]] virtual absl::Status Migrate(const std::vector<std::string>& steps) = 0;
  // Runs a statement with no values and no answer, at the latest with the next one, which then has
  // its error.
  [[nodiscard]] virtual absl::Status Later(std::string_view sql) { return Execute(sql); }
  // Has the commits from now on wait for the disk or not. A session that was opened without it
  // never waits. REQUIRES: no transaction is open.
  [[nodiscard]] virtual absl::Status SetSync(bool /*sync*/) { return absl::OkStatus(); }
  [[nodiscard]] virtual absl::Status Begin(bool write) = 0;
  [[nodiscard]] virtual absl::Status Commit() = 0;
  virtual void Rollback() = 0;
  // False after an error that ended the transaction by itself.
  virtual bool InTransaction() = 0;
  // Statements end with DEADLINE_EXCEEDED then.
  void SetDeadline(Deadline deadline) { deadline_ = deadline; }

 protected:
  Deadline deadline_ = Deadline::Infinite();
};

}  // namespace curtail
