// SPDX-License-Identifier: Apache-2.0
//
// SqlDatabase against a real PostgreSQL, which stalls and dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "curtail/base/internal/connection_counts.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/store/sql/dialect.h"
#include "curtail/store/sql/sql.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

const char kItems[] =
    "CREATE TABLE items(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE) STRICT";

// One server for all tests of the program, as it takes seconds to make. Each has a schema of its own.
struct Server {
  TempDir dir;
  PostgresqlProcess process{dir.File("s"), {POSTGRESQL_SERVER, dir.File("data"), dir.File("s")}};
};
Server& TheServer() {
  static Server server;
  return server;
}

SqlOptions OptionsFor(std::string schema) {
  SqlOptions options;
  options.path = std::move(schema);
  options.postgresql = TheServer().process.address();
  options.migrations = {kItems};
  options.readers = 2;
  return options;
}

std::unique_ptr<SqlDatabase> Open(const SqlOptions& options) {
  auto db = SqlDatabase::Open(options);
  EXPECT_TRUE(db.ok()) << db.status();
  return db.ok() ? *std::move(db) : nullptr;
}

Deadline Patience() { return Deadline::In(kMaxTestWait); }

absl::Status Insert(SqlDatabase& db, int64_t id, std::string_view text) {
  return db.Write(Patience(), [&](SqlSession& s) {
    return s.Execute("INSERT INTO items(id, text) VALUES (?1, ?2)", {id, text});
  });
}

int64_t Count(SqlDatabase& db) {
  int64_t count = -1;
  const absl::Status status = db.Read(Patience(), [&](SqlSession& s) {
    return s.Query("SELECT count(*) FROM items", {}, [&](const SqlRow& row) { count = row.Integer(0); });
  });
  EXPECT_TRUE(status.ok()) << status;
  return count;
}

// Of all connections to the server.
internal::ConnectionCounts::Row Counts() {
  for (const auto& row : internal::ConnectionCounts::ToStores().Read()) {
    if (row.target == Join("postgresql ", TheServer().process.address())) return row;
  }
  return {};
}

// Until a read ends so.
void AwaitRead(SqlDatabase& db, absl::StatusCode code) {
  const Deadline deadline = Patience();
  absl::Status status;
  do {
    status = db.Read(Patience(), [&](SqlSession& s) { return s.Execute("SELECT 1"); });
    BetweenLooks();
  } while (status.code() != code && !deadline.Expired());
  EXPECT_EQ(status.code(), code) << status;
}

TEST(PostgresqlDialect, HasWhatTheApplicationsWrite) {
  using internal::PostgresqlOf;
  EXPECT_EQ(PostgresqlOf(
                "CREATE TABLE e(user INTEGER, job BLOB, t TEXT, PRIMARY KEY(user)) STRICT, WITHOUT ROWID;"),
            "CREATE TABLE e(\"user\" BIGINT, job BYTEA, t TEXT COLLATE \"C\", PRIMARY KEY(\"user\")) ;");
  EXPECT_EQ(PostgresqlOf("SELECT e.user FROM users WHERE user = ?1 AND text = 'user ?1' LIMIT ?12"),
            "SELECT e.\"user\" FROM users WHERE \"user\" = $1 AND text = 'user ?1' LIMIT $12");
  EXPECT_EQ(PostgresqlOf("an 'open quote"), "an 'open quote");
  EXPECT_EQ(PostgresqlOf("-- the user's TEXT\nt TEXT --"), "-- the user's TEXT\nt TEXT COLLATE \"C\" --");
  EXPECT_EQ(PostgresqlOf(""), "");
}

TEST(Postgresql, KeepsWhatWasWritten) {
  SqlOptions options = OptionsFor("keeps");
  options.migrations.push_back(
      "CREATE TABLE pairs(key BLOB PRIMARY KEY, value INTEGER) STRICT, WITHOUT ROWID");
  auto db = Open(options);
  const std::string bytes("a\0b\xff", 4);
  constexpr int64_t kLarge = int64_t{1} << 62;
  ASSERT_TRUE(db->Write(Patience(), [&](SqlSession& s) {
                  absl::Status status =
                      s.Execute("INSERT INTO pairs VALUES (?1, ?2)", {SqlValue::Bytes(bytes), -kLarge});
                  status.Update(s.Execute("INSERT INTO pairs VALUES (?1, NULL)", {SqlValue::Bytes("")}));
                  EXPECT_EQ(s.changes(), 1);
                  return status;
                }).ok());
  db = Open(options);
  std::vector<std::pair<std::string, int64_t>> rows;
  ASSERT_TRUE(db->Read(Patience(), [&](SqlSession& s) {
                  return s.Query("SELECT key, value FROM pairs ORDER BY key", {},
                                 [&](const SqlRow& row) { rows.emplace_back(row.Text(0), row.Integer(1)); });
                }).ok());
  EXPECT_THAT(rows, testing::ElementsAre(std::pair("", 0), std::pair(bytes, -kLarge)));
}

