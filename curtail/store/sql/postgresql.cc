// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The threads of SqlDatabase wait here, so that no thread of a model does. The socket is libpq's. These files
// wait for it with poll(2) and a deadline, and libpq reads and writes what is there.
//
//  P1  Statements go out in a pipeline. One whose answer no caller reads, such as the beginning of a transaction, a
//      savepoint, and the preparation of a statement, leaves with the next one that a caller reads: one round trip.
//  P2  A sync ends a part of the pipeline. After an error the server skips the rest of its part, and the first error is
//      that of the caller that waits for the part.
//  P3  The end of a read's transaction is sent and not waited for. Its answer is taken before that of the next statement.
//  P4  A transaction begins on a new connection where the old one has closed: nothing of it can have happened before.
//  P5  An answer that is late, or longer than it may be, ends the connection, since the rest of it would still come.
//  P6  Writers of one schema take turns by a lock of the server, as they do with a file. So a work sees what it
//      changes, and nothing has to be run twice.
//  P7  Integers, text and bytes go in binary form. Others are not used.
//  P8  A connection to one of several servers begins with a write that the standby has acknowledged. So all that the session
//      can see is on both. A primary that died before its standby had a commit shows this commit when it is back, and a
//      session that answered from it would answer what a promotion takes back.
#include "curtail/store/sql/postgresql.h"

#include <libpq-fe.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/store/sql/dialect.h"
#include "curtail/store/sql/postgresql_values.h"

namespace curtail::internal {
namespace {

constexpr char kGone[] = "is gone";
constexpr std::string_view kTakesNoWrites = "25006";
// Runs of a statement that leave together.
constexpr int kMostLooks = 64;  // at a connection between transactions, for an answer that was not waited for
constexpr size_t kMostRuns = 256;

struct ErrorClass {
  std::string_view state;  // the beginning of SQLSTATE; the first that fits counts
  absl::StatusCode code;
};
constexpr std::array<ErrorClass, 16> kErrors = {{
    {"23505", absl::StatusCode::kAlreadyExists},
    {"23", absl::StatusCode::kFailedPrecondition},
    {"22", absl::StatusCode::kInvalidArgument},
    {kTakesNoWrites, absl::StatusCode::kPermissionDenied},  // a read that writes
    {"28", absl::StatusCode::kPermissionDenied},
    {"42501", absl::StatusCode::kPermissionDenied},
    {"53300", absl::StatusCode::kUnavailable},  // too many connections
    {"53", absl::StatusCode::kResourceExhausted},
    {"08", absl::StatusCode::kUnavailable},
    {"40", absl::StatusCode::kUnavailable},
    {"55P03", absl::StatusCode::kUnavailable},  // the lock was not to be had
    {"57014", absl::StatusCode::kDeadlineExceeded},
    {"57", absl::StatusCode::kUnavailable},
    {"58", absl::StatusCode::kUnavailable},
    {"XX001", absl::StatusCode::kDataLoss},
    {"XX002", absl::StatusCode::kDataLoss},
}};

absl::StatusCode CodeOfState(std::string_view state) {
  const auto* const found = std::ranges::find_if(
      kErrors, [state](const ErrorClass& error) { return state.starts_with(error.state); });
  return found == kErrors.end() ? absl::StatusCode::kInternal : found->code;
}

int64_t BytesIn(int socket) {
  int there = 0;
  return ioctl(socket, FIONREAD, &there) == 0 ? there : 0;
}

// Since it connected, some more or fewer while others come; 0 for a Unix socket.
int64_t BytesTakenFrom(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received) - BytesIn(socket);
}

}  // namespace

void PostgresqlSession::FreeResult::operator()(pg_result* result) const { PQclear(result); }

absl::Status PostgresqlSession::Consume(size_t* taken) {
  const int socket = PQsocket(connection_);
  const int64_t there = BytesIn(socket), before = BytesTakenFrom(socket);
  if (*taken + static_cast<size_t>(there) > options_.max_reply_bytes) return TooLong();
  if (PQconsumeInput(connection_) == 0) return Broken(kGone);
  // libpq reads on while bytes come.
  *taken += static_cast<size_t>(std::max(there, BytesTakenFrom(PQsocket(connection_)) - before));
  while (PGnotify* const notice = PQnotifies(connection_)) PQfreemem(notice);  // never asked for
  return absl::OkStatus();
}

