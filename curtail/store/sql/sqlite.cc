// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/sql/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

// Instructions of SQLite's machine between two looks at the clock: some 100 us.
constexpr int kStepsPerLook = 10'000;
constexpr int kWalBytes = 64 << 20;

absl::StatusCode CodeOfSqlite(int code) {
  switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return absl::StatusCode::kAlreadyExists;
    case SQLITE_IOERR_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kFailedPrecondition;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kDeadlineExceeded;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
      return absl::StatusCode::kUnavailable;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_TOOBIG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

int Bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
  switch (value.kind()) {
    case SqlValue::Kind::kInteger:
      return sqlite3_bind_int64(statement, index, value.integer());
    case SqlValue::Kind::kText:
      return sqlite3_bind_text64(statement, index, value.text().data(), value.text().size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    case SqlValue::Kind::kBytes:
      return sqlite3_bind_blob64(statement, index, value.text().data(), value.text().size(), SQLITE_STATIC);
  }
  return SQLITE_MISUSE;
}

class SqliteRow final : public SqlRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t Integer(int column) const override { return sqlite3_column_int64(statement_, column); }
  std::string_view Text(int column) const override {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string_view() : std::string_view(bytes, static_cast<size_t>(size));
  }

 private:
  sqlite3_stmt* const statement_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqlSession>> SqliteSession::Open(const Options& options) {
  const std::string name = options.path.substr(options.path.rfind('/') + 1);
  // SQLite would make it readable to all; its other files get the mode of this one. A file that is there is not opened: by
  // close() the kernel would forget the locks of all connections of this process, and another process, as it closes the
  // file, would remove the log that these still write.
  const int fd = open(options.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && (errno != EEXIST || access(options.path.c_str(), R_OK | W_OK) != 0)) {
    return absl::PermissionDeniedError(
        Join(name, " cannot be opened: ", std::generic_category().message(errno)));
  }
  if (fd >= 0) close(fd);
  std::unique_ptr<SqliteSession> session(new SqliteSession);
  session->name_ = name;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(options.path.c_str(), &session->db_, kFlags, nullptr);
  if (code != SQLITE_OK) return session->Error(code, "open");
  if (absl::Status status = session->Configure(options); !status.ok()) return status;
  return session;
}

absl::Status SqliteSession::Configure(const Options& options) {
  sqlite3_busy_timeout(db_, static_cast<int>(InMillis(options.busy_timeout)));
  may_sync_ = syncs_ = options.sync;
  std::string script = Join("PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = ", kWalBytes,
                            "; PRAGMA synchronous = ", options.sync ? "FULL" : "NORMAL",
                            "; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;"
                            "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;");
  if (!options.writes) script += "PRAGMA query_only = ON;";
  if (absl::Status status = RunScript(script); !status.ok()) return status;
  if (!options.writes) {
    sqlite3_progress_handler(
        db_, kStepsPerLook,
        [](void* self) -> int { return static_cast<SqliteSession*>(self)->deadline_.Expired() ? 1 : 0; },
        this);
  }
  if (options.max_bytes == 0) return absl::OkStatus();
  uint64_t page_bytes = 4096;
  absl::Status status =
      Query("PRAGMA page_size", {}, [&](const SqlRow& row) { page_bytes = row.Unsigned(0); });
  if (status.ok()) status = RunScript(Join("PRAGMA max_page_count = ", options.max_bytes / page_bytes));
  return status;
}

SqliteSession::~SqliteSession() {
  for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

absl::Status SqliteSession::Error(int code, std::string_view what) const {
  const std::string_view reason = db_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db_);
  const absl::StatusCode status = CodeOfSqlite(code);
  // Services hand this on to their clients, who are to wait: without the statement.
  if (status == absl::StatusCode::kResourceExhausted) return absl::Status(status, Join(name_, ": ", reason));
  return absl::Status(status, Join(name_, ": ", reason, " (", what, ")"));
}

absl::StatusOr<sqlite3_stmt*> SqliteSession::Prepare(std::string_view sql) {
  if (const auto known = statements_.find(sql); known != statements_.end()) return known->second;
  if (statements_.size() >= kMaxStatements) {
    return absl::InternalError(Join("more than ", kMaxStatements, " statements: are values part of them?"));
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Error(code, sql);
  if (statement == nullptr) return absl::InternalError("an empty statement");
  statements_.emplace(sql, statement);
  return statement;
}

absl::Status SqliteSession::QueryEach(std::string_view sql, size_t width, std::span<const SqlValue> values,
                                      absl::FunctionRef<void(size_t run, const SqlRow& row)> row) {
  const absl::StatusOr<sqlite3_stmt*> prepared = Prepare(sql);
  absl::Status status = prepared.status();
  const size_t runs = width == 0 ? 1 : values.size() / width;
  for (size_t run = 0; status.ok() && run < runs; ++run) {
    status = RunOnce(*prepared, sql, values.subspan(run * width, width),
                     [&](const SqlRow& one) { row(run, one); });
  }
  return status;
}

absl::Status SqliteSession::RunOnce(sqlite3_stmt* prepared, std::string_view sql,
                                    std::span<const SqlValue> values,
                                    absl::FunctionRef<void(const SqlRow& row)> row) {
  // However it ends, it holds no lock, and no value of the caller.
  const auto reset = [](sqlite3_stmt* statement) {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  };
  const std::unique_ptr<sqlite3_stmt, decltype(reset)> statement(prepared, reset);
  int index = 0;
  for (const SqlValue& value : values) {
    if (const int code = Bind(statement.get(), ++index, value); code != SQLITE_OK) return Error(code, sql);
  }
  if (index != sqlite3_bind_parameter_count(statement.get())) {
    return absl::InternalError(Join("a wrong number of values: ", sql));
  }
  while (true) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) return absl::OkStatus();
    if (code != SQLITE_ROW) return Error(code, sql);
    row(SqliteRow(statement.get()));
  }
}

