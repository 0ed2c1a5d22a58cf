// SPDX-License-Identifier: Apache-2.0
//
// SqlDatabase against a primary and its standby, which die, stall and change their roles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"
#include "curtail/store/sql/sql.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

const char kItems[] = "CREATE TABLE items(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT";

// A failover starts some servers and copies one: long on a busy machine.
Deadline Patience() { return Deadline::In(5 * kMaxTestWait); }

// Two servers, and what a supervisor and an operator do to them.
class PostgresqlPair : public testing::Test {
 protected:
  struct Outcome {
    int code = -1;  // its wait status
    std::string text;
  };

  std::string Socket(int server) const { return dir_.File(server == 0 ? "a" : "b"); }
  std::string Data() const { return dir_.File("data"); }
  std::vector<std::string> Words(std::string what) const {
    return {POSTGRESQL_SERVER, Data(), Join(Socket(0), ",", Socket(1)), std::move(what)};
  }
  deploy::Process& Server(int server) { return *servers_[static_cast<size_t>(server)]; }
  void Start(int server) {
    auto process =
        deploy::Process::Spawn({.name = Join(server), .argv = Words(Join(server)), .out_to_log = true});
    ASSERT_TRUE(process.ok()) << process.status();
    servers_[static_cast<size_t>(server)] = *std::move(process);
  }
  void SetUp() override {
    Start(0);
    Start(1);
    for (const Deadline deadline = Patience(); !deadline.Expired();) {
      if (std::filesystem::exists(Socket(0)) && std::filesystem::exists(Socket(1))) return;
      Server(0).AwaitEnd(Deadline::In(std::chrono::milliseconds(10)));
    }
  }

  void TearDown() override {
    for (const auto& server : servers_) server->Kill();
  }

  // The standby's address first.
  SqlOptions OptionsFor(std::string schema) const {
    SqlOptions options;
    options.path = std::move(schema);
    options.postgresql = Join("unix:", Socket(1), ",unix:", Socket(0));
    options.migrations = {kItems};
    return options;
  }
  std::unique_ptr<SqlDatabase> Open(const SqlOptions& options) {
    const Deadline deadline = Patience();
    auto db = SqlDatabase::Open(options);
    while (absl::IsUnavailable(db.status()) && !deadline.Expired()) db = SqlDatabase::Open(options);
    EXPECT_TRUE(db.ok()) << db.status();
    return db.ok() ? *std::move(db) : nullptr;
  }

  std::string Roles() const {
    std::ifstream file(Data() + ".roles");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetRoles(std::string_view text) const { std::ofstream(Data() + ".roles") << text; }

  // Fails over. Once the roles have changed, servers that end are started again.
  Outcome FailOver() {
    const std::string before = Roles();
    auto process = deploy::Process::Spawn(
        {.name = "failover", .argv = Words("failover"), .log_path = dir_.File("log"), .out_to_log = true});
    EXPECT_TRUE(process.ok()) << process.status();
    for (const Deadline deadline = Patience(); (*process)->Running() && !deadline.Expired();) {
      for (const int server : {0, 1}) {
        if (Roles() != before && !Server(server).Running()) Start(server);
      }
      (*process)->AwaitEnd(Deadline::In(std::chrono::milliseconds(10)));
    }
    Outcome outcome{.code = (*process)->Terminate(Nanos(0))};
    std::ifstream log(dir_.File("log"));
    outcome.text.assign(std::istreambuf_iterator<char>(log), {});
    std::filesystem::remove(dir_.File("log"));
    return outcome;
  }

  const TempDir dir_;
  std::array<std::unique_ptr<deploy::Process>, 2> servers_;
};

absl::Status Insert(SqlDatabase& db, int64_t id) {
  return db.Write(Patience(), [&](SqlSession& s) {
    return s.Execute("INSERT INTO items(id, text) VALUES (?1, ?2)", {id, Join(id)});
  });
}

absl::StatusOr<std::set<int64_t>> Ids(SqlDatabase& db) {
  std::set<int64_t> ids;
  absl::Status status = db.Read(Patience(), [&](SqlSession& s) {
    return s.Query("SELECT id FROM items", {}, [&](const SqlRow& row) { ids.insert(row.Integer(0)); });
  });
  if (!status.ok()) return status;
  return ids;
}

absl::StatusOr<std::set<int64_t>> AwaitIds(SqlDatabase& db) {
  const Deadline deadline = Patience();
  absl::StatusOr<std::set<int64_t>> ids = Ids(db);
  while (!ids.ok() && !deadline.Expired()) ids = Ids(db);
  return ids;
}

// Inserts 1, 2, 3, ... until it ends. An error but UNAVAILABLE is a failure, and so is a write that cannot be read.
class Writer {
 public:
  explicit Writer(SqlDatabase& db) : thread_([this, &db] { Run(db); }) {}
  ~Writer() { End(); }
  void End() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  // Returns once it has `more` acknowledgements more.
  void Await(int64_t more) {
    const Deadline deadline = Patience();
    for (const int64_t all = count_.load() + more; count_.load() < all && !deadline.Expired();)
      BetweenLooks();
    EXPECT_FALSE(deadline.Expired());
  }
  // After End().
  const std::set<int64_t>& acknowledged() const { return acknowledged_; }