TEST(Postgresql, KeepsWhatAClientWithAPasswordWrote) {
  setenv("PGPASSWORD", "secret", 1);  // which this server does not ask for
  auto db = Open(OptionsFor("password"));
  unsetenv("PGPASSWORD");
  EXPECT_TRUE(Insert(*db, 1, "a").ok());
  EXPECT_EQ(Count(*db), 1);
}

TEST(Postgresql, AFailedWorkUndoesItselfOnly) {
  auto db = Open(OptionsFor("failed"));
  ASSERT_TRUE(Insert(*db, 1, "a").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Insert(*db, 1, "b")));
  EXPECT_TRUE(absl::IsAlreadyExists(Insert(*db, 2, "a")));
  const absl::Status undone = db->Write(Patience(), [](SqlSession& s) {
    s.Execute("INSERT INTO items(text) VALUES ('c')").IgnoreError();
    return absl::AbortedError("no");
  });
  EXPECT_TRUE(absl::IsAborted(undone));
  EXPECT_TRUE(absl::IsInternal(db->Write(Patience(), [](SqlSession& s) -> absl::Status {
    s.Execute("INSERT INTO items(text) VALUES ('d')").IgnoreError();
    throw std::runtime_error("thrown");
  })));
  EXPECT_FALSE(db->Write(Patience(), [](SqlSession& s) {
                   s.Execute("SELEC").IgnoreError();  // no error of a statement is lost
                   return absl::OkStatus();
                 }).ok());
  EXPECT_FALSE(db->Read(Patience(), [](SqlSession& s) {
                   return s.Execute("INSERT INTO items(text) VALUES ('e')");
                 }).ok());
  EXPECT_EQ(Count(*db), 1);
}

TEST(Postgresql, NamesMistakes) {
  auto db = Open(OptionsFor("mistakes"));
  const auto run = [&](std::string_view sql) {
    return db->Read(Patience(), [&](SqlSession& s) { return s.Execute(sql, {1}); });
  };
  const absl::Status wrong = run("SELEC 1");
  EXPECT_TRUE(absl::IsInternal(wrong));
  EXPECT_THAT(std::string(Message(wrong)), HasSubstr("SELEC"));
  EXPECT_FALSE(run("SELECT ?1 + ?2").ok());
  EXPECT_FALSE(run("").ok());
  EXPECT_TRUE(run("SELECT ?1").ok());
  constexpr char kLater[] = "SELECT * FROM later WHERE id = ?1";  // it is there the second time
  EXPECT_FALSE(run(kLater).ok());
  ASSERT_TRUE(
      db->Write(Patience(), [](SqlSession& s) { return s.Execute("CREATE TABLE later(id INTEGER)"); }).ok());
  EXPECT_TRUE(run(kLater).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Insert(*db, 1, std::string_view("a\0b", 3))));
  SqlOptions options = OptionsFor("Mistakes; DROP");
  EXPECT_TRUE(absl::IsInvalidArgument(SqlDatabase::Open(options).status()));
  options = OptionsFor("mistakes");
  for (const char* address : {"unix:/tmp/socket", "nothing", ":1"}) {
    options.postgresql = address;
    EXPECT_TRUE(absl::IsInvalidArgument(SqlDatabase::Open(options).status())) << address;
  }
  options.postgresql = "unix:" + TheServer().dir.File("none") + "/.s.PGSQL.1";
  options.busy_timeout = std::chrono::milliseconds(10);
  EXPECT_TRUE(absl::IsUnavailable(SqlDatabase::Open(options).status()));
}

