// SPDX-License-Identifier: Apache-2.0
//
// Real files: what fits, what does not, damage, and many writers at once.
#include "curtail/store/sql/sql.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"
#include "curtail/exec/wait.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

const char kSchema[] = "CREATE TABLE items(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT";

// Its second statement fails, and its third would not.
const char kBreaksHalfWay[] =
    "CREATE TABLE rest(id INTEGER) STRICT; INSERT INTO nowhere VALUES (1); INSERT INTO rest VALUES (1)";

class SqlTest : public testing::Test {
 protected:
  SqlOptions Options() const {
    SqlOptions options;
    options.path = dir_.File("test.db");
    options.migrations = {kSchema};
    options.sync = false;  // no test loses power
    return options;
  }
  std::unique_ptr<SqlDatabase> Open(const SqlOptions& options) {
    auto db = SqlDatabase::Open(options);
    EXPECT_TRUE(db.ok()) << db.status();
    return db.ok() ? *std::move(db) : nullptr;
  }
  static Deadline Soon() { return Deadline::In(kMaxTestWait); }
  static absl::Status Insert(SqlDatabase& db, int64_t id, std::string_view text) {
    return db.Write(Soon(), [&](SqlSession& s) {
      return s.Execute("INSERT INTO items(id, text) VALUES (?1, ?2)", {id, text});
    });
  }
  static int64_t Count(SqlDatabase& db) {
    int64_t count = -1;
    const absl::Status status = db.Read(Soon(), [&](SqlSession& s) {
      return s.Query("SELECT count(*) FROM items", {}, [&](const SqlRow& row) { count = row.Integer(0); });
    });
    EXPECT_TRUE(status.ok()) << status;
    return count;
  }

  TempDir dir_;
};