 private:
  void Run(SqlDatabase& db) {
    for (int64_t id = 1; !stop_.load(); ++id) {
      const absl::Status status = Insert(db, id);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
      if (!status.ok()) continue;
      acknowledged_.insert(id);
      count_.fetch_add(1);
      const auto ids = Ids(db);
      EXPECT_TRUE(ids.ok() ? ids->contains(id) : absl::IsUnavailable(ids.status())) << ids.status();
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int64_t> count_{0};
  std::set<int64_t> acknowledged_;  // the thread's, until it has ended
  std::thread thread_;
};

void ExpectAll(const std::set<int64_t>& there, const std::set<int64_t>& acknowledged) {
  for (const int64_t id : acknowledged) EXPECT_TRUE(there.contains(id)) << id;
}

TEST_F(PostgresqlPair, ChangesItsRolesWhileItIsWritten) {
  auto db = Open(OptionsFor("changes"));
  EXPECT_EQ(Roles(), "primary 0\nstandby complete\n");
  Writer writer(*db);
  for (const int former : {0, 1, 0}) {
    writer.Await(10);
    const Outcome outcome = FailOver();
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(Roles(), Join("primary ", 1 - former, "\nstandby complete\n"));
  }
  writer.Await(10);
  writer.End();
  const auto ids = AwaitIds(*db);
  ASSERT_TRUE(ids.ok()) << ids.status();
  ExpectAll(*ids, writer.acknowledged());
}

// The former primary has what was on its way; its data becomes that of the new one.
TEST_F(PostgresqlPair, APrimaryThatDiedOrStallsIsReplaced) {
  auto db = Open(OptionsFor("replaced"));
  Writer writer(*db);
  writer.Await(10);
  Server(0).Kill();
  Outcome outcome = FailOver();
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("does not answer"));
  writer.Await(10);
  Server(1).Pause();
  outcome = FailOver();
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  writer.Await(10);
  writer.End();
  const auto ids = AwaitIds(*db);
  ASSERT_TRUE(ids.ok()) << ids.status();
  ExpectAll(*ids, writer.acknowledged());
}

// Its folder has no data any more, so there is nothing to mend.
TEST_F(PostgresqlPair, AFormerPrimaryThatCannotBeMendedIsCopied) {
  auto db = Open(OptionsFor("copied"));
  ASSERT_TRUE(Insert(*db, 1).ok());
  Server(0).Kill();
  // As an interrupted pg_rewind leaves it.
  std::filesystem::rename(Data(), Data() + ".old");
  const Outcome outcome = FailOver();
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(Data() + ".old"));
  EXPECT_TRUE(std::filesystem::exists(Data() + "/standby.signal"));
  ASSERT_TRUE(Insert(*db, 2).ok());
  ASSERT_EQ(FailOver().code, 0);
  EXPECT_EQ(*AwaitIds(*db), (std::set<int64_t>{1, 2}));
}

TEST_F(PostgresqlPair, AcknowledgesNothingWithoutItsStandby) {
  SqlOptions options = OptionsFor("alone");
  auto patient = Open(options);
  ASSERT_TRUE(Insert(*patient, 1).ok());
  options.busy_timeout = std::chrono::milliseconds(300);
  auto db = Open(options);
  Server(1).Kill();
  const absl::Status alone = Insert(*db, 2);
  EXPECT_TRUE(absl::IsUnavailable(alone)) << alone;
  Server(0).Kill();
  Start(0);
  // The second write is in the primary's data. It may be lost yet, so nobody sees it.
  EXPECT_TRUE(absl::IsUnavailable(Ids(*db).status()));
  EXPECT_TRUE(absl::IsUnavailable(SqlDatabase::Open(options).status()));
  const Outcome outcome = FailOver();
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("does not serve yet; nothing was changed"));
  Start(1);
  const auto ids = AwaitIds(*patient);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_TRUE(ids->contains(1));
  EXPECT_TRUE(Insert(*patient, 3).ok());
}