TEST(Postgresql, MigratesStepByStepAndRefusesANewerSchema) {
  SqlOptions options = OptionsFor("migrates");
  ASSERT_TRUE(Insert(*Open(options), 1, "a").ok());
  options.migrations.push_back("ALTER TABLE items ADD COLUMN rank INTEGER; UPDATE items SET rank = 7");
  EXPECT_EQ(Count(*Open(options)), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(SqlDatabase::Open(OptionsFor("migrates")).status()));
}

// Nothing is left of the step, nor of the ones ahead of it: their tables can be made again.
TEST(Postgresql, AMigrationThatFailsHalfWayLeavesNothing) {
  SqlOptions options = OptionsFor("half_way");
  ASSERT_TRUE(Insert(*Open(options), 1, "a").ok());
  options.migrations.push_back("CREATE TABLE more(id INTEGER) STRICT");
  options.migrations.push_back(
      "CREATE TABLE rest(id INTEGER) STRICT; INSERT INTO nowhere VALUES (1); INSERT INTO rest VALUES (1)");
  EXPECT_FALSE(SqlDatabase::Open(options).ok());
  EXPECT_TRUE(SqlDatabase::Open(OptionsFor("half_way")).ok()) << "its version is the one before";
  options.migrations.back() = "CREATE TABLE rest(id INTEGER) STRICT";
  const auto db = Open(options);
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(Count(*db), 1);
}

TEST(Postgresql, AnAnswerThatIsTooLongIsRefused) {
  auto db = Open(OptionsFor("long"));
  uint64_t rows = 0;
  const absl::Status status = db->Read(Patience(), [&](SqlSession& s) {
    return s.Query("SELECT generate_series(1, 100000000)", {}, [&](const SqlRow&) { ++rows; });
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_LT(rows, 1'000'000u);
  EXPECT_EQ(Count(*db), 0);  // on another connection
}

TEST(Postgresql, ARowThatIsTooLongIsNotHeldWhole) {
  auto db = Open(OptionsFor("long_row"));
  const absl::Status status =
      db->Read(Patience(), [](SqlSession& s) { return s.Execute("SELECT repeat('x', 200000000)"); });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Count(*db), 0);
}

TEST(Postgresql, RunsAStatementManyTimesAtOnce) {
  auto db = Open(OptionsFor("many"));
  constexpr int kRuns = 1000;
  std::vector<std::string> texts;
  for (int i = 0; i < kRuns; ++i) texts.push_back(std::string(1000, 'x') + Join(i));
  std::vector<SqlValue> values;
  for (int i = 0; i < kRuns; ++i) values.push_back(i), values.push_back(texts[i]);
  const auto insert = [&](SqlSession& s) {
    return s.QueryEach("INSERT INTO items(id, text) VALUES (?1, ?2)", 2, values,
                       [](size_t, const SqlRow&) {});
  };
  ASSERT_TRUE(db->Write(Patience(), insert).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(db->Write(Patience(), insert)));
  std::vector<SqlValue> ids;
  for (int i = kRuns; i >= -1; --i) ids.push_back(i);  // the ends are not there
  std::vector<std::string> found(ids.size());
  const auto read = [&](SqlSession& s) {
    return s.QueryEach("SELECT text FROM items WHERE id = ?1", 1, ids,
                       [&](size_t run, const SqlRow& row) { found[run] = row.Text(0); });
  };
  ASSERT_TRUE(db->Read(Patience(), read).ok());
  for (int i = 0; i < kRuns; ++i)
    EXPECT_EQ(found[static_cast<size_t>(kRuns - i)], texts[static_cast<size_t>(i)]);
  EXPECT_EQ(found.front(), "");
  EXPECT_EQ(found.back(), "");
  EXPECT_FALSE(db->Read(Patience(), [&](SqlSession& s) {
                   return s.QueryEach("SELECT 100 / ?1", 1, ids, [](size_t, const SqlRow&) {});
                 }).ok());
  EXPECT_EQ(Count(*db), kRuns);  // on a connection in order
}

TEST(Postgresql, AWorkThatThrowsAmongItsRowsLeavesNothingBehind) {
  SqlOptions options = OptionsFor("throws");
  options.readers = 1;
  auto db = Open(options);
  const internal::ConnectionCounts::Row before = Counts();
  const absl::Status thrown = db->Read(Patience(), [](SqlSession& s) {
    return s.Query("SELECT generate_series(1, 1000)", {},
                   [](const SqlRow&) { throw std::runtime_error("thrown"); });
  });
  EXPECT_TRUE(absl::IsInternal(thrown)) << thrown;
  EXPECT_EQ(Counts().lost, before.lost) << "the server has answered";
  EXPECT_FALSE(Counts().silent);
  EXPECT_EQ(Count(*db), 0);
}

TEST(Postgresql, AnIdleConnectionThatEndsIsNotLost) {
  auto db = Open(OptionsFor("idle"));
  AwaitRead(*db, absl::StatusCode::kOk);
  const internal::ConnectionCounts::Row before = Counts();
  TheServer().process.Kill();
  TheServer().process.Start();
  AwaitRead(*db, absl::StatusCode::kOk);
  EXPECT_EQ(Counts().lost, before.lost);
  EXPECT_GT(Counts().attempts, before.attempts);
  EXPECT_FALSE(Counts().silent);
}

TEST(Postgresql, AReadEndsAtItsDeadline) {
  SqlOptions options = OptionsFor("late");
  options.readers = 1;  // its connection ends with the first read
  auto db = Open(options);
  const auto sleep = [](SqlSession& s) { return s.Execute("SELECT pg_sleep(100)"); };
  EXPECT_TRUE(absl::IsDeadlineExceeded(db->Read(Deadline::In(std::chrono::milliseconds(50)), sleep)));
  TheServer().process.Stall();  // so that no connection is made
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      db->Read(Deadline::In(std::chrono::milliseconds(50)), [](SqlSession&) { return absl::OkStatus(); })));
  TheServer().process.GoOn();
  EXPECT_EQ(Count(*db), 0);
}