absl::Status PostgresqlSession::Flush(Deadline deadline, size_t* taken) {
  while (true) {
    const int left = PQflush(connection_);
    if (left == 0) return absl::OkStatus();
    if (left < 0) return Broken(kGone);
    // It may have to be read before it reads on.
    absl::Status status = Wait(POLLIN | POLLOUT, deadline);
    if (status.ok()) status = Consume(taken);
    if (!status.ok()) return status;
  }
}

absl::StatusOr<PostgresqlSession::Result> PostgresqlSession::Next(Deadline deadline) {
  size_t taken = 0;  // of a result that is not whole yet
  absl::Status status = Flush(deadline, &taken);
  while (status.ok() && PQisBusy(connection_) != 0) {
    status = Wait(POLLIN, deadline);
    if (status.ok()) status = Consume(&taken);
  }
  if (!status.ok()) {
    Drop(/*lost=*/!absl::IsResourceExhausted(status));
    return status;
  }
  return Result(PQgetResult(connection_));
}

absl::Status PostgresqlSession::TooLong() const {
  return absl::ResourceExhaustedError(
      Join("postgresql ", addresses_[at_], " answered with more than ", options_.max_reply_bytes, " bytes"));
}

absl::Status PostgresqlSession::Strange() {
  Drop();
  return absl::UnavailableError(Join("postgresql ", addresses_[at_], " answered what was not asked"));
}

absl::Status PostgresqlSession::Gone() const {
  return absl::UnavailableError(Join("postgresql ", addresses_[at_], " is gone"));
}

absl::Status PostgresqlSession::ErrorOf(const Result& result, std::string_view sql) {
  const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  if (state == nullptr) return Broken(kGone);
  moved_ = moved_ || (several() && writes_ && std::string_view(state) == kTakesNoWrites);
  const absl::StatusCode code = moved_ ? absl::StatusCode::kUnavailable : CodeOfState(state);
  // As SqliteSession::Error(). The server's own words name its files.
  if (code == absl::StatusCode::kResourceExhausted)
    return absl::Status(
        code, Join(options_.schema, ": the database lacks room, memory or connections (", state, ")"));
  return absl::Status(
      code, Join(options_.schema, ": ", LineOf(PQresultErrorMessage(result.get())), " (", sql, ")"));
}

absl::Status PostgresqlSession::TakeAnswer(const Sent& sent, Deadline deadline, size_t* bytes,
                                           absl::FunctionRef<void(const SqlRow& row)> row) {
  absl::Status status;
  while (true) {
    const absl::StatusOr<Result> result = Next(deadline);
    if (!result.ok()) return result.status();
    if (*result == nullptr) return status;
    switch (PQresultStatus(result->get())) {
      case PGRES_SINGLE_TUPLE:
        *bytes += BytesOfRow(result->get());
        if (*bytes > options_.max_reply_bytes) {
          Drop();
          return TooLong();
        }
        row(PostgresqlRow(result->get()));
        break;
      case PGRES_TUPLES_OK:  // the end of the rows, or those that no caller reads
        break;
      case PGRES_COMMAND_OK:
        if (sent.kind == Sent::Kind::kWanted)
          changes_ = std::strtoll(PQcmdTuples(result->get()), nullptr, 10);
        break;
      case PGRES_EMPTY_QUERY:
        status.Update(absl::InternalError("an empty statement"));
        break;
      case PGRES_FATAL_ERROR:
        status.Update(ErrorOf(*result, sent.sql));
        break;
      case PGRES_PIPELINE_ABORTED:  // P2
        status.Update(absl::InternalError(Join("skipped after an error (", sent.sql, ")")));
        break;
      default:  // a server that copies unasked
        return Strange();
    }
  }
}

