// SPDX-License-Identifier: Apache-2.0
//
// Requests that wait for a database as their threading model waits.
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/store/sql/sql.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

class SqlModels : public MidTier {
 protected:
  SqlModels() {
    SqlOptions options;
    options.path = dir_.File("test.db");
    options.migrations = {"CREATE TABLE items(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"};
    options.sync = false;
    db_ = *SqlDatabase::Open(options);
  }
  TempDir dir_;
  std::unique_ptr<SqlDatabase> db_;
};

INSTANTIATE_TEST_SUITE_P(Models, SqlModels,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

// Each request waits twice; under all models, however few threads there are.
TEST_P(SqlModels, ACoroutineWaitsAsItsModelWaits) {
  ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    int64_t id = 0;
    absl::Status status = co_await db_->Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status inserted = s.Execute("INSERT INTO items(text) VALUES (?1)", {in.value()});
      inserted.Update(
          s.Query("SELECT last_insert_rowid()", {}, [&](const SqlRow& row) { id = row.Integer(0); }));
      return inserted;
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
      for (int i = 0; i < 25; ++i) {
        const std::string text = Join(c, "-", i);
        std::string answer;
        const absl::Status status = Run(text, &answer);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(answer, text);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

class SqlServing : public SqlModels {
 protected:
  // True if the thread that runs the handler runs its read, too, which takes `time`.
  bool ReadsByItself(Nanos time, bool computes = true) {
    took_ = time, computes_ = computes;
    const absl::Status status = Run("x");
    EXPECT_TRUE(status.ok()) << status;
    return by_itself_;
  }

  static Nanos ThreadCpu() {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
  }

  void ServeReads() {
    ServeCoroutine([this](Context& ctx, const StringValue&, StringValue*) -> Coroutine {
      const std::thread::id caller = std::this_thread::get_id();
      co_return co_await db_->Reading(ctx.deadline(), [this, caller](SqlSession&) {
        by_itself_ = std::this_thread::get_id() == caller;
        if (computes_) {
          for (const Nanos end = ThreadCpu() + took_; ThreadCpu() < end;) {
          }
        } else {
          for (const Deadline end = Deadline::In(took_); !end.Expired();) sched_yield();
        }
        return absl::OkStatus();
      });
    });
    const Deadline limit = Deadline::In(kMaxTestWait);
    while (!ReadsByItself(Nanos(0))) ASSERT_FALSE(limit.Expired());  // the first one may have slept
  }

  Nanos took_{0};
  bool computes_ = true;
  std::atomic<bool> by_itself_{false};
};

INSTANTIATE_TEST_SUITE_P(Models, SqlServing, testing::Values("FIB1", "ADB1-1-1"), ModelName);

// A thread with other requests reads by itself as long as reads are quick.
TEST_P(SqlServing, LeavesSlowReadsToTheReader) {
  ServeReads();
  ReadsByItself(std::chrono::milliseconds(20));  // one is enough
  EXPECT_FALSE(ReadsByItself(Nanos(0)));
  const Deadline end = Deadline::In(kMaxTestWait);
  bool again = false;
  while (!again && !end.Expired()) again = ReadsByItself(Nanos(0));
  EXPECT_TRUE(again);
}

// Other threads want the only CPU that the server may use.
TEST_P(SqlServing, AReadThatWaitsForACpuIsNotSlow) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  ServeReads();  // its threads inherit the CPU
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
      }
    });
  }
  ReadsByItself(std::chrono::milliseconds(20), /*computes=*/false);
  done.store(true, std::memory_order_relaxed);
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(ReadsByItself(Nanos(0)));
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace curtail