// A server that has its client compute for half an hour: a password's proof of 2^31 rounds of SCRAM (RFC 5802).
void AskForRounds(internal::UniqueFd connection, int stop) {
  std::array<char, 4096> heard;
  const auto hear = [&]() -> std::string_view {
    if (!TestListener::Wait(connection.get(), stop)) return {};
    return {heard.data(),
            static_cast<size_t>(std::max<ssize_t>(read(connection.get(), heard.data(), heard.size()), 0))};
  };
  // A message of authentication, by its kind and its content.
  const auto ask = [&](char kind, const std::string& content) {
    const std::string bytes = std::string("R\0\0\0", 4) + static_cast<char>(8 + content.size()) +
                              std::string(3, '\0') + kind + content;
    send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  };
  if (hear().size() == 8) send(connection.get(), "N", 1, MSG_NOSIGNAL);  // no TLS
  hear();
  ask(10, std::string("SCRAM-SHA-256\0\0", 15));
  const std::string_view first = hear();
  ask(11,
      Join("r=", first.substr(std::min(first.size(), first.rfind("r=") + 2)), "x,s=c2FsdA==,i=2147483647"));
  while (!hear().empty()) {
  }
}

TEST(PostgresqlDeathTest, AServerThatAsksForTwoBillionRoundsIsLate) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open = [] {
    alarm(static_cast<unsigned>(kMaxTestWait / std::chrono::seconds(1)));
    setenv("PGPASSWORD", "secret", 1);
    const TestListener server(AskForRounds);
    SqlOptions options;
    options.path = "rounds";
    options.postgresql = server.address();
    options.busy_timeout = std::chrono::milliseconds(200);
    const absl::Status status = SqlDatabase::Open(options).status();
    std::cerr << status << std::endl;
    _exit(absl::IsUnavailable(status) ? 0 : 1);  // a thread computes
  };
  EXPECT_EXIT(open(), testing::ExitedWithCode(0), "did not answer in time|still being computed");
}

// A server that sends `part` again and again.
void SendForEver(std::string_view part, internal::UniqueFd connection, int stop) {
  std::string much;
  while (much.size() < 1u << 20) much += part;
  std::array<char, 4096> heard;
  if (TestListener::Wait(connection.get(), stop) && read(connection.get(), heard.data(), heard.size()) == 8) {
    send(connection.get(), "N", 1, MSG_NOSIGNAL);  // no TLS
    if (!TestListener::Wait(connection.get(), stop) ||
        read(connection.get(), heard.data(), heard.size()) <= 0)
      return;
  }
  send(connection.get(), "R\0\0\0\x08\0\0\0\0", 9, MSG_NOSIGNAL);  // no password
  while (send(connection.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0) {
  }
}

TEST(Postgresql, AServerThatSendsForEverIsLate) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view part :
       {"S\0\0\0\x08p\0v\0"sv, "N\0\0\0\x17SNOTICE\0C00000\0Mx\0\0"sv}) {  // ParameterStatus, NoticeResponse
    const TestListener server(
        [&](internal::UniqueFd connection, int stop) { SendForEver(part, std::move(connection), stop); });
    SqlOptions options;
    options.path = "for_ever";
    options.postgresql = server.address();
    options.busy_timeout = std::chrono::milliseconds(200);
    const absl::Status status = SqlDatabase::Open(options).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("in time"));
  }
}

