// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The threads of SqlDatabase wait here, so that no thread of a model does. The socket is libpq's. This file
// waits for it with poll(2) and a deadline, and libpq reads and writes what is there.
//
//  - A transaction begins on a new connection where the old one has closed: nothing of it can have happened before.
//  - An answer that is late, or longer than it may be, ends the connection, since the rest of it would still come.
//  - Writers of one schema take turns by a lock of the server, as they do with a file. So a work sees what it
//    changes, and nothing has to be run twice.
//  - Integers, text and bytes go in binary form. Others are not used.
#include "curtail/store/sql/postgresql.h"

#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/store/sql/dialect.h"

namespace curtail::internal {
namespace {

// Of PostgreSQL's catalogue, which libpq's headers do not have.
constexpr Oid kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25, kBytes = 17;
constexpr char kGone[] = "is gone";
constexpr Nanos kPauseOfConnect = std::chrono::milliseconds(50);

struct ErrorClass {
  std::string_view state;  // the beginning of SQLSTATE; the first that fits counts
  absl::StatusCode code;
};
constexpr std::array<ErrorClass, 16> kErrors = {{
    {"23505", absl::StatusCode::kAlreadyExists},
    {"23", absl::StatusCode::kFailedPrecondition},
    {"22", absl::StatusCode::kInvalidArgument},
    {"25006", absl::StatusCode::kPermissionDenied},  // a read that writes
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

std::string LineOf(const char* message) {
  std::string line = message == nullptr ? "" : message;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

uint64_t NumberAt(const char* bytes, int size) {
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
size_t BytesOfRow(const PGresult* result) {
  size_t bytes = 32;
  for (int column = 0; column < PQnfields(result); ++column) {
    bytes += static_cast<size_t>(PQgetlength(result, 0, column));
  }
  return bytes;
}

// Parameters in binary form.
class Parameters {
 public:
  explicit Parameters(std::initializer_list<SqlValue> values) : numbers_(values.size()) {
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

struct Place {
  std::string host, port;
};

// Where libpq finds the server. None: the address is none.
std::optional<Place> PlaceOf(std::string_view address) {
  constexpr std::string_view kUnix = "unix:", kSocket = "/.s.PGSQL.";
  if (!address.starts_with(kUnix)) {
    const size_t colon = address.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    std::string_view host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return Place{std::string(host), std::string(address.substr(colon + 1))};
  }
  std::string path(address.substr(kUnix.size()));
  std::array<char, 4096> target;
  if (const ssize_t size = readlink(path.c_str(), target.data(), target.size()); size > 0) {
    const std::string_view to(target.data(), static_cast<size_t>(size));
    path = to.starts_with('/') ? std::string(to) : Join(path.substr(0, path.rfind('/') + 1), to);
  }
  const size_t at = path.rfind(kSocket);
  if (at == std::string::npos || at == 0) return std::nullopt;
  return Place{path.substr(0, at), path.substr(at + kSocket.size())};
}

bool IsSchema(std::string_view name) {
  return !name.empty() && name.size() < 64 &&
         std::ranges::all_of(
             name, [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

}  // namespace

void PostgresqlSession::FreeResult::operator()(pg_result* result) const { PQclear(result); }

absl::StatusOr<std::unique_ptr<SqlSession>> PostgresqlSession::Open(const Options& options) {
  if (!IsSchema(options.schema)) return absl::InvalidArgumentError(Join(options.schema, " is no schema"));
  std::unique_ptr<PostgresqlSession> session(new PostgresqlSession(options));
  const Deadline deadline = Deadline::In(options.patience);
  while (true) {
    absl::Status status = session->Connect();
    if (status.ok()) return session;
    if (!absl::IsUnavailable(status) || deadline.Expired()) return status;
    poll(nullptr, 0, static_cast<int>(InMillis(kPauseOfConnect)));  // it starts; nothing tells when it serves
  }
}

PostgresqlSession::~PostgresqlSession() { Drop(); }

void PostgresqlSession::Drop() {
  PQfinish(connection_);
  connection_ = nullptr;
  statements_.clear();
}

absl::Status PostgresqlSession::Broken(std::string_view how) const {
  const std::string reason = LineOf(PQerrorMessage(connection_));
  return absl::UnavailableError(Join("postgresql ", options_.address, " ", how, ": ", reason));
}

absl::Status PostgresqlSession::Lost(std::string_view how) {
  absl::Status status = Broken(how);
  Drop();
  return status;
}

absl::Status PostgresqlSession::Connect() {
  Drop();
  const std::optional<Place> place = PlaceOf(options_.address);
  if (!place.has_value()) {
    return absl::InvalidArgumentError(Join("no address of a PostgreSQL server: ", options_.address,
                                           "; give HOST:PORT or unix:DIR/.s.PGSQL.5432"));
  }
  const char* const database = std::getenv("PGDATABASE");
  const int64_t patience_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.patience).count();
  const std::string settings =
      Join("-c search_path=", options_.schema, " -c lock_timeout=", patience_ms,
           " -c client_connection_check_interval=1000", options_.sync ? "" : " -c synchronous_commit=off");
  const std::array<const char*, 8> keys = {"host",    "port",       "dbname",           "client_encoding",
                                           "options", "gssencmode", "application_name", nullptr};
  const std::array<const char*, 8> values = {place->host.c_str(),
                                             place->port.c_str(),
                                             database == nullptr ? "postgres" : database,
                                             "UTF8",
                                             settings.c_str(),
                                             "disable",
                                             "curtail",
                                             nullptr};
  connection_ = PQconnectStartParams(keys.data(), values.data(), /*expand_dbname=*/0);
  if (connection_ == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  PQsetNoticeReceiver(connection_, [](void*, const PGresult*) {}, nullptr);
  const Deadline deadline = EndOfAnswer();
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
    if (PQstatus(connection_) == CONNECTION_BAD || next == PGRES_POLLING_FAILED)
      return Lost("cannot be reached");
    if (absl::Status waited = Wait(next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline);
        !waited.ok()) {
      Drop();
      return waited;
    }
    next = PQconnectPoll(connection_);
  }
  return PQsetnonblocking(connection_, 1) == 0 ? absl::OkStatus() : Lost();
}

Deadline PostgresqlSession::EndOfAnswer() const {
  return std::min(deadline_, Deadline::In(2 * options_.patience));  // the server may wait for a lock before
}

absl::Status PostgresqlSession::Wait(short events, Deadline deadline) const {
  pollfd entry{.fd = PQsocket(connection_), .events = events, .revents = 0};
  while (true) {
    const Nanos left = deadline.Remaining();
    const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    const int ready = ppoll(&entry, 1, &timeout, nullptr);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::UnavailableError("poll failed");
    if (ready < 0 || !deadline.Expired()) continue;
    const std::string late = Join("postgresql ", options_.address, " did not answer in time");
    if (deadline_.Expired()) return absl::DeadlineExceededError(late);
    return absl::UnavailableError(late);
  }
}

absl::Status PostgresqlSession::Consume() {
  if (PQconsumeInput(connection_) == 0) return Broken(kGone);
  while (PGnotify* const notice = PQnotifies(connection_)) PQfreemem(notice);  // never asked for
  return absl::OkStatus();
}

absl::Status PostgresqlSession::Flush(Deadline deadline) {
  while (true) {
    const int left = PQflush(connection_);
    if (left == 0) return absl::OkStatus();
    if (left < 0) return Broken(kGone);
    // It may have to be read before it reads on.
    absl::Status status = Wait(POLLIN | POLLOUT, deadline);
    if (status.ok()) status = Consume();
    if (!status.ok()) return status;
  }
}

absl::StatusOr<PostgresqlSession::Result> PostgresqlSession::Next(Deadline deadline) {
  absl::Status status = Flush(deadline);
  while (status.ok() && PQisBusy(connection_) != 0) {
    status = Wait(POLLIN, deadline);
    if (status.ok()) status = Consume();
  }
  if (!status.ok()) {
    Drop();
    return status;
  }
  return Result(PQgetResult(connection_));
}

absl::Status PostgresqlSession::ErrorOf(const Result& result, std::string_view sql) {
  const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  if (state == nullptr) return Broken(kGone);
  return absl::Status(CodeOfState(state), Join(options_.schema, ": ",
                                               LineOf(PQresultErrorMessage(result.get())), " (", sql, ")"));
}

absl::Status PostgresqlSession::Finish(std::string_view sql, absl::FunctionRef<void(const SqlRow& row)> row) {
  const Deadline deadline = EndOfAnswer();
  absl::Status status;
  size_t bytes = 0;
  while (true) {
    absl::StatusOr<Result> result = Next(deadline);
    if (!result.ok()) return result.status();
    if (*result == nullptr) break;
    switch (PQresultStatus(result->get())) {
      case PGRES_SINGLE_TUPLE:
        bytes += BytesOfRow(result->get());
        if (bytes > options_.max_reply_bytes) {
          Drop();
          return absl::ResourceExhaustedError(Join("postgresql ", options_.address,
                                                   " answered with more than ", options_.max_reply_bytes,
                                                   " bytes"));
        }
        row(PostgresqlRow(result->get()));
        break;
      case PGRES_TUPLES_OK:  // the end of the rows
        break;
      case PGRES_COMMAND_OK:
        changes_ = std::strtoll(PQcmdTuples(result->get()), nullptr, 10);
        break;
      case PGRES_EMPTY_QUERY:
        status.Update(absl::InternalError("an empty statement"));
        break;
      case PGRES_FATAL_ERROR:
        status.Update(ErrorOf(*result, sql));
        break;
      default:  // a server that copies unasked
        Drop();
        return absl::UnavailableError(Join("postgresql ", options_.address, " answered what was not asked"));
    }
  }
  if (PQstatus(connection_) == CONNECTION_BAD) Drop();
  return status;
}

absl::StatusOr<std::string> PostgresqlSession::Prepare(std::string_view sql,
                                                       std::initializer_list<SqlValue> values) {
  if (const auto known = statements_.find(sql); known != statements_.end()) return known->second;
  if (statements_.size() >= kMaxStatements) {
    return absl::InternalError(Join("more than ", kMaxStatements, " statements: are values part of them?"));
  }
  const std::string name = Join("s", statements_.size());
  const Parameters parameters(values);
  if (PQsendPrepare(connection_, name.c_str(), PostgresqlOf(sql).c_str(), parameters.count(),
                    parameters.types()) == 0) {
    return Lost();
  }
  absl::Status prepared = Finish(sql, [](const SqlRow&) {});
  if (!prepared.ok()) return prepared;
  statements_.emplace(sql, name);
  return name;
}

absl::Status PostgresqlSession::Query(std::string_view sql, std::initializer_list<SqlValue> values,
                                      absl::FunctionRef<void(const SqlRow& row)> row) {
  if (connection_ == nullptr)
    return absl::UnavailableError(Join("postgresql ", options_.address, " is gone"));
  const absl::StatusOr<std::string> name = Prepare(sql, values);
  if (!name.ok()) return name.status();
  const Parameters parameters(values);
  if (PQsendQueryPrepared(connection_, name->c_str(), parameters.count(), parameters.values(),
                          parameters.lengths(), parameters.formats(), /*resultFormat=*/1) == 0 ||
      PQsetSingleRowMode(connection_) == 0) {
    return Lost();
  }
  return Finish(sql, row);
}

absl::Status PostgresqlSession::RunScript(const std::string& script) {
  if (connection_ == nullptr)
    return absl::UnavailableError(Join("postgresql ", options_.address, " is gone"));
  if (PQsendQuery(connection_, script.c_str()) == 0) return Lost();
  return Finish(script, [](const SqlRow&) {});
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

absl::Status PostgresqlSession::Begin(bool write) {
  const std::string begin =
      write ? Join("BEGIN; SELECT 1 FROM pg_advisory_xact_lock(hashtext('", options_.schema, "'))")
            : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  if (connection_ != nullptr) {
    // An idle server says nothing unless it closes the connection.
    pollfd entry{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, 0) != 0) Drop();
  }
  absl::Status status = connection_ == nullptr ? Connect() : absl::OkStatus();
  if (status.ok()) status = RunScript(begin);
  if (!status.ok()) Rollback();
  return status;
}

absl::Status PostgresqlSession::Commit() {
  absl::Status status = Query("COMMIT", {}, [](const SqlRow&) {});
  if (!status.ok()) Rollback();
  return status;
}

void PostgresqlSession::Rollback() {
  if (!InTransaction()) return;
  SetDeadline(Deadline::Infinite());
  if (!Query("ROLLBACK", {}, [](const SqlRow&) {}).ok()) Drop();
}

bool PostgresqlSession::InTransaction() {
  if (connection_ == nullptr) return false;
  switch (PQtransactionStatus(connection_)) {
    case PQTRANS_INTRANS:
    case PQTRANS_INERROR:
      return true;
    case PQTRANS_ACTIVE:  // an exception has left a statement
      Drop();
      return false;
    default:
      return false;
  }
}

}  // namespace curtail::internal
