// SPDX-License-Identifier: Apache-2.0
//
// A session's connection: how it is made, how it waits, how it ends. postgresql.cc has what is said on it.
#include <libpq-fe.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

#include "curtail/base/boundary.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql.h"
#include "curtail/store/sql/postgresql_values.h"

namespace curtail::internal {
namespace {

constexpr size_t kMaxPassword = 64u << 10;

// The password of the file that PGPASSWORD_FILE names; empty: there is none, and libpq takes its own. Errors:
// FAILED_PRECONDITION.
absl::StatusOr<std::string> PasswordOfFile() {
  const char* const file = std::getenv("PGPASSWORD_FILE");
  if (file == nullptr || *file == '\0') return std::string();
  absl::StatusOr<std::string> password = ReadWholeFile(file, kMaxPassword);
  if (!password.ok())
    return absl::FailedPreconditionError(Join("PGPASSWORD_FILE: ", Message(password.status())));
  while (password->ends_with('\n') || password->ends_with('\r')) password->pop_back();
  if (password->empty()) return absl::FailedPreconditionError(Join("PGPASSWORD_FILE: ", file, " is empty"));
  return password;
}

// The remedy for a connection that no repetition makes; empty: it may be made later.
std::string_view RemedyFor(std::string_view reason) {
  if (reason.find("password authentication failed") != reason.npos ||
      reason.find("no password supplied") != reason.npos)
    return "; PGPASSWORD_FILE or PGPASSWORD has the password, PGUSER the user";
  if (reason.find("certificate") != reason.npos)
    return "; PGSSLROOTCERT names the file of the authority, PGSSLMODE says how much is checked";
  return "";
}

constexpr Nanos kPauseOfConnect = std::chrono::milliseconds(50);
// Ahead of the end of a wait in which libpq may compute.
constexpr Nanos kGraceOfConnect = std::chrono::milliseconds(50);

// A connection that libpq makes on a thread of its own.
struct Attempt {
  std::promise<absl::Status> result;
  std::atomic<pid_t> thread{0};
  std::atomic<bool> one_left{false};  // the caller or the thread; the other one ends the connection
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

std::vector<std::string> AddressesOf(std::string_view list) {
  std::vector<std::string> addresses;
  for (size_t comma = 0; comma != std::string_view::npos;
       list.remove_prefix(std::min(list.size(), comma + 1))) {
    comma = list.find(',');
    addresses.emplace_back(list.substr(0, comma));
  }
  return addresses;
}

// Errors: DEADLINE_EXCEEDED, also if there is an event, as a server may send without an end; UNAVAILABLE.
absl::Status AwaitEvents(const pg_conn* connection, short events, Deadline deadline) {
  pollfd entry{.fd = PQsocket(connection), .events = events, .revents = 0};
  while (true) {
    const Nanos left = deadline.Remaining();
    if (deadline.Expired()) return absl::DeadlineExceededError("");
    const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    const int ready = ppoll(&entry, 1, &timeout, nullptr);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::UnavailableError("poll failed");
  }
}

// Until libpq has made the connection, or cannot. Errors: those of AwaitEvents().
absl::Status Shake(pg_conn* connection, Deadline deadline) {
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED && PQstatus(connection) != CONNECTION_BAD) {
    absl::Status waited = AwaitEvents(connection, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline);
    if (!waited.ok()) return waited;
    next = PQconnectPoll(connection);
  }
  return absl::OkStatus();
}

bool IsSchema(std::string_view name) {
  return !name.empty() && name.size() < 64 &&
         std::ranges::all_of(
             name, [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqlSession>> PostgresqlSession::Open(const Options& options) {
  if (!IsSchema(options.schema)) return absl::InvalidArgumentError(Join(options.schema, " is not a schema"));
  std::unique_ptr<PostgresqlSession> session(new PostgresqlSession(options));
  // A primary that starts serves once its standby follows.
  const Nanos patience = session->several() ? 6 * options.patience : options.patience;
  if (absl::Status status = session->ConnectUntil(Deadline::In(patience)); !status.ok()) return status;
  return session;
}

absl::Status PostgresqlSession::ConnectUntil(Deadline end) {
  while (true) {
    absl::Status status = Connect();
    if (!absl::IsUnavailable(status) || end.Expired() || deadline_.Expired()) return status;
    poll(nullptr, 0, static_cast<int>(InMillis(kPauseOfConnect)));  // it starts; nothing tells when it serves
  }
}

PostgresqlSession::PostgresqlSession(const Options& options)
    : options_(options),
      addresses_(AddressesOf(options.address)),
      counts_(*ConnectionCounts::ToStores().For(Join("postgresql ", options.address))) {}

PostgresqlSession::~PostgresqlSession() { Drop(); }

void PostgresqlSession::Drop(bool lost) {
  if (std::exchange(stands_, false)) {
    counts_.closed.fetch_add(1, std::memory_order_relaxed);
    if (lost) {
      counts_.lost.fetch_add(1, std::memory_order_relaxed);
      counts_.silent.store(true, std::memory_order_relaxed);
    }
  }
  PQfinish(connection_);
  connection_ = nullptr;
  statements_.clear();
  sent_.clear();
  transaction_ = Transaction::kNone;
  reading_ = moved_ = false;
}

absl::Status PostgresqlSession::Broken(std::string_view how) const {
  const std::string reason = LineOf(PQerrorMessage(connection_));
  return absl::UnavailableError(Join("postgresql ", addresses_[at_], " ", how, ": ", reason));
}

absl::Status PostgresqlSession::Lost(std::string_view how) {
  absl::Status status = Broken(how);
  Drop(/*lost=*/true);
  return status;
}

absl::Status PostgresqlSession::Connect() {
  Drop();
  counts_.attempts.fetch_add(1, std::memory_order_relaxed);
  absl::Status status = Reach();
  if (status.ok()) {
    stands_ = true;
    counts_.stood.fetch_add(1, std::memory_order_relaxed);
  } else {
    counts_.failures.fetch_add(1, std::memory_order_relaxed);
  }
  counts_.silent.store(!status.ok(), std::memory_order_relaxed);
  return status;
}

absl::Status PostgresqlSession::Reach() {
  if (!several()) return ReachPresent();
  const Deadline caller = deadline_, end = EndOfAnswer();
  absl::Status problem;
  for (size_t left = addresses_.size(); left > 0; --left) {
    // Each of those that are left has its share: a server that is held up answers nothing.
    deadline_ = Deadline::In(end.Remaining() / static_cast<int64_t>(left));
    absl::Status reached = ReachPresent();
    if (reached.ok()) reached = ProveStandby();
    deadline_ = caller;
    if (reached.ok() || caller.Expired()) return reached;
    Drop();
    at_ = (at_ + 1) % addresses_.size();
    // One that is away may be no link at the moment.
    if (absl::IsInvalidArgument(reached) && (problem.ok() || absl::IsInvalidArgument(problem))) {
      problem = reached;
    } else {
      problem = absl::UnavailableError(
          Join(problem.ok() ? "no server takes writes: " : Join(Message(problem), "; "), Message(reached)));
    }
  }
  return problem;
}

absl::Status PostgresqlSession::ProveStandby() {
  // A commit that waits for a standby that is not there would hold a connection of the server for ever.
  constexpr char kWrite[] =
      "SELECT CASE WHEN current_setting('synchronous_standby_names') = '' OR EXISTS (SELECT FROM "
      "pg_stat_replication WHERE sync_state IS NULL OR sync_state IN ('sync', 'quorum')) THEN "
      "(pg_logical_emit_message(true, 'curtail', ''::text) IS NOT NULL)::int ELSE 0 END";
  bool proved = false;
  absl::Status status = Query(kWrite, {}, [&](const SqlRow& row) { proved = row.Integer(0) == 1; });
  if (status.ok() && !proved)
    return absl::UnavailableError(Join("postgresql ", addresses_[at_], " waits for its standby"));
  return status;
}

absl::Status PostgresqlSession::ReachPresent() {
  const std::optional<Place> place = PlaceOf(addresses_[at_]);
  if (!place.has_value()) {
    // The link to a socket goes and comes with its server.
    if (was_there_) return absl::UnavailableError(Join("postgresql ", addresses_[at_], " is gone"));
    return absl::InvalidArgumentError(Join("no address of a PostgreSQL server: ", addresses_[at_],
                                           "; give HOST:PORT or unix:DIR/.s.PGSQL.5432"));
  }
  const char* const database = std::getenv("PGDATABASE");
  const int64_t patience_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.patience).count();
  const std::string settings = Join("-c search_path=", options_.schema, " -c lock_timeout=", patience_ms,
                                    " -c client_connection_check_interval=1000",
                                    options_.sync ? ""
                                    : several()   ? " -c synchronous_commit=remote_write"
                                                  : " -c synchronous_commit=off");
  const absl::StatusOr<std::string> password = PasswordOfFile();
  if (!password.ok()) return password.status();
  // An empty value stands for libpq's own.
  const std::array<const char*, 10> keys = {"host",       "port",
                                            "dbname",     "client_encoding",
                                            "options",    "target_session_attrs",
                                            "gssencmode", "application_name",
                                            "password",   nullptr};
  const std::array<const char*, 10> values = {place->host.c_str(),
                                              place->port.c_str(),
                                              database == nullptr ? "postgres" : database,
                                              "UTF8",
                                              settings.c_str(),
                                              several() ? "read-write" : "any",
                                              "disable",
                                              "curtail",
                                              password->c_str(),
                                              nullptr};
  connection_ = PQconnectStartParams(keys.data(), values.data(), /*expand_dbname=*/0);
  if (connection_ == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  PQsetNoticeReceiver(connection_, [](void*, const PGresult*) {}, nullptr);
  if (absl::Status shaken = OrLate(Handshake(EndOfAnswer())); !shaken.ok()) {
    Drop();
    return shaken;
  }
  if (PQstatus(connection_) != CONNECTION_OK) {
    const std::string_view remedy = RemedyFor(LineOf(PQerrorMessage(connection_)));
    const absl::Status lost = Lost("cannot be reached");
    return remedy.empty() ? lost : absl::PermissionDeniedError(Join(Message(lost), remedy));
  }
  was_there_ = true;
  return PQsetnonblocking(connection_, 1) == 0 && PQenterPipelineMode(connection_) == 1 ? absl::OkStatus()
                                                                                        : Lost();
}

absl::Status PostgresqlSession::Handshake(Deadline deadline) {
  const char* const password = PQpass(connection_);
  if (password == nullptr || *password == '\0') return Shake(connection_, deadline);
  // A server may ask for 2^31 rounds of SCRAM. libpq computes them for half an hour, and nothing interrupts it.
  if (!computes_.expired()) return absl::UnavailableError("a password's proof is still being computed");
  const auto attempt = std::make_shared<Attempt>();
  std::future<absl::Status> result = attempt->result.get_future();
  const auto compute = [attempt, connection = connection_, deadline] {
    attempt->thread.store(gettid(), std::memory_order_relaxed);
    absl::Status status = Shake(connection, deadline);
    if (attempt->one_left.exchange(true)) return PQfinish(connection);
    attempt->result.set_value(std::move(status));
  };
  if (!Contain("postgresql", [&] { std::thread(compute).detach(); }))
    return absl::UnavailableError("the system has no thread for a password's proof");
  if (result.wait_for(deadline.Remaining() + kGraceOfConnect) == std::future_status::ready ||
      attempt->one_left.exchange(true)) {
    return result.get();
  }
  connection_ = nullptr;  // the thread ends it
  computes_ = attempt;
  setpriority(PRIO_PROCESS, static_cast<id_t>(attempt->thread.load(std::memory_order_relaxed)), 19);
  return absl::DeadlineExceededError("");
}

Deadline PostgresqlSession::EndOfAnswer() const {
  return std::min(deadline_, Deadline::In(2 * options_.patience));  // the server may wait for a lock before
}

absl::Status PostgresqlSession::Wait(short events, Deadline deadline) const {
  return OrLate(AwaitEvents(connection_, events, deadline));
}

absl::Status PostgresqlSession::OrLate(absl::Status status) const {
  if (!absl::IsDeadlineExceeded(status)) return status;
  const std::string late = Join("postgresql ", addresses_[at_], " did not answer in time");
  return deadline_.Expired() ? absl::DeadlineExceededError(late) : absl::UnavailableError(late);
}

}  // namespace curtail::internal