// Property: writes of two databases, as two processes have them, take turns; each sees what those before it did.
TEST(Postgresql, WritersTakeTurnsStress) {
  constexpr int kThreads = 4, kEach = 25;
  auto one = Open(OptionsFor("turns")), two = Open(OptionsFor("turns"));
  const auto run = [&](int thread) {
    SqlDatabase& db = thread % 2 == 0 ? *one : *two;
    for (int i = 0; i < kEach; ++i) {
      const absl::Status status = db.Write(Patience(), [&](SqlSession& s) {
        int64_t next = 0;
        absl::Status looked =
            s.Query("SELECT count(*) FROM items", {}, [&](const SqlRow& row) { next = row.Integer(0); });
        if (!looked.ok()) return looked;
        return s.Execute("INSERT INTO items(id, text) VALUES (?1, ?2)", {next, Join(thread, " ", i)});
      });
      EXPECT_TRUE(status.ok()) << status;
    }
  };
  run(0);  // alone first
  std::vector<std::thread> threads;
  for (int t = 1; t < kThreads; ++t) threads.emplace_back(run, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Count(*one), kThreads * kEach);
}

TEST(Postgresql, WhatWasAcknowledgedOutlivesTheServer) {
  auto db = Open(OptionsFor("outlives"));
  std::atomic<bool> stop{false};
  std::atomic<int64_t> written{0};
  std::thread writer([&] {
    for (int64_t id = 1; !stop.load(); ++id) {
      if (!Insert(*db, id, Join(id)).ok()) break;
      written.store(id);
    }
  });
  const Deadline deadline = Patience();
  while (written.load() < 10 && !deadline.Expired()) BetweenLooks();
  EXPECT_FALSE(Counts().silent);
  EXPECT_GE(Counts().open, 1u);
  const internal::ConnectionCounts::Row before = Counts();
  TheServer().process.Kill();
  stop.store(true);
  writer.join();
  AwaitRead(*db, absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Counts().silent);
  EXPECT_GT(Counts().lost + Counts().failures, before.lost + before.failures);
  EXPECT_TRUE(absl::IsUnavailable(Insert(*db, -1, "meanwhile")));
  unlink(TheServer().dir.File("s").c_str());  // as before the next server
  EXPECT_TRUE(absl::IsUnavailable(Insert(*db, -1, "meanwhile")));
  TheServer().process.Start();
  AwaitRead(*db, absl::StatusCode::kOk);
  EXPECT_GE(Count(*db), written.load());
  EXPECT_GE(written.load(), 10);
  EXPECT_TRUE(Insert(*db, -2, "afterwards").ok());
  EXPECT_FALSE(Counts().silent);
}

class PostgresqlModels : public MidTier {
 protected:
  std::unique_ptr<SqlDatabase> db_ = Open(OptionsFor("models"));
};

INSTANTIATE_TEST_SUITE_P(Models, PostgresqlModels,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

// Each request waits twice; under all models, however few threads there are.
TEST_P(PostgresqlModels, ACoroutineWaitsAsItsModelWaits) {
  ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    int64_t id = 0;
    absl::Status status = co_await db_->Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("INSERT INTO items(text) VALUES (?1) RETURNING id", {in.value()},
                     [&](const SqlRow& row) { id = row.Integer(0); });
    });
    if (!status.ok()) co_return status;
    co_return co_await db_->Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT text FROM items WHERE id = ?1", {id},
                     [&](const SqlRow& row) { out->set_value(std::string(row.Text(0))); });
    });
  });
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([this, c] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = Join(GetParam(), " ", c, "-", i);
        std::string answer;
        const absl::Status status = Run(text, &answer);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(answer, text);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace curtail
