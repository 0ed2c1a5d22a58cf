// SPDX-License-Identifier: Apache-2.0
//
// ledger_testing.h - a shard of a ledger in a file or in a PostgreSQL, and calls of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/ledger/ledger.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

// Accounts of tests. The bank has no limit.
inline constexpr uint64_t kBank = 10, kAnn = 11, kBob = 12;

enum class LedgerIn { kFile, kPostgresql };

// Opens the shard `name` of a test: a file of `dir`, or a schema of the one server that all tests of the program share.
std::unique_ptr<SqlDatabase> OpenLedger(const TempDir& dir, LedgerIn in, const std::string& name);

// A shard and its database.
class Shard {
 public:
  Shard(uint32_t number, Ledger::Clock clock, std::unique_ptr<SqlDatabase> db)
      : number_(number), ledger_(number, std::move(clock)), db_(std::move(db)) {}

  SqlDatabase& db() { return *db_; }
  uint32_t number() const { return number_; }

  // Runs work(ledger, session).
  template <class Work>
  absl::Status Write(Work work) {
    return db_->Write(Deadline::In(kMaxTestWait), [&](SqlSession& s) { return work(ledger_, s); });
  }
  template <class Work>
  absl::Status Read(Work work) {
    return db_->Read(Deadline::In(kMaxTestWait), [&](SqlSession& s) { return work(ledger_, s); });
  }

  absl::Status Open(uint64_t id, int64_t limit = 0, uint64_t owner = 0) {
    return Write([&](const Ledger& l, SqlSession& s) { return l.Open(s, {id, owner, limit}); });
  }
  absl::Status Close(uint64_t id) {
    return Write([&](const Ledger& l, SqlSession& s) { return l.Close(s, id); });
  }
  absl::Status Reopen(uint64_t id) {
    return Write([&](const Ledger& l, SqlSession& s) { return l.Reopen(s, id); });
  }
  absl::Status Post(std::string_view name, const Posting& posting, std::vector<Booked>* booked = nullptr,
                    int64_t since_ms = 0) {
    std::vector<Booked> ignored;
    if (booked == nullptr) booked = &ignored;
    booked->clear();
    return Write(
        [&](const Ledger& l, SqlSession& s) { return l.Post(s, {7, name, since_ms}, posting, booked); });
  }
  absl::Status Refuse(std::string_view name, const Posting& posting, std::vector<Booked>* booked,
                      int64_t since_ms = 0) {
    return Write(
        [&](const Ledger& l, SqlSession& s) { return l.Refuse(s, {7, name, since_ms}, posting, booked); });
  }
  // The names of refused requests that are kept.
  uint64_t Refusals() {
    uint64_t count = 0;
    const absl::Status status = Read([&](const Ledger&, SqlSession& s) {
      return s.Query("SELECT count(*) FROM ledger_requests WHERE answer = 0", {},
                     [&](const SqlRow& row) { count = row.Unsigned(0); });
    });
    EXPECT_TRUE(status.ok()) << status;
    return count;
  }
  absl::Status Hold(std::string_view name, uint64_t account, int64_t cents, uint64_t* hold,
                    int64_t expires_ms = Ledger::kNever) {
    return Write([&](const Ledger& l, SqlSession& s) {
      return l.Hold(s, {7, name}, account, cents, expires_ms, hold);
    });
  }
  absl::Status Void(uint64_t hold) {
    return Write([&](const Ledger& l, SqlSession& s) { return l.Void(s, hold); });
  }
  absl::Status Receive(const std::vector<Transfer>& transfers, std::vector<bool>* arrived) {
    return Write([&](const Ledger& l, SqlSession& s) {
      absl::Status status;
      for (size_t i = 0; status.ok() && i < transfers.size(); ++i) {
        bool one = false;
        status = l.Receive(s, transfers[i], &one);
        arrived->push_back(one);
      }
      return status;
    });
  }
  // Delivers what is pending, by `send`.
  absl::Status Deliver(const Ledger::Send& send) {
    return ledger_.Deliver(*db_, send, [] { return false; });
  }
  absl::Status DeliverTo(Shard& other) {
    return Deliver([&](const std::vector<Transfer>& transfers, std::vector<bool>* arrived) {
      return other.Receive(transfers, arrived);
    });
  }
  absl::Status Audit() {
    return Read([](const Ledger&, SqlSession& s) { return Ledger::Audit(s); });
  }

  AccountState Look(uint64_t account) {
    AccountState state;
    const absl::Status status =
        Read([&](const Ledger& l, SqlSession& s) { return l.Balance(s, account, 0, &state); });
    EXPECT_TRUE(status.ok()) << status;
    return state;
  }
  std::vector<Booked> Entries(uint64_t account, uint64_t after = 0, uint32_t limit = kMostPage) {
    std::vector<Booked> booked;
    const absl::Status status =
        Read([&](const Ledger& l, SqlSession& s) { return l.Entries(s, account, after, limit, &booked); });
    EXPECT_TRUE(status.ok()) << status;
    return booked;
  }
  std::vector<Booked> Follow(uint64_t after, uint32_t limit = kMostPage) {
    std::vector<Booked> booked;
    const absl::Status status =
        Read([&](const Ledger& l, SqlSession& s) { return l.Follow(s, after, limit, &booked); });
    EXPECT_TRUE(status.ok()) << status;
    return booked;
  }

 private:
  const uint32_t number_;
  const Ledger ledger_;
  const std::unique_ptr<SqlDatabase> db_;
};

}  // namespace curtail::apps
