// SPDX-License-Identifier: Apache-2.0
//
// session.h - statements within one transaction of an SQLite file: what a work of a SqlDatabase
// sees.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

struct sqlite3;
struct sqlite3_stmt;

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
  explicit SqlRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t Integer(int column) const;
  uint64_t Unsigned(int column) const { return static_cast<uint64_t>(Integer(column)); }
  // Text or bytes.
  std::string_view Text(int column) const;

 private:
  sqlite3_stmt* const statement_;
};

// A SqlSession is one connection, with its prepared statements. For one thread at a time.
// Errors of all statements: ALREADY_EXISTS (a key that must be unique), FAILED_PRECONDITION
// (another constraint), RESOURCE_EXHAUSTED (the disk, or what the file may hold, is full),
// DATA_LOSS (the file is damaged), DEADLINE_EXCEEDED, UNAVAILABLE (another process holds the lock
// for too long, or the disk fails), INTERNAL (a mistake in the statement).
class SqlSession {
 public:
  struct Options {
    std::string path;
    Nanos busy_timeout = std::chrono::seconds(5);
    uint64_t max_bytes = 0;
    bool sync = true;
    bool writes = true;
  };
  // Opens the file, or makes it, private to the user. For SqlDatabase, as what follows.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqlSession>> Open(const Options& options);
  ~SqlSession();
  SqlSession(const SqlSession&) = delete;
  SqlSession& operator=(const SqlSession&) = delete;

  // Runs one statement with values for its parameters, "?1" first, and calls `row` for each row of
  // its answer. `row` does not use the session. REQUIRES: `sql` is one of at most kMaxStatements
  // texts of the program, never made of input.
  [[nodiscard]] absl::Status Query(std::string_view sql, std::initializer_list<SqlValue> values,
                                   absl::FunctionRef<void(const SqlRow& row)> row);
  // The same for one that has no answer.
  [[nodiscard]] absl::Status Execute(std::string_view sql, std::initializer_list<SqlValue> values = {});
  // Rows that the last Execute() inserted, changed or deleted.
  int64_t changes() const;
  static constexpr size_t kMaxStatements = 256;

  // Brings the file to the newest version: steps[i] leads from version i to i + 1.
  [[nodiscard]] absl::Status Migrate(const std::vector<std::string>& steps);
  [[nodiscard]] absl::Status Begin(bool write);
  [[nodiscard]] absl::Status Commit();
  void Rollback();
  // False after an error that ended the transaction by itself.
  bool InTransaction() const;
  // Statements end with DEADLINE_EXCEEDED then.
  void SetDeadline(Deadline deadline) { deadline_ = deadline; }

 private:
  SqlSession() = default;
  absl::Status Configure(const Options& options);
  absl::StatusOr<sqlite3_stmt*> Prepare(std::string_view sql);
  absl::Status RunScript(const std::string& script);
  absl::Status Error(int code, std::string_view what) const;

  std::string path_;
  sqlite3* db_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  Deadline deadline_ = Deadline::Infinite();
};

}  // namespace curtail