int64_t SqliteSession::changes() const { return sqlite3_changes64(db_); }

absl::Status SqliteSession::RunScript(const std::string& script) {
  const int code = sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, script);
}

absl::Status SqliteSession::Migrate(const std::vector<std::string>& steps) {
  // The lock is held from the look at the version on: another process may be at it, too.
  if (absl::Status status = Begin(/*write=*/true); !status.ok()) return status;
  size_t version = 0;
  absl::Status status = Query("PRAGMA user_version", {},
                              [&](const SqlRow& row) { version = static_cast<size_t>(row.Unsigned(0)); });
  if (status.ok() && version > steps.size()) {
    status = absl::FailedPreconditionError(Join(name_, " has version ", version,
                                                " of its schema, and this program knows ", steps.size(),
                                                "; start a newer one"));
  }
  for (; status.ok() && version < steps.size(); ++version) status = RunScript(steps[version]);
  if (status.ok()) status = RunScript(Join("PRAGMA user_version = ", version));
  if (status.ok()) return Commit();
  Rollback();
  return status;
}

// As a script: SQLite obeys this pragma when it prepares it, so one from statements_ would change nothing.
absl::Status SqliteSession::SetSync(bool sync) {
  if (!may_sync_ || sync == syncs_) return absl::OkStatus();
  absl::Status status = RunScript(Join("PRAGMA synchronous = ", sync ? "FULL" : "NORMAL"));
  if (status.ok()) syncs_ = sync;
  return status;
}

absl::Status SqliteSession::Begin(bool write) { return Execute(write ? "BEGIN IMMEDIATE" : "BEGIN"); }

absl::Status SqliteSession::Commit() {
  absl::Status status = Execute("COMMIT");
  if (!status.ok()) Rollback();
  return status;
}

void SqliteSession::Rollback() {
  if (InTransaction()) Execute("ROLLBACK").IgnoreError();  // fails only if there is nothing to undo
}

bool SqliteSession::InTransaction() { return sqlite3_get_autocommit(db_) == 0; }

}  // namespace curtail::internal
