// SPDX-License-Identifier: Apache-2.0
//
// sqlite.h - a SqlSession on an SQLite file.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/store/sql/session.h"

struct sqlite3;
struct sqlite3_stmt;

namespace curtail::internal {

// A SqliteSession blocks its thread while SQLite works. For one thread at a time.
class SqliteSession final : public SqlSession {
 public:
  struct Options {
    std::string path;
    Nanos busy_timeout = std::chrono::seconds(5);
    uint64_t max_bytes = 0;
    bool sync = true;
    bool writes = true;
  };
  // Opens the file, or makes it, private to the user.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqlSession>> Open(const Options& options);
  ~SqliteSession() override;
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;

  [[nodiscard]] absl::Status QueryEach(std::string_view sql, size_t width, std::span<const SqlValue> values,
                                       absl::FunctionRef<void(size_t run, const SqlRow& row)> row) override;
  int64_t changes() const override;
  [[nodiscard]] absl::Status Migrate(const std::vector<std::string>& steps) override;
  [[nodiscard]] absl::Status SetSync(bool sync) override;
  [[nodiscard]] absl::Status Begin(bool write) override;
  [[nodiscard]] absl::Status Commit() override;
  void Rollback() override;
  bool InTransaction() override;

 private:
  SqliteSession() = default;
  absl::Status Configure(const Options& options);
  absl::StatusOr<sqlite3_stmt*> Prepare(std::string_view sql);
  absl::Status RunOnce(sqlite3_stmt* prepared, std::string_view sql, std::span<const SqlValue> values,
                       absl::FunctionRef<void(const SqlRow& row)> row);
  absl::Status RunScript(const std::string& script);
  absl::Status Error(int code, std::string_view what) const;

  bool may_sync_ = false;  // immutable after Configure()
  bool syncs_ = false;
  std::string name_;  // of the file, without its folder: clients see the texts of errors
  sqlite3* db_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

}  // namespace curtail::internal
