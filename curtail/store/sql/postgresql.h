// SPDX-License-Identifier: Apache-2.0
//
// postgresql.h - a SqlSession on a schema of a PostgreSQL server, by libpq's asynchronous calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/connection_counts.h"
#include "curtail/store/sql/session.h"

struct pg_conn;
struct pg_result;

namespace curtail::internal {

// A PostgresqlSession is one connection, and makes a new one when that has broken. Every wait ends: at the deadline, or
// when the server does not answer in Options::patience. For one thread at a time, which sleeps while it waits.
//
// With several addresses it connects to the server that takes writes, and reads there, too. It looks again when the
// connection breaks, or the server refuses a write because it takes none (SQLSTATE 25006).
class PostgresqlSession final : public SqlSession {
 public:
  struct Options {
    // "unix:PATH" or "HOST:PORT", or several with commas between them: a primary and its standbys, in any order. PATH is
    // a socket as servers make it, DIR/.s.PGSQL.NUMBER, or a link to one. What else libpq wants to know is in its
    // environment: PGUSER, PGPASSWORD, PGDATABASE (postgres), PGSSLMODE. PGPASSWORD_FILE names a file that has the
    // password alone.
    std::string address;
    std::string schema;
    Nanos patience = std::chrono::seconds(5);
    // False: a loss of power may lose what was acknowledged. The end of a primary that has a standby does not.
    bool sync = true;
    // Of the rows that answer one call, and of one row, which libpq holds whole.
    size_t max_reply_bytes = 16u << 20;
  };
  // Connects; waits for a server that starts, and six times as long for one of several. Errors: INVALID_ARGUMENT for the address or the schema (lower-case
  // letters, digits and _), UNAVAILABLE, PERMISSION_DENIED.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SqlSession>> Open(const Options& options);
  ~PostgresqlSession() override;
  PostgresqlSession(const PostgresqlSession&) = delete;
  PostgresqlSession& operator=(const PostgresqlSession&) = delete;

  [[nodiscard]] absl::Status QueryEach(std::string_view sql, size_t width, std::span<const SqlValue> values,
                                       absl::FunctionRef<void(size_t run, const SqlRow& row)> row) override;
  [[nodiscard]] absl::Status Later(std::string_view sql) override;
  int64_t changes() const override { return changes_; }
  [[nodiscard]] absl::Status Migrate(const std::vector<std::string>& steps) override;
  // Connects again where that is needed; to one of several servers for as long as Options::patience, since one of them
  // may become the primary. The first statement has the errors of the beginning. One that writes waits for the others of
  // this schema, in all processes.
  [[nodiscard]] absl::Status Begin(bool write) override;
  // UNAVAILABLE: it may have happened.
  [[nodiscard]] absl::Status Commit() override;
  void Rollback() override;
  bool InTransaction() override;

 private:
  explicit PostgresqlSession(const Options& options);

  struct FreeResult {
    void operator()(pg_result* result) const;
  };
  using Result = std::unique_ptr<pg_result, FreeResult>;

  absl::Status Connect();
  // Connects, again and again until `end`.
  absl::Status ConnectUntil(Deadline end);
  bool several() const { return addresses_.size() > 1; }
  // Makes a connection to one of the servers, the present one first.
  absl::Status Reach();
  absl::Status ReachPresent();
  // Lets libpq make the connection, or fail to. Errors: DEADLINE_EXCEEDED without a message, UNAVAILABLE.
  absl::Status Handshake(Deadline deadline);
  // P8. Errors: UNAVAILABLE.
  absl::Status ProveStandby();
  // Ends the connection. `lost`: it broke, or was silent for too long, while a caller waited for an answer.
  void Drop(bool lost = false);
  // By what libpq says of the connection.
  absl::Status Broken(std::string_view how) const;
  // The same, and drops it.
  absl::Status Lost(std::string_view how = "is gone");
  absl::Status ErrorOf(const Result& result, std::string_view sql);
  // Waits for POLL* `events`. Errors: those of the end of the wait.
  absl::Status Wait(short events, Deadline deadline) const;
  // `status`; DEADLINE_EXCEEDED becomes the error of a server that is late.
  absl::Status OrLate(absl::Status status) const;
  Deadline EndOfAnswer() const;
  absl::Status TooLong() const;
  absl::Status Gone() const;
  absl::Status Strange();
  // Drops the connection if the server has closed it.
  void LookForItsEnd();

  // A part of the pipeline that was sent, and not answered yet.
  struct Sent {
    enum class Kind : uint8_t { kPrepare, kUnwanted, kWanted, kSync };
    Kind kind;
    std::string sql;
  };
  // Queues a statement; what is not `wanted` runs without a look at its rows.
  absl::Status Send(std::string_view sql, std::span<const SqlValue> values, bool wanted);
  // Ends a part of the pipeline, and sends it as far as the socket takes it.
  absl::Status Sync();
  // Takes the answers to all that was sent. The runs are those of what is wanted. Returns the first error since the sync
  // before the last; errors of the connection drop it.
  absl::Status Receive(absl::FunctionRef<void(size_t run, const SqlRow& row)> row);
  absl::Status TakeAnswer(const Sent& sent, Deadline deadline, size_t* bytes,
                          absl::FunctionRef<void(const SqlRow& row)> row);
  // Sends what libpq holds, and takes the next result; null at the end of the answer. Errors drop the connection.
  absl::StatusOr<Result> Next(Deadline deadline);
  // `*taken` is how many bytes came since a result was whole. RESOURCE_EXHAUSTED: they are too many.
  absl::Status Flush(Deadline deadline, size_t* taken);
  absl::Status Consume(size_t* taken);
  // Statements with semicolons between them, not prepared; without their answers.
  absl::Status RunScript(const std::string& script);

  // Immutable after construction.
  const Options options_;
  const std::vector<std::string> addresses_;
  TargetConnections& counts_;  // thread-safe by itself

  size_t at_ = 0;  // of the addresses, the present one
  pg_conn* connection_ = nullptr;
  std::weak_ptr<void> computes_;    // a thread that was left with an earlier connection, until it ends
  std::optional<Deadline> search_;  // for a primary, since Begin() missed it
  bool writes_ = false;             // the transaction
  bool moved_ = false;              // the server said that it takes no writes
  std::map<std::string, std::string, std::less<>> statements_;  // names of the prepared
  uint64_t prepared_ = 0;                                       // numbers the names
  std::deque<Sent> sent_;
  enum class Transaction : uint8_t { kNone, kOpen, kFailed };
  Transaction transaction_ = Transaction::kNone;  // when all that was sent is done
  bool was_there_ = false;                        // a connection was made
  bool stands_ = false;                           // ... and is counted
  bool reading_ = false;                          // Receive() runs, or was left by an exception
  int64_t changes_ = 0;
};

}  // namespace curtail::internal