TEST_F(PostgresqlPair, AStandbyThatMayLackSomethingIsNotPromoted) {
  auto db = Open(OptionsFor("lacks"));
  ASSERT_TRUE(Insert(*db, 1).ok());
  SetRoles("primary 0\nstandby follows\n");
  Server(0).Kill();
  const Outcome outcome = FailOver();
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("may lack what it acknowledged"));
  EXPECT_EQ(Roles(), "primary 0\nstandby follows\n");
  Start(0);
  ASSERT_TRUE(AwaitIds(*db).ok());
  ASSERT_TRUE(Insert(*db, 2).ok());  // the primary says now that it is followed
  ASSERT_EQ(FailOver().code, 0);
  EXPECT_EQ(*AwaitIds(*db), (std::set<int64_t>{1, 2}));
}

// It ended between the change of the roles and the promotion.
TEST_F(PostgresqlPair, AnInterruptedFailoverIsFinished) {
  auto db = Open(OptionsFor("finished"));
  ASSERT_TRUE(Insert(*db, 1).ok());
  Server(0).Kill();
  SetRoles("primary 1\nstandby follows\n");
  Start(0);  // it waits for a primary
  const Outcome outcome = FailOver();
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("had begun, and goes on"));
  EXPECT_TRUE(Insert(*db, 2).ok());
  Server(0).Kill();
  Server(1).Kill();
  SetRoles("primary 0\nstandby follows\n");
  Start(0);  // and the start of the one that is to be the primary does it, too
  Start(1);
  EXPECT_EQ(*AwaitIds(*db), (std::set<int64_t>{1, 2}));
  EXPECT_TRUE(Insert(*db, 3).ok());
}

TEST_F(PostgresqlPair, ASingleServerIsThePrimary) {
  auto db = Open(OptionsFor("single"));
  ASSERT_TRUE(Insert(*db, 1).ok());
  SqlOptions one = OptionsFor("single");
  one.postgresql = "unix:" + dir_.File("c");
  Server(0).Kill();
  Server(1).Kill();
  {
    const PostgresqlProcess single(dir_.File("c"), {POSTGRESQL_SERVER, Data(), dir_.File("c")});
    EXPECT_EQ(Roles(), "primary 0\nstandby stale\n");
    ASSERT_TRUE(Insert(*Open(one), 2).ok());
  }
  Start(0);
  Start(1);  // it is copied
  EXPECT_EQ(*AwaitIds(*db), (std::set<int64_t>{1, 2}));
  EXPECT_EQ(Roles(), "primary 0\nstandby complete\n");
  ASSERT_EQ(FailOver().code, 0);
  EXPECT_EQ(*AwaitIds(*db), (std::set<int64_t>{1, 2}));
  Server(0).Kill();
  Server(1).Kill();
  // The newer data is the other's.
  auto refused =
      deploy::Process::Spawn({.name = "single", .argv = {POSTGRESQL_SERVER, Data(), dir_.File("c")}});
  ASSERT_TRUE(refused.ok());
  EXPECT_TRUE((*refused)->AwaitEnd(Patience()));
  EXPECT_NE((*refused)->Terminate(Nanos(0)), 0);
}

TEST_F(PostgresqlPair, AServerThatTakesNoWritesIsLeft) {
  auto db = Open(OptionsFor("read_only"));
  ASSERT_TRUE(Insert(*db, 1).ok());
  // As a server that others made a standby without an end of its connections.
  ASSERT_TRUE(db->Write(Patience(), [](SqlSession& s) {
                  return s.Execute("SET default_transaction_read_only = on");
                }).ok());
  const absl::Status refused = Insert(*db, 2);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_TRUE(Insert(*db, 3).ok());  // on another connection
  EXPECT_EQ(*Ids(*db), (std::set<int64_t>{1, 3}));
  SqlOptions standby = OptionsFor("read_only");
  standby.postgresql = Join("unix:", Socket(1), ",unix:", Socket(1));
  standby.busy_timeout = std::chrono::milliseconds(50);
  const absl::Status none = SqlDatabase::Open(standby).status();
  EXPECT_TRUE(absl::IsUnavailable(none)) << none;
  EXPECT_THAT(std::string(Message(none)), HasSubstr("no server takes writes"));
}

}  // namespace
}  // namespace curtail