absl::Status PostgresqlSession::Receive(absl::FunctionRef<void(size_t run, const SqlRow& row)> row) {
  const Deadline deadline = EndOfAnswer();
  absl::Status status;
  size_t bytes = 0, run = 0;
  reading_ = true;
  while (!sent_.empty()) {
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    if (sent.kind == Sent::Kind::kSync) {
      const absl::StatusOr<Result> result = Next(deadline);
      if (!result.ok()) return result.status();
      if (PQresultStatus(result->get()) != PGRES_PIPELINE_SYNC) return Strange();
      if (!sent_.empty()) status = absl::OkStatus();  // P2: no caller waits for that part
      continue;
    }
    const bool wanted = sent.kind == Sent::Kind::kWanted;
    const bool skipped = PQpipelineStatus(connection_) == PQ_PIPELINE_ABORTED;
    if (wanted && !skipped && PQsetSingleRowMode(connection_) == 0) return Lost();
    absl::Status answered = TakeAnswer(sent, deadline, &bytes, [&](const SqlRow& one) { row(run, one); });
    if (connection_ != nullptr && (moved_ || PQstatus(connection_) == CONNECTION_BAD)) Drop(/*lost=*/true);
    if (connection_ == nullptr) return answered;
    if (!answered.ok() && sent.kind == Sent::Kind::kPrepare) statements_.erase(sent.sql);
    status.Update(std::move(answered));
    if (wanted) ++run;
  }
  reading_ = false;
  if (counts_.silent.load(std::memory_order_relaxed)) counts_.silent.store(false, std::memory_order_relaxed);
  switch (PQtransactionStatus(connection_)) {
    case PQTRANS_IDLE:
      transaction_ = Transaction::kNone;
      break;
    case PQTRANS_INTRANS:
      transaction_ = Transaction::kOpen;
      break;
    case PQTRANS_INERROR:
      transaction_ = Transaction::kFailed;
      break;
    default:
      Drop(/*lost=*/true);
  }
  return status;
}

absl::Status PostgresqlSession::Send(std::string_view sql, std::span<const SqlValue> values, bool wanted) {
  if (connection_ == nullptr) return Gone();
  const PostgresqlParameters parameters(values);
  auto known = statements_.find(sql);
  if (known == statements_.end()) {
    if (statements_.size() >= kMaxStatements) {
      return absl::InternalError(Join("more than ", kMaxStatements, " statements: are values part of them?"));
    }
    known = statements_.emplace(sql, Join("s", prepared_++)).first;
    if (PQsendPrepare(connection_, known->second.c_str(), PostgresqlOf(sql).c_str(), parameters.count(),
                      parameters.types()) == 0) {
      return Lost();
    }
    sent_.push_back({Sent::Kind::kPrepare, std::string(sql)});
  }
  if (PQsendQueryPrepared(connection_, known->second.c_str(), parameters.count(), parameters.values(),
                          parameters.lengths(), parameters.formats(), /*resultFormat=*/1) == 0) {
    return Lost();
  }
  sent_.push_back({wanted ? Sent::Kind::kWanted : Sent::Kind::kUnwanted, std::string(sql)});
  return absl::OkStatus();
}

absl::Status PostgresqlSession::Sync() {
  if (PQpipelineSync(connection_) == 0) return Lost();
  sent_.push_back({Sent::Kind::kSync, {}});
  return absl::OkStatus();
}