TEST_F(SqlTest, KeepsWhatWasWritten) {
  const std::string bytes("a\0b\xff", 4);
  {
    auto db = Open(Options());
    ASSERT_TRUE(Insert(*db, 1, bytes).ok());
  }
  auto db = Open(Options());
  std::string text;
  ASSERT_TRUE(db->Read(Soon(), [&](SqlSession& s) {
                  return s.Query("SELECT text FROM items WHERE id = ?1", {1},
                                 [&](const SqlRow& row) { text = row.Text(0); });
                }).ok());
  EXPECT_EQ(text, bytes);
  struct stat file;
  ASSERT_EQ(stat(dir_.File("test.db").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

// 2: a commit waits for the disk (FULL); 1: it does not (NORMAL).
absl::Status ReadSync(SqlSession& s, int64_t* sync) {
  return s.Query("PRAGMA synchronous", {}, [&](const SqlRow& row) { *sync = row.Integer(0); });
}

TEST_F(SqlTest, ACommitWaitsForTheDiskIfAnyOfItsWritesDoes) {
  SqlOptions options = Options();
  options.sync = true;
  const auto db = Open(options);
  for (const Durable durable : {Durable::kNow, Durable::kSoon, Durable::kSoon, Durable::kNow}) {
    int64_t sync = 0;
    ASSERT_TRUE(db->Write(Soon(), [&](SqlSession& s) { return ReadSync(s, &sync); }, durable).ok());
    EXPECT_EQ(sync, durable == Durable::kNow ? 2 : 1);
  }
  // Two that wait while another runs share a commit.
  std::binary_semaphore runs{0}, end{0};
  std::thread before([&] {
    EXPECT_TRUE(db->Write(Soon(), [&](SqlSession&) {
                    runs.release();
                    end.acquire();
                    return absl::OkStatus();
                  }).ok());
  });
  runs.acquire();
  int64_t sync = 0;
  const uint64_t commits = db->Sample().commits;
  std::thread soon([&] {
    EXPECT_TRUE(db->Write(Soon(), [&](SqlSession& s) { return ReadSync(s, &sync); }, Durable::kSoon).ok());
  });
  std::thread now([&] { EXPECT_TRUE(Insert(*db, 1, "a").ok()); });
  const Deadline deadline = Soon();
  while (db->Sample().waiting < 2 && !deadline.Expired()) BetweenLooks();
  end.release();
  for (std::thread* one : {&before, &soon, &now}) one->join();
  EXPECT_EQ(sync, 2);
  EXPECT_EQ(db->Sample().commits, commits + 2);
}

// A work that was refused for what another one of its commit had written is not, if that commit fails.
TEST_F(SqlTest, NoErrorComesFromAWriteThatDidNotHappen) {
  SqlOptions options = Options();
  options.migrations.emplace_back(
      "CREATE TABLE parts(item INTEGER REFERENCES items(id) DEFERRABLE INITIALLY DEFERRED) STRICT");
  const auto db = Open(options);
  std::binary_semaphore runs{0}, end{0};
  std::thread before([&] {
    EXPECT_TRUE(db->Write(Soon(), [&](SqlSession&) {
                    runs.release();
                    end.acquire();
                    return absl::OkStatus();
                  }).ok());
  });
  runs.acquire();
  const auto await_waiting = [&](size_t count) {
    const Deadline deadline = Soon();
    while (db->Sample().waiting < count && !deadline.Expired()) BetweenLooks();
  };
  absl::Status written, refused;
  bool saw = false;
  std::thread writer([&] {
    written = db->Write(Soon(), [](SqlSession& s) { return s.Execute("INSERT INTO parts VALUES (7)"); });
  });
  await_waiting(1);
  std::thread reader([&] {
    refused = db->Write(Soon(), [&](SqlSession& s) {
      const absl::Status read = s.Query("SELECT item FROM parts", {}, [&](const SqlRow&) { saw = true; });
      return read.ok() ? absl::AlreadyExistsError("it is there") : read;
    });
  });
  await_waiting(2);
  end.release();
  for (std::thread* one : {&before, &writer, &reader}) one->join();
  EXPECT_FALSE(written.ok());
  EXPECT_TRUE(saw) << "they had no commit together";
  EXPECT_EQ(refused, written);
}

TEST_F(SqlTest, ADatabaseThatNeverWaitsForTheDiskDoesNotBegin) {
  const auto db = Open(Options());
  int64_t sync = 0;
  ASSERT_TRUE(db->Write(Soon(), [&](SqlSession& s) { return ReadSync(s, &sync); }).ok());
  EXPECT_EQ(sync, 1);
}

// The next test runs it in another process, for a file LOOK_AT that has LOOK_ROWS rows.
TEST_F(SqlTest, LooksAtDataInUse) {
  SqlOptions options = Options();
  std::string expected = "0";
  std::unique_ptr<SqlDatabase> own;
  if (const char* const path = getenv("LOOK_AT"); path != nullptr) {
    options.path = path;
    expected = getenv("LOOK_ROWS");
  } else {
    own = Open(options);
  }
  int64_t count = -1;
  const absl::Status status = SqlDatabase::Look(options, [&](SqlSession& s) {
    return s.Query("SELECT count(*) FROM items", {}, [&](const SqlRow& row) { count = row.Integer(0); });
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Join(count), expected);
}

TEST_F(SqlTest, AnotherProcessThatLooksLeavesTheLogOfAService) {
  auto db = Open(Options());
  for (int64_t row = 1; row <= 3; ++row) {
    ASSERT_TRUE(Insert(*db, row, "a").ok());
    auto process =
        deploy::Process::Spawn({.name = "look",
                                .argv = {"env", "-i", "LOOK_AT=" + Options().path, Join("LOOK_ROWS=", row),
                                         std::filesystem::read_symlink("/proc/self/exe").string(),
                                         "--gtest_filter=SqlTest.LooksAtDataInUse"},
                                .out_to_log = true});
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE((*process)->AwaitEnd(Deadline::In(kMaxTestWait)));
    const absl::Status ended = (*process)->End(Nanos(0));
    ASSERT_TRUE(ended.ok()) << ended << ": it did not see what was written";
  }
}

TEST_F(SqlTest, AFailedWorkUndoesItselfOnly) {
  auto db = Open(Options());
  ASSERT_TRUE(Insert(*db, 1, "a").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Insert(*db, 1, "b")));
  const absl::Status status = db->Write(Soon(), [&](SqlSession& s) {
    EXPECT_TRUE(s.Execute("INSERT INTO items(id, text) VALUES (2, 'c')").ok());
    return absl::AbortedError("no");
  });
  EXPECT_TRUE(absl::IsAborted(status));
  const absl::Status thrown =
      db->Write(Soon(), [&](SqlSession&) -> absl::Status { throw std::runtime_error("odd"); });
  EXPECT_TRUE(absl::IsInternal(thrown));
  EXPECT_EQ(Count(*db), 1);
  EXPECT_EQ(db->Sample().failed, 3u);
}

TEST_F(SqlTest, AReadChangesNothing) {
  auto db = Open(Options());
  const absl::Status status =
      db->Read(Soon(), [](SqlSession& s) { return s.Execute("INSERT INTO items VALUES (1, 'a')"); });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Count(*db), 0);
}

TEST_F(SqlTest, NamesMistakes) {
  auto db = Open(Options());
  const auto run = [&](std::string_view sql, int64_t value) {
    return db->Read(Soon(), [&](SqlSession& s) { return s.Execute(sql, {value}); });
  };
  EXPECT_TRUE(absl::IsInternal(run("SELEC 1", 1)));
  EXPECT_TRUE(absl::IsInternal(run("SELECT ?1, ?2", 1)));
  EXPECT_TRUE(absl::IsInternal(run("", 1)));
  EXPECT_TRUE(run("SELECT ?1", 1).ok());
}

TEST_F(SqlTest, MigratesStepByStepAndRefusesANewerFile) {
  SqlOptions options = Options();
  ASSERT_TRUE(Insert(*Open(options), 1, "a").ok());
  options.migrations.push_back("ALTER TABLE items ADD COLUMN rank INTEGER; UPDATE items SET rank = 7");
  int64_t rank = 0;
  ASSERT_TRUE(Open(options)
                  ->Read(Soon(),
                         [&](SqlSession& s) {
                           return s.Query("SELECT rank FROM items", {},
                                          [&](const SqlRow& row) { rank = row.Integer(0); });
                         })
                  .ok());
  EXPECT_EQ(rank, 7);
  const auto older = SqlDatabase::Open(Options());
  EXPECT_TRUE(absl::IsFailedPrecondition(older.status())) << older.status();
}

// Nothing is left of the step, nor of the ones ahead of it: their tables can be made again.
TEST_F(SqlTest, AMigrationThatFailsHalfWayLeavesNothing) {
  SqlOptions options = Options();
  ASSERT_TRUE(Insert(*Open(options), 1, "a").ok());
  options.migrations.push_back("CREATE TABLE more(id INTEGER) STRICT");
  options.migrations.push_back(kBreaksHalfWay);
  EXPECT_FALSE(SqlDatabase::Open(options).ok());
  EXPECT_TRUE(SqlDatabase::Open(Options()).ok()) << "its version is the one before";
  options.migrations.back() = "CREATE TABLE rest(id INTEGER) STRICT";
  const auto db = Open(options);
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(Count(*db), 1);
}

TEST_F(SqlTest, ADamagedFileIsAnError) {
  std::ofstream(dir_.File("test.db")) << std::string(8192, 'x');
  const auto db = SqlDatabase::Open(Options());
  EXPECT_TRUE(absl::IsDataLoss(db.status())) << db.status();
}

TEST_F(SqlTest, DamageBehindTheHeaderIsAnError) {
  ASSERT_TRUE(Insert(*Open(Options()), 1, std::string(100'000, 'a')).ok());
  std::fstream file(dir_.File("test.db"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(4096, '\x55');
  file.close();
  auto db = Open(Options());
  const absl::Status read =
      db->Read(Soon(), [](SqlSession& s) { return s.Execute("SELECT sum(length(text)) FROM items"); });
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_FALSE(Insert(*db, 2, "b").ok());
}

TEST_F(SqlTest, AFileThatIsFullRefusesAndStaysReadable) {
  SqlOptions options = Options();
  options.max_bytes = 256 << 10;
  auto db = Open(options);
  absl::Status status;
  int64_t kept = 0;
  while (status.ok() && kept < 1000) {
    status = Insert(*db, kept, std::string(4096, 'a'));
    if (status.ok()) ++kept;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(kept, 10);
  EXPECT_EQ(Count(*db), kept);
  ASSERT_TRUE(
      db->Write(Soon(), [](SqlSession& s) { return s.Execute("DELETE FROM items WHERE id < 5"); }).ok());
  EXPECT_TRUE(Insert(*db, kept, std::string(4096, 'a')).ok());
}

// The limit of the process stands for a full disk: write(2) fails.
TEST_F(SqlTest, AFullDiskIsAnErrorAndLosesNothing) {
  signal(SIGXFSZ, SIG_IGN);
  auto db = Open(Options());
  ASSERT_TRUE(Insert(*db, 1, "a").ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{.rlim_cur = 128 << 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status status = Insert(*db, 2, std::string(1 << 20, 'b'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Count(*db), 1);
  EXPECT_TRUE(Insert(*db, 2, std::string(1 << 20, 'b')).ok());
  EXPECT_EQ(Count(*db), 2);
}

TEST_F(SqlTest, NoWorkBeginsAfterItsDeadlineAndReadsEndAtIt) {
  auto db = Open(Options());
  const absl::Status late = db->Write(Deadline::In(Nanos(-1)), [](SqlSession&) {
    ADD_FAILURE() << "it ran";
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_EQ(Message(late).find('/'), std::string_view::npos) << "clients see it";
  EXPECT_EQ(db->Sample().late, 1u);
  const absl::Status slow = db->Read(Deadline::In(std::chrono::milliseconds(20)), [](SqlSession& s) {
    return s.Execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(slow)) << slow;
  EXPECT_EQ(Message(slow).find('/'), std::string_view::npos);
  EXPECT_EQ(Count(*db), 0);
}

TEST_F(SqlTest, NoCallIsLostOnceItHasStopped) {
  auto db = Open(Options());
  ASSERT_TRUE(Insert(*db, 1, "a").ok());
  db->Stop();
  db->Stop();
  EXPECT_TRUE(absl::IsUnavailable(Insert(*db, 2, "b")));
  EXPECT_EQ(Count(*Open(Options())), 1);
}

TEST_F(SqlTest, TooManyThatWaitAreRefused) {
  SqlOptions options = Options();
  options.queue = 1;
  auto db = Open(options);
  std::atomic<bool> begun{false}, go{false};
  std::thread holder([&] {
    EXPECT_TRUE(db->Read(Soon(), [&](SqlSession&) {
                    begun = true, begun.notify_all();
                    go.wait(false);
                    return absl::OkStatus();
                  }).ok());
  });
  begun.wait(false);
  std::thread waiter([&] { EXPECT_EQ(Count(*db), 0); });
  while (db->Sample().waiting == 0) BetweenLooks();
  const absl::Status refused = db->Read(Soon(), [](SqlSession&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(db->Sample().refused, 1u);
  go = true, go.notify_all();
  holder.join(), waiter.join();
}

// Property: of writers in several threads and two clients of one file, every acknowledged write is there, no other is,
// and writes that wait share commits.
TEST_F(SqlTest, ConcurrentWritersStress) {
  constexpr int kThreads = 8, kEach = 50;
  auto one = Open(Options());
  auto two = Open(Options());
  const auto run = [&](int thread) {
    SqlDatabase& db = thread % 2 == 0 ? *one : *two;
    for (int i = 0; i < kEach; ++i) {
      EXPECT_TRUE(Insert(db, thread * kEach + i, "a").ok());
      EXPECT_TRUE(absl::IsAlreadyExists(Insert(db, thread * kEach + i, "b")));
    }
  };
  run(0);  // alone first
  std::vector<std::thread> threads;
  for (int t = 1; t < kThreads; ++t) threads.emplace_back(run, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Count(*one), kThreads * kEach);
  EXPECT_EQ(Count(*two), kThreads * kEach);
  const SqlStats stats = one->Sample();
  EXPECT_EQ(stats.writes, kThreads * kEach);
  EXPECT_LE(stats.commits, stats.writes);
}

TEST_F(SqlTest, AThreadThatWouldSleepReadsByItself) {
  const auto db = Open(Options());
  std::thread::id reader, writer;
  for (const Nanos time : {Nanos(0), Nanos(std::chrono::milliseconds(5))}) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(db->Read(Soon(), [&](SqlSession&) {
                      reader = std::this_thread::get_id();
                      for (const Deadline end = Deadline::In(time); !end.Expired();) {
                      }
                      return absl::OkStatus();
                    }).ok());
      ASSERT_EQ(reader, std::this_thread::get_id());
    }
  }
  ASSERT_TRUE(db->Write(Soon(), [&](SqlSession&) {
                  writer = std::this_thread::get_id();
                  return absl::OkStatus();
                }).ok());
  EXPECT_NE(writer, std::this_thread::get_id()) << "it may share a commit";
}

TEST_F(SqlTest, AWorkThatThrowsAnythingFails) {
  const auto db = Open(Options());
  const auto work = [](SqlSession&) -> absl::Status { throw 1; };
  EXPECT_TRUE(absl::IsInternal(db->Read(Soon(), work)));
  EXPECT_TRUE(absl::IsInternal(db->Write(Soon(), work)));  // on a thread of the database
  EXPECT_EQ(Count(*db), 0);
  EXPECT_EQ(db->Sample().failed, 2u);
}

TEST_F(SqlTest, StopWaitsForReadsThatTheirCallersRun) {
  const auto db = Open(Options());
  std::binary_semaphore begun(0), go_on(0);
  std::atomic<bool> ended{false};
  std::thread caller([&] {
    const absl::Status status = db->Read(Soon(), [&](SqlSession&) {
      begun.release();
      EXPECT_TRUE(go_on.try_acquire_for(kMaxTestWait));
      ended = true;
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  });
  ASSERT_TRUE(begun.try_acquire_for(kMaxTestWait));
  std::thread stopper([&] {
    db->Stop();
    EXPECT_TRUE(ended);
  });
  while (!absl::IsUnavailable(db->Write(Soon(), [](SqlSession&) { return absl::OkStatus(); }))) {
    BetweenLooks();  // until it stops
  }
  go_on.release();
  caller.join();
  stopper.join();
}

// A program with a runtime of its own says that nobody waits; then no pool of curtail's resumes the coroutine.
TEST_F(SqlTest, ACoroutineWithoutAPoolGoesOnOnTheThreadOfTheDatabase) {
  const auto db = Open(Options());
  const std::thread::id caller = std::this_thread::get_id();
  std::thread::id writer, reader;
  Coroutine both = [](SqlDatabase& d, std::thread::id* wrote, std::thread::id* read) -> Coroutine {
    absl::Status status = co_await d.Writing(
        Soon(), [](SqlSession& s) { return s.Execute("INSERT INTO items(id, text) VALUES (1, 'a')"); });
    *wrote = std::this_thread::get_id();
    if (!status.ok()) co_return status;
    EXPECT_EQ(CurrentWait().waiting, Waiting::kAsync);
    co_return co_await d.Reading(Soon(), [read](SqlSession& s) {
      *read = std::this_thread::get_id();
      return s.Query("SELECT id FROM items WHERE id = 1", {}, [](const SqlRow&) {});
    });
  }(*db, &writer, &reader);
  std::binary_semaphore ended(0);
  {
    const WaitHint hint{.waiting = Waiting::kAsync};
    const ScopedWait wait(hint);
    both.Start([](void* e) { static_cast<std::binary_semaphore*>(e)->release(); }, &ended);
  }
  ASSERT_TRUE(ended.try_acquire_for(kMaxTestWait));
  EXPECT_TRUE(both.Take().ok());
  EXPECT_EQ(Count(*db), 1);
  EXPECT_NE(writer, caller);
  EXPECT_NE(reader, caller);
  EXPECT_NE(reader, writer);
}

}  // namespace
}  // namespace curtail
