// SPDX-License-Identifier: Apache-2.0
//
// A database that loses its power.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/kit/testing/preload.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {
namespace {

constexpr uint64_t kRows = 40;

// Every fifth waits for the disk.
Durable DurableOf(uint64_t row) { return row % 5 == 0 ? Durable::kNow : Durable::kSoon; }

std::unique_ptr<SqlDatabase> Open(const std::string& path) {
  auto db = SqlDatabase::Open(
      {.path = path,
       .migrations = {"CREATE TABLE items(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"}});
  EXPECT_TRUE(db.ok()) << db.status();
  return *std::move(db);
}

// The rows, if they are 1, 2 and so on; else 0.
uint64_t RowsIn(SqlDatabase& db) {
  uint64_t rows = 0, last = 0;
  const absl::Status read = db.Read(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
    return s.Query("SELECT count(*), coalesce(max(id), 0) FROM items", {},
                   [&](const SqlRow& row) { rows = row.Unsigned(0), last = row.Unsigned(1); });
  });
  EXPECT_TRUE(read.ok()) << read;
  return rows == last ? rows : 0;
}

// The next test runs it in another process, which dies after POWER_ROWS rows of the file POWER_FILE.
TEST(Power, RowsAreAcknowledgedInOrder) {
  const char* const file = std::getenv("POWER_FILE");
  std::optional<TempDir> dir;  // a killed process would leave it
  if (file == nullptr) dir.emplace();
  const uint64_t last = file == nullptr ? kRows : std::stoull(std::getenv("POWER_ROWS"));
  const auto db = Open(file == nullptr ? dir->File("a.db") : file);
  for (uint64_t row = 1; row <= last; ++row) {
    const absl::Status written = db->Write(
        Deadline::In(kMaxTestWait),
        [&](SqlSession& s) {
          return s.Execute("INSERT INTO items(id, text) VALUES (?1, ?2)", {row, std::string(500, 'a')});
        },
        DurableOf(row));
    ASSERT_TRUE(written.ok()) << written;
  }
  if (file != nullptr) raise(SIGKILL);
  EXPECT_EQ(RowsIn(*db), last);
}

// Property: the rows up to the last that has waited for the disk are there, and of those after it the first ones or none.
TEST(Power, WhatWaitedForTheDiskOutlivesItsLoss) {
  Rng rng(TestSeed());
  for (int round = 0; round < 12; ++round) {
    const TempDir dir;
    const double kept = round % 3 / 2.0;
    const uint64_t written = 1 + rng.Below(kRows), settled = written / 5 * 5;
    SCOPED_TRACE(Join(written, " rows, a chance of ", static_cast<int>(100 * kept), " %"));
    for (const char* const folder : {"disk", "data"}) std::filesystem::create_directory(dir.File(folder));
    const Power power(dir.File("disk"));
    std::vector<std::string> words = power.Words();
    if (words.empty()) GTEST_SKIP() << "2026-11-29: with a sanitizer, programs go without a preloaded disk";
    Open(dir.File("data/a.db")).reset();
    power.Settle(dir.File("data"));
    words.insert(words.end(), {"POWER_FILE=" + dir.File("data/a.db"), Join("POWER_ROWS=", written),
                               std::filesystem::read_symlink("/proc/self/exe").string(),
                               "--gtest_filter=Power.RowsAreAcknowledgedInOrder"});
    auto process = deploy::Process::Spawn({.name = "writer", .argv = words, .out_to_log = true});
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_TRUE((*process)->AwaitEnd(Deadline::In(kMaxTestWait)));
    ASSERT_EQ((*process)->HowItEnded(), "was killed by signal 9 (Killed)");
    power.Lose(dir.File("data"), kept, rng);
    const uint64_t rows = RowsIn(*Open(dir.File("data/a.db")));
    EXPECT_GE(rows, settled);
    EXPECT_LE(rows, written);
    if (kept == 0) {
      EXPECT_EQ(rows, settled);
    }
    if (kept == 1) {
      EXPECT_EQ(rows, written);
    }
  }
}

}  // namespace
}  // namespace curtail::apps