absl::Status PostgresqlSession::QueryEach(std::string_view sql, size_t width,
                                          std::span<const SqlValue> values,
                                          absl::FunctionRef<void(size_t run, const SqlRow& row)> row) {
  const size_t runs = width == 0 ? 1 : values.size() / width;
  for (size_t first = 0; first < runs; first += kMostRuns) {
    absl::Status status;
    for (size_t i = first; status.ok() && i < std::min(runs, first + kMostRuns); ++i) {
      status = Send(sql, values.subspan(i * width, width), /*wanted=*/true);
    }
    if (status.ok()) status = Sync();
    if (status.ok()) status = Receive([&](size_t run, const SqlRow& one) { row(first + run, one); });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PostgresqlSession::Later(std::string_view sql) {
  if (transaction_ == Transaction::kFailed)
    return absl::InternalError(Join(options_.schema, ": a statement has failed before (", sql, ")"));
  return Send(sql, {}, /*wanted=*/false);
}

absl::Status PostgresqlSession::RunScript(const std::string& script) {
  if (connection_ == nullptr) return Gone();
  absl::Status before = Sync();
  if (before.ok()) before = Receive([](size_t, const SqlRow&) {});
  if (!before.ok()) return before;
  if (PQexitPipelineMode(connection_) == 0 || PQsendQuery(connection_, script.c_str()) == 0) return Lost();
  size_t bytes = 0;
  absl::Status status =
      TakeAnswer({Sent::Kind::kUnwanted, script}, EndOfAnswer(), &bytes, [](const SqlRow&) {});
  if (connection_ != nullptr && PQenterPipelineMode(connection_) == 0) return Lost();
  return status;
}

absl::Status PostgresqlSession::Migrate(const std::vector<std::string>& steps) {
  if (absl::Status status = Begin(/*write=*/true); !status.ok()) return status;
  absl::Status status =
      RunScript(Join("CREATE SCHEMA IF NOT EXISTS \"", options_.schema,
                     "\"; CREATE TABLE IF NOT EXISTS schema_version(version BIGINT NOT NULL)"));
  size_t version = 0;
  if (status.ok()) {
    status = Query("SELECT coalesce(max(version), 0) FROM schema_version", {},
                   [&](const SqlRow& row) { version = static_cast<size_t>(row.Unsigned(0)); });
  }
  if (status.ok() && version > steps.size()) {
    status =
        absl::FailedPreconditionError(Join("the schema ", options_.schema, " has version ", version,
                                           ", and this program knows ", steps.size(), "; start a newer one"));
  }
  for (; status.ok() && version < steps.size(); ++version) {
    status = RunScript(PostgresqlOf(steps[version]));
    if (status.ok()) {
      status = RunScript(
          Join("DELETE FROM schema_version; INSERT INTO schema_version VALUES (", version + 1, ")"));
    }
  }
  if (status.ok()) return Commit();
  Rollback();
  return status;
}

void PostgresqlSession::LookForItsEnd() {
  pollfd entry{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
  // An idle server says nothing unless it closes the connection.
  for (int looks = 0; connection_ != nullptr && poll(&entry, 1, 0) != 0; ++looks) {
    if (looks == kMostLooks || reading_ || sent_.empty() || PQconsumeInput(connection_) == 0) Drop();
  }
}

absl::Status PostgresqlSession::Begin(bool write) {
  if (connection_ != nullptr) LookForItsEnd();  // P4
  absl::Status status;
  if (connection_ == nullptr) {
    if (several() && !search_) search_ = Deadline::In(options_.patience);
    status = several() ? ConnectUntil(*search_) : Connect();
  }
  if (!status.ok()) return status;
  search_.reset();
  transaction_ = Transaction::kOpen;
  writes_ = write;
  if (!write) return Later("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  status = Later("BEGIN");
  if (status.ok())
    status = Later(Join("SELECT 1 FROM pg_advisory_xact_lock(hashtext('", options_.schema, "'))"));
  return status;
}

absl::Status PostgresqlSession::Commit() {
  absl::Status status = Later("COMMIT");
  if (status.ok()) status = Sync();
  if (status.ok()) status = Receive([](size_t, const SqlRow&) {});
  if (!status.ok()) Rollback();
  return status;
}

void PostgresqlSession::Rollback() {
  if (!InTransaction()) return;
  SetDeadline(Deadline::Infinite());
  if (!Send("ROLLBACK", {}, /*wanted=*/false).ok() || !Sync().ok()) return Drop();
  transaction_ = Transaction::kNone;
}

bool PostgresqlSession::InTransaction() {
  if (reading_) Drop();  // an exception has left an answer
  return transaction_ != Transaction::kNone;
}

}  // namespace curtail::internal
